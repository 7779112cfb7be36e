import { createHmac, randomBytes } from 'node:crypto';
import { invalidArgument } from '../../errors.ts';
import type { Numbering } from './types.ts';

/** The hashes of a session's values by kind, in the order of their numbers. Without the values themselves; can be kept as JSON. */
export type NumberedHashes = Record<string, string[]>;

/** Enough that two values of a session never share one. */
const HASH_BYTES = 16;

/**
 * Numbers values by a keyed hash. Without a secret key, short values, for example phone numbers, could be found by hashing all of them.
 *
 * @example
 * import { HashNumbering, redactText } from 'genkitx-agents/privacy';
 * const numbering = new HashNumbering({ secret: process.env['PRIVACY_SECRET']! });
 * await redactText('Mail anna@example.com', [], { numbering });
 * JSON.stringify(numbering.hashes); // Keep it, and pass it as `hashes` to continue with the same numbers.
 */
export class HashNumbering implements Numbering {
  /** The hashes so far. */
  readonly hashes: NumberedHashes;
  readonly #secrets: readonly (string | Uint8Array)[];

  /**
   * @param options.secret The key of the hashes. A list is for rotation: new values are hashed with the first, and are known by the hashes of
   *   all. Default: a random one, for numbers that are not needed later.
   * @param options.hashes The hashes of an earlier numbering with one of these secrets. They are copied. Default: none.
   * @throws `INVALID_ARGUMENT` for an empty list of secrets.
   */
  constructor(
    options: {
      secret?: string | Uint8Array | readonly (string | Uint8Array)[];
      hashes?: Readonly<NumberedHashes>;
    } = {},
  ) {
    const { secret = randomBytes(32) } = options;
    this.#secrets = typeof secret === 'string' || secret instanceof Uint8Array ? [secret] : secret;
    if (this.#secrets.length === 0) throw invalidArgument('HashNumbering needs a secret; this list is empty.');
    this.hashes = Object.assign(Object.create(null), structuredClone(options.hashes));
  }

  /** The number of a value, 1 or higher. */
  numberOf(kind: string, canonical: string): number {
    const hashes = (this.hashes[kind] ??= []);
    const possible = this.#secrets.map((secret) => {
      const hash = createHmac('sha256', secret).update(`${kind}\0${canonical}`).digest();
      return hash.subarray(0, HASH_BYTES).toString('base64url');
    });
    const known = possible.map((hash) => hashes.indexOf(hash)).find((index) => index !== -1);
    return known === undefined ? hashes.push(possible[0]!) : known + 1;
  }
}
