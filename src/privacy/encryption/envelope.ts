import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { GenkitError } from 'genkit';
import { addressTo, errorMessage, invalidArgument, unavailable } from '../../errors.ts';
import {
  formatSealHeader,
  missingKey,
  readSealHeader,
  sealHeaderLength,
  type Cipher,
  type Encryption,
  type KeyOwner,
  type SealHeader,
} from '../../store/encryption/encryption.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import { checkOptions, isObject } from '../../store/check-options.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import { decrypt, encrypt } from './aes-gcm.ts';
import type { WrappingKeys } from './wrapping-keys.ts';

/**
 * Keeps encrypted data keys apart from the data. Without its key, every copy of the data is unreadable, including backups. If a method throws,
 * or does not answer within 5 seconds, the store's call fails with `UNAVAILABLE`; a `GenkitError` stays as it is.
 */
export interface KeyStore {
  /**
   * Keeps an encrypted data key. The key must be durable when the promise resolves: data that needs it is written next.
   *
   * @param owner Names the session or the record that the key encrypts: any text of up to some thousand characters.
   * @param keyName 24 hex digits.
   */
  write(owner: string, keyName: string, wrapped: Uint8Array): Promise<void>;
  /** Returns `undefined` if there is no such key. */
  read(owner: string, keyName: string): Promise<Uint8Array | undefined>;
  /**
   * Removes all data keys of an owner. Called when a session, or a record of a user or an app, is deleted. Give it a time limit of its own: if
   * it takes effect after it timed out, it may remove the keys of a new session with the same id.
   */
  delete(owner: string): Promise<void>;
}

/** Options of {@link envelope}. */
export interface EnvelopeOptions {
  /**
   * Encrypts the data keys: `localKeys(secret)` or `cloudKms(client, keyName)`. If it does not answer within 5 seconds, the store's call fails
   * with `UNAVAILABLE`.
   */
  keys: WrappingKeys;
  /** Where the encrypted data keys are kept. Default: beside the data, in everything that is encrypted. */
  keyStore?: KeyStore;
}

/** How many sessions, snapshots and records have their data keys in memory, decrypted. */
const MAX_OWNERS = 5000;

/** For each call of the key store and the keys, which a store waits for with its lock held. Shorter than the stores' own limits of 10 s. */
const TIMEOUT_MS = 5000;

/**
 * Encryption at rest for the option `encryption` of a store: AES-256-GCM under a data key for each session, and for each record of a user
 * or an app. The data keys are themselves encrypted with `keys`, and never leave the process in clear.
 *
 * @throws `INVALID_ARGUMENT` for an unknown option, or without `keys`.
 *
 * @example
 * const encryption = envelope({ keys: localKeys(process.env.ENCRYPTION_SECRET!) });
 * const store = new FileSessionStore('./.genkit/sessions', { encryption });
 */
export function envelope(options: EnvelopeOptions): Encryption {
  checkOptions('envelope', options, { keys: isObject, keyStore: isObject });
  if (!options?.keys) throw invalidArgument('envelope: keys is missing. Pass localKeys(...) or cloudKms(...).');
  return new Envelope(options);
}

/** The data keys of an owner that are in memory. */
interface OwnerKeys {
  /** The key that encrypts new data. */
  current?: Promise<DataKey>;
  /** The key that opened data last. */
  opened?: Promise<DataKey>;
  /** Keys by their headers. */
  readonly known: Map<string, Promise<DataKey>>;
}

class Envelope implements Encryption {
  readonly #keys: WrappingKeys;
  readonly #keyStore: KeyStore | undefined;
  readonly #owners = new LruCache<OwnerKeys>(MAX_OWNERS);

  constructor({ keys, keyStore }: EnvelopeOptions) {
    this.#keys = keys;
    this.#keyStore = keyStore;
  }

  /** Two processes may make two keys for one owner, because each ciphertext names its key. */
  async cipher(owner: KeyOwner, reopen?: () => Promise<unknown>): Promise<Cipher> {
    const keys = this.#keysOf(owner);
    const inUse = keys.current ?? keys.opened;
    const key = await inUse;
    if (key && !(await this.#isKept(owner, key)) && (keys.current ?? inUse) === inUse) {
      // It stays the current key while data may need it, so that no later save begins a new key. Reads ask the key store again.
      keys.current = inUse;
      keys.known.clear();
      if (owner.incarnation !== undefined) throw missingKey(`${key.wrappedBy}/${key.storedAs}`, owner);
      await reopen?.();
      // Another process deleted the session: a new session of the same id needs a new key.
      if (keys.current === inUse) delete keys.current;
    }
    keys.current ??= unlessFailed(this.#newKey(owner), () => delete keys.current);
    return keys.current;
  }

  async open(sealed: Uint8Array, owner: KeyOwner, place: string): Promise<Buffer> {
    const length = sealHeaderLength(sealed);
    const header = Buffer.from(sealed.subarray(0, length));
    const keys = this.#keysOf(owner);
    const name = header.toString('latin1');
    let found = keys.known.get(name);
    if (!found) {
      found = unlessFailed(this.#unwrap(header, owner), () => keys.known.delete(name));
      keys.known.set(name, found);
    }
    const key = await found;
    keys.opened = found;
    if (key.wrappedBy === this.#keys.currentId) keys.current ??= found;
    return key.open(sealed.subarray(length), place);
  }

  async forget(owner: KeyOwner): Promise<void> {
    this.#owners.delete(nameOf(owner));
    await this.#callStore('delete', (store) => store.delete(nameOf(owner)));
  }

  #keysOf(owner: KeyOwner): OwnerKeys {
    const name = nameOf(owner);
    const known = this.#owners.get(name);
    if (known) return known;
    const created: OwnerKeys = { known: new Map() };
    this.#owners.set(name, created, 1);
    return created;
  }

  async #newKey(owner: KeyOwner): Promise<DataKey> {
    const bytes = randomBytes(32);
    const { currentId } = this.#keys;
    const context = Buffer.from(contextOf(owner, currentId));
    const wrapped = await reach('wrapping key', 'wrap', () => this.#keys.wrap(bytes, context));
    if (!this.#keyStore) return new DataKey(bytes, owner, { keyId: currentId, dataKey: wrapped, isElsewhere: false });
    const name = randomBytes(12);
    await this.#callStore('write', (store) => store.write(nameOf(owner), name.toString('hex'), wrapped));
    return new DataKey(bytes, owner, { keyId: currentId, dataKey: name, isElsewhere: true });
  }

  async #isKept(owner: KeyOwner, { storedAs }: DataKey): Promise<boolean> {
    return storedAs === undefined || (await this.#readKey(owner, storedAs)) !== undefined;
  }

  async #unwrap(bytes: Buffer, owner: KeyOwner): Promise<DataKey> {
    const header = readSealHeader(bytes);
    const { keyId, dataKey, isElsewhere } = header;
    const name = Buffer.from(dataKey).toString('hex');
    const wrapped = isElsewhere ? await this.#readKey(owner, name) : dataKey;
    if (!wrapped) throw missingKey(`${keyId}/${name}`, owner);
    const context = Buffer.from(contextOf(owner, keyId));
    const opened = await reach('wrapping key', 'unwrap', () => this.#keys.unwrap(wrapped, keyId, context));
    if (!opened) throw missingKey(keyId, owner);
    return new DataKey(opened, owner, header);
  }

  #readKey(owner: KeyOwner, name: string): Promise<Uint8Array | undefined> {
    return this.#callStore('read', (store) => store.read(nameOf(owner), name));
  }

  async #callStore<T>(method: keyof KeyStore, call: (store: KeyStore) => Promise<T>): Promise<T | undefined> {
    const store = this.#keyStore;
    return store && reach('key store', method, () => call(store));
  }
}

/** One data key: encrypts and decrypts for its owner. */
class DataKey implements Cipher {
  readonly keyTag: string;
  /** The id of the wrapping key that encrypts this key. */
  readonly wrappedBy: string;
  /** Its name in the key store; `undefined` if the header holds the encrypted key itself. */
  readonly storedAs: string | undefined;
  readonly #header: Buffer;
  readonly #context: string;
  readonly #key: KeyObject;
  readonly #nameKey: KeyObject;

  constructor(bytes: Uint8Array, owner: KeyOwner, header: SealHeader) {
    this.#key = createSecretKey(bytes);
    this.#nameKey = createSecretKey(createHmac('sha256', bytes).update('genkitx-agents names').digest());
    this.#header = formatSealHeader(header);
    this.#context = contextOf(owner, header.keyId);
    this.wrappedBy = header.keyId;
    this.storedAs = header.isElsewhere ? Buffer.from(header.dataKey).toString('hex') : undefined;
    this.keyTag = this.nameOf('').slice(0, 16);
  }

  seal(bytes: Uint8Array, place: string): Buffer {
    return encrypt(this.#key, bytes, this.#associated(place), this.#header);
  }

  /** @param sealed Without the header. */
  open(sealed: Uint8Array, place: string): Buffer {
    return decrypt(this.#key, sealed, this.#associated(place));
  }

  nameOf(content: string | Uint8Array): string {
    return createHmac('sha256', this.#nameKey).update(content).digest('hex');
  }

  #associated(place: string): Buffer {
    return Buffer.from(`${this.#context}\n${place}`);
  }
}

/** A text for each owner, different for different owners, and without lone surrogates. */
function nameOf({ tenant, kind, id, incarnation }: KeyOwner): string {
  return JSON.stringify([tenant, kind, id, ...(incarnation === undefined ? [] : [incarnation])]);
}

/** The associated data of a data key. The associated data of everything that the key encrypts begins with it. */
function contextOf(owner: KeyOwner, keyId: string): string {
  return `${nameOf(owner)}${JSON.stringify(keyId)}`;
}

/** Calls `forget` if the promise fails, so that the next call tries again. */
function unlessFailed(promise: Promise<DataKey>, forget: () => void): Promise<DataKey> {
  promise.catch(forget);
  return promise;
}

/**
 * Calls the application's key store or keys, with a time limit. Any error that is not a `GenkitError` is an outage: a store takes other
 * errors for damage of its data, and the advice for damage is to restore or remove the data.
 */
async function reach<T>(what: string, method: string, call: () => Promise<T>): Promise<T> {
  const late = () => new Error(`no answer within ${TIMEOUT_MS} ms`);
  try {
    return await withinTime(late, TIMEOUT_MS, undefined, call);
  } catch (error) {
    if (error instanceof GenkitError) {
      // The store describes the damage.
      throw error.status === 'DATA_LOSS' && method === 'unwrap' ? new Error(error.message, { cause: error }) : error;
    }
    const reason = `The ${what} can't be reached: ${method} failed (${errorMessage(error)}). Try again.`;
    throw addressTo('operator', unavailable(reason, error));
  }
}
