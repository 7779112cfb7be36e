import { createHash } from 'node:crypto';
import type { GenkitError } from 'genkit';
import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import { isErasureRecord } from '../records/erasure.ts';
import { scopeOfKey } from '../records/record-scopes.ts';

/** The data that is encrypted with one data key. */
export interface KeyOwner {
  /** The tenant that it is stored for. */
  readonly tenant: string;
  /** `snapshot`: a snapshot without a session. `scope`: the record of a user or an app. `memory`: the memories of a scope. */
  readonly kind: 'session' | 'snapshot' | 'scope' | 'memory';
  /** The id of the session or the snapshot; for a record and for memories the key of their scope. */
  readonly id: string;
  /** Differs from that of a deleted owner with the same id. Missing in stores that don't need it. */
  readonly incarnation?: string;
}

/** Encrypts what is written for one owner, under one data key. */
export interface Cipher {
  /** Different for each data key, and no secret: 16 hex digits. */
  readonly keyTag: string;
  /** Encrypts `bytes`, and binds them to `place`: they open for the same owner and place only. */
  seal(bytes: Uint8Array, place: string): Buffer;
  /** A keyed hash of `content`, 64 hex digits: equal contents have equal names under the same data key only. */
  nameOf(content: string | Uint8Array): string;
}

/**
 * Encryption at rest, as a store knows it. `envelope()` of `genkitx-agents/privacy` makes one.
 *
 * What a cipher seals begins with a header in clear, which names the key that is needed to open it.
 */
export interface Encryption {
  /**
   * The cipher for what is written now. It may be used until the call of the store ends.
   *
   * @param reopen Opens what is stored of the owner, from the medium, if there is anything. Called when the key in use is gone, before a new
   *   one takes its place: nothing may be written on top of what can't be read any more. Default: nothing depends on older data.
   * @throws `FAILED_PRECONDITION` when the key is gone and `reopen` needs it, or the owner has an incarnation: then it can't have begun anew.
   */
  cipher(owner: KeyOwner, reopen?: () => Promise<unknown>): Promise<Cipher>;
  /**
   * Decrypts what a cipher of this owner sealed for this place.
   *
   * @throws `FAILED_PRECONDITION` when the key is not there, `UNAVAILABLE` when it can't be reached, any other error for damage.
   */
  open(sealed: Uint8Array, owner: KeyOwner, place: string): Promise<Buffer>;
  /** Deletes the owner's data keys, as far as they are stored apart from the data. Called when all data of the owner is being removed. */
  forget(owner: KeyOwner): Promise<void>;
}

/** The beginning of everything that is sealed, in clear. */
export interface SealHeader {
  /** Names the key that the data key is encrypted with. */
  readonly keyId: string;
  /** The data key, encrypted; with `isElsewhere` the name that it has in another place. */
  readonly dataKey: Uint8Array;
  readonly isElsewhere: boolean;
}

/** The first byte: the version of the format, and where the data key is. */
const INSIDE = 1;
const ELSEWHERE = 2;
const CHECKSUM_LENGTH = 4;

/** Version, key id and data key, each with its length, then a checksum, so that damage is not mistaken for a missing key. */
export function formatSealHeader({ keyId, dataKey, isElsewhere }: SealHeader): Buffer {
  const id = Buffer.from(keyId);
  const rest = Buffer.alloc(2);
  rest.writeUInt16BE(dataKey.length);
  const header = Buffer.concat([Buffer.of(isElsewhere ? ELSEWHERE : INSIDE, id.length), id, rest, dataKey]);
  return Buffer.concat([header, checksum(header)]);
}

/** Length of the header in bytes. For a damaged header it may be more than `sealed` has. */
export function sealHeaderLength(sealed: Uint8Array): number {
  const at = 2 + (sealed[1] ?? 0);
  return at + 2 + ((sealed[at] ?? 0) << 8) + (sealed[at + 1] ?? 0) + CHECKSUM_LENGTH;
}

/** @throws Error when it is damaged. */
export function readSealHeader(sealed: Uint8Array): SealHeader {
  const length = sealHeaderLength(sealed);
  const bytes = Buffer.from(sealed.subarray(0, length));
  const end = length - CHECKSUM_LENGTH;
  const [version, idLength = 0] = bytes;
  const isKnown = version === INSIDE || version === ELSEWHERE;
  if (!isKnown || bytes.length < length || !checksum(bytes.subarray(0, end)).equals(bytes.subarray(end))) {
    throw new Error('what is sealed begins with no header');
  }
  return {
    keyId: bytes.toString('utf8', 2, 2 + idLength),
    dataKey: bytes.subarray(4 + idLength, end),
    isElsewhere: version === ELSEWHERE,
  };
}

function checksum(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest().subarray(0, CHECKSUM_LENGTH);
}

/** The error of a store that does not have a key. */
export function missingKey(keyId: string, owner: KeyOwner): GenkitError {
  const message =
    `${describeOwner(owner)} is encrypted under the key ${quote(keyId)}, which this store does not have. ` +
    'Give the store an encryption that has the key.';
  // Clients have nothing to do with keys.
  return addressTo('operator', failedPrecondition(message));
}

/** The owner in a message, as the beginning of a sentence. */
export function describeOwner({ kind, id }: KeyOwner): string {
  if (kind === 'memory') return 'What is remembered in a scope';
  if (kind === 'scope') return 'A record of a user or an app';
  return `${kind === 'session' ? 'Session' : 'Snapshot'} ${quote(id)}`;
}

/** Seals and opens what is stored for one owner, in a store with or without `encryption`. */
export class Sealer {
  readonly owner: KeyOwner;
  readonly #encryption: Encryption | undefined;
  readonly #reopen: (() => Promise<unknown>) | undefined;

  /** @param reopen That of {@link Encryption.cipher}. */
  constructor(encryption: Encryption | undefined, owner: KeyOwner, reopen?: () => Promise<unknown>) {
    this.#encryption = encryption;
    this.owner = owner;
    this.#reopen = reopen;
  }

  /** The cipher for what is written now; `undefined`: it is written in clear. */
  async cipher(): Promise<Cipher | undefined> {
    const { kind, id } = this.owner;
    // Every first turn of a user reads the record of their erasures, and nothing writes it anew: its key could never go.
    if (kind === 'scope' && isErasureRecord(scopeOfKey(id))) return undefined;
    return this.#encryption?.cipher(this.owner, this.#reopen);
  }

  /** Throws what {@link Encryption.open} throws. */
  async open(sealed: Uint8Array, place: string): Promise<Buffer> {
    if (!this.#encryption) throw missingKey(readSealHeader(sealed).keyId, this.owner);
    return this.#encryption.open(sealed, this.owner, place);
  }

  async forget(): Promise<void> {
    await this.#encryption?.forget(this.owner);
  }
}
