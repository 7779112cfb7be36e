import { createHash } from 'node:crypto';
import type { GenkitError } from 'genkit';
import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import { isErasureRecord } from '../records/erasure.ts';
import { scopeOfKey } from '../records/record-scopes.ts';

/** Identifies the data that is encrypted with one data key. */
export interface KeyOwner {
  /** The tenant of the data. */
  readonly tenant: string;
  /** `snapshot`: a snapshot without a session. `scope`: the record of a user or an app. `memory`: the memories of a scope. */
  readonly kind: 'session' | 'snapshot' | 'scope' | 'memory';
  /** The id of the session or the snapshot; for a record and for memories, the key of the scope. */
  readonly id: string;
  /** Distinguishes an owner from a deleted owner with the same id. Missing in stores that don't need it. */
  readonly incarnation?: string;
}

/** Encrypts the data of one owner with one data key. */
export interface Cipher {
  /** Identifies the data key; 16 hex digits, not a secret. */
  readonly keyTag: string;
  /** Encrypts `bytes` and binds them to `place`: only the same owner and place can decrypt them. */
  seal(bytes: Uint8Array, place: string): Buffer;
  /** Returns a keyed hash of `content`, 64 hex digits. Equal contents have equal hashes only under the same data key. */
  nameOf(content: string | Uint8Array): string;
}

/**
 * Encryption at rest for a store. `envelope()` of `genkitx-agents/privacy` makes one.
 *
 * Sealed data begins with an unencrypted header, which names the key that is needed to open it.
 */
export interface Encryption {
  /**
   * Returns the cipher for new data. It may be used until the store's current call ends.
   *
   * @param reopen Decrypts the owner's stored data, read from the medium, if there is any. Called if the current key no longer exists,
   *   before a new key replaces it: new data must not be written on top of data that can't be read. Default: new data does not depend on
   *   older data.
   * @throws `FAILED_PRECONDITION` if the key no longer exists and `reopen` needs it, or the owner has an incarnation, so that it can't be a
   *   new owner.
   */
  cipher(owner: KeyOwner, reopen?: () => Promise<unknown>): Promise<Cipher>;
  /**
   * Decrypts data that a cipher of this owner sealed for this place.
   *
   * @throws `FAILED_PRECONDITION` if the key does not exist, `UNAVAILABLE` if it can't be reached, any other error if the data is damaged.
   */
  open(sealed: Uint8Array, owner: KeyOwner, place: string): Promise<Buffer>;
  /** Deletes the owner's data keys that are stored separately from the data. Called when all data of the owner is removed. */
  forget(owner: KeyOwner): Promise<void>;
}

/** The unencrypted beginning of all sealed data. */
export interface SealHeader {
  /** The id of the key that encrypts the data key. */
  readonly keyId: string;
  /** The encrypted data key; with `isElsewhere`, the name under which it is stored in another place. */
  readonly dataKey: Uint8Array;
  readonly isElsewhere: boolean;
}

/** Values of the first byte: the version of the format, and the place of the data key. */
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

/** @throws Error if the header is damaged. */
export function readSealHeader(sealed: Uint8Array): SealHeader {
  const length = sealHeaderLength(sealed);
  const bytes = Buffer.from(sealed.subarray(0, length));
  const end = length - CHECKSUM_LENGTH;
  const [version, idLength = 0] = bytes;
  const isKnown = version === INSIDE || version === ELSEWHERE;
  if (!isKnown || bytes.length < length || !checksum(bytes.subarray(0, end)).equals(bytes.subarray(end))) {
    throw new Error('the sealed data has no header');
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

/** Makes the error of a store that does not have a key. */
export function missingKey(keyId: string, owner: KeyOwner): GenkitError {
  const message =
    `${describeOwner(owner)} is encrypted under the key ${quote(keyId)}, which this store does not have. ` +
    'Pass an encryption that has this key to the store.';
  // Only an operator can add a key.
  return addressTo('operator', failedPrecondition(message));
}

/** Describes the owner for the beginning of a message. */
export function describeOwner({ kind, id }: KeyOwner): string {
  if (kind === 'memory') return 'The memory of a scope';
  if (kind === 'scope') return 'A record of a user or an app';
  return `${kind === 'session' ? 'Session' : 'Snapshot'} ${quote(id)}`;
}

/** Seals and opens the data of one owner, in a store with or without `encryption`. */
export class Sealer {
  readonly owner: KeyOwner;
  readonly #encryption: Encryption | undefined;
  readonly #reopen: (() => Promise<unknown>) | undefined;

  /** @param reopen Passed to {@link Encryption.cipher}. */
  constructor(encryption: Encryption | undefined, owner: KeyOwner, reopen?: () => Promise<unknown>) {
    this.#encryption = encryption;
    this.owner = owner;
    this.#reopen = reopen;
  }

  /** Returns the cipher for new data; `undefined`: data is not encrypted. */
  async cipher(): Promise<Cipher | undefined> {
    const { kind, id } = this.owner;
    // Erasure records are not encrypted: every first turn of a user reads them, and they are never written again with a newer key, so their
    // key could never be removed.
    if (kind === 'scope' && isErasureRecord(scopeOfKey(id))) return undefined;
    return this.#encryption?.cipher(this.owner, this.#reopen);
  }

  /** @throws The errors of {@link Encryption.open}. */
  async open(sealed: Uint8Array, place: string): Promise<Buffer> {
    if (!this.#encryption) throw missingKey(readSealHeader(sealed).keyId, this.owner);
    return this.#encryption.open(sealed, this.owner, place);
  }

  async forget(): Promise<void> {
    await this.#encryption?.forget(this.owner);
  }
}
