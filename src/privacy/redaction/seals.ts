import { createHash, hkdfSync, randomUUID } from 'node:crypto';
import { dataLoss, failedPrecondition, logWarning, quote } from '../../errors.ts';
import type { JsonPatch } from '../../json/patch/diff.ts';
import { parseJson } from '../../json/value.ts';
import type { RecordStore } from '../../store/contract.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import { decrypt, encrypt } from '../encryption/aes-gcm.ts';
import { PRIVACY_RECORDS, type RecordOwner } from './session-numbers.ts';

/** The originals that a snapshot still needs: the patch that puts them in place of the placeholders. */
export interface Seal {
  /** The key of its first session record. */
  readonly key: string;
  readonly patch: JsonPatch;
}

/** The snapshot that a seal belongs to. */
export interface SealOwner extends RecordOwner {
  readonly snapshotId: string;
}

/** A part of a seal, as its session record holds it. */
type SealRecord = {
  /** Identifies the secret without revealing it. */
  keyId: string;
  /** Base64 of the ciphertext, or of a part of it. */
  data: string;
};

/** A session record holds at most 512 KiB. */
const MAX_PART_CHARS = 400_000;
const MAX_CACHED_CHARS = 4 * 1024 * 1024;

/**
 * Keeps seals in session records, encrypted. A seal opens only for its own snapshot. A seal that is too large for one record is divided;
 * its key ends in the number of its parts.
 */
export class Seals {
  readonly #store: RecordStore;
  readonly #keys: readonly { readonly id: string; readonly key: Uint8Array }[];
  /** By key. A key is never used twice. */
  readonly #cached = new LruCache<JsonPatch>(MAX_CACHED_CHARS);

  constructor(store: RecordStore, secrets: readonly Uint8Array[]) {
    this.#store = store;
    this.#keys = secrets.map((secret) => {
      const key = new Uint8Array(hkdfSync('sha256', secret, '', 'genkitx-agents sealed values', 32));
      return { id: createHash('sha256').update(key).digest('base64url').slice(0, 16), key };
    });
  }

  /** @throws `ABORTED` when the session's `ifSnapshot` no longer exists. */
  async write(owner: SealOwner, patch: JsonPatch): Promise<Seal> {
    const { id, key: cipherKey } = this.#keys[0]!;
    const text = JSON.stringify(patch);
    const data = encrypt(cipherKey, Buffer.from(text), associatedData(id, owner)).toString('base64');
    const count = Math.ceil(data.length / MAX_PART_CHARS);
    const key = `sealed:${randomUUID()}:${count}`;
    const place = { ...placeOf(owner), ...(owner.ifSnapshot !== undefined && { ifSnapshot: owner.ifSnapshot }) };
    for (const [i, record] of partsOf(key).entries()) {
      const value: SealRecord = { keyId: id, data: data.slice(i * MAX_PART_CHARS, (i + 1) * MAX_PART_CHARS) };
      await this.#store.writeRecord({ ...place, key: record, value });
    }
    this.#cached.set(key, patch, text.length);
    return { key, patch };
  }

  /**
   * The seal; `undefined` when it was removed.
   *
   * @throws `FAILED_PRECONDITION` without the secret, `DATA_LOSS` for a seal that is damaged or belongs to another snapshot.
   */
  async read(owner: SealOwner, key: string): Promise<Seal | undefined> {
    const known = this.#cached.get(key);
    if (known) return { key, patch: known };
    const names = partsOf(key);
    const records = await this.#store.readRecords({ ...placeOf(owner), keys: names });
    if (records.length < names.length) return undefined;
    const parts = names.map((name) => records.find((record) => record.key === name)!.value as SealRecord);
    const text = this.#open(owner, parts);
    const patch = parseJson(text) as unknown as JsonPatch;
    this.#cached.set(key, patch, text.length);
    return { key, patch };
  }

  /** Never rejects: a seal that can't be removed is encrypted, and is removed with the session. */
  async remove(owner: RecordOwner, key: string): Promise<void> {
    this.#cached.delete(key);
    try {
      // The first part last: an interrupted removal leaves an incomplete seal, which can't be read.
      for (const record of partsOf(key).toReversed()) {
        await this.#store.writeRecord({ ...placeOf(owner), key: record, value: undefined });
      }
    } catch (error) {
      logWarning(
        `A sealed value of session ${quote(owner.sessionId)} could not be removed; it is encrypted, and is removed with the session.`,
        error,
      );
    }
  }

  clear(): void {
    this.#cached.clear();
  }

  #open(owner: SealOwner, parts: readonly SealRecord[]): string {
    const { keyId } = parts[0]!;
    const found = this.#keys.find(({ id }) => id === keyId);
    const where = `The sealed value of snapshot ${quote(owner.snapshotId)}`;
    if (!found) {
      throw failedPrecondition(
        `${where} needs the secret with the id ${quote(keyId)}. Add that secret to the list of secrets.`,
      );
    }
    const bytes = Buffer.from(parts.map(({ data }) => data).join(''), 'base64');
    try {
      return decrypt(found.key, bytes, associatedData(keyId, owner)).toString('utf8');
    } catch {
      throw dataLoss(`${where} is damaged.`);
    }
  }
}

function associatedData(keyId: string, { sessionId, snapshotId }: SealOwner): Buffer {
  return Buffer.from(JSON.stringify([keyId, sessionId, snapshotId]));
}

function placeOf({ sessionId, context }: RecordOwner) {
  return { sessionId, context, kind: PRIVACY_RECORDS };
}

/** The keys of the records of a seal, the first of which is the key itself. */
function partsOf(key: string): string[] {
  const count = Number(key.split(':')[2]) || 1;
  return Array.from({ length: Math.min(count, 100) }, (_, i) => (i === 0 ? key : `${key}:${i}`));
}
