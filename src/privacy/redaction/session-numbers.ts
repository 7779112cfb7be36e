import { createHmac } from 'node:crypto';
import { failedPrecondition, isAborted, quote } from '../../errors.ts';
import type { RecordStore, SessionStoreOptions } from '../../store/contract.ts';
import { HashNumbering, type NumberedHashes } from '../rules/numbering.ts';
import type { Numbering } from '../rules/types.ts';

/** The kind of the session records that redaction keeps: the numbers of values, and seals. */
export const PRIVACY_RECORDS = 'privacy';
const NUMBERS = 'numbers';
/** A hash takes 25 bytes; a record holds at most 512 KiB. */
const MAX_VALUES = 20_000;

/** A session whose records are written. */
export interface RecordOwner extends SessionStoreOptions {
  readonly sessionId: string;
  /** Nothing is written if this snapshot no longer exists, because the session was then deleted. Default: no check. */
  readonly ifSnapshot?: string | undefined;
}

/** A numbering, and a function that stores its additions. */
export interface OpenNumbers {
  readonly numbering: Numbering;
  /**
   * Returns `false` when another process has added numbers in the meantime.
   *
   * @throws `ABORTED` when the session's `ifSnapshot` is missing, `FAILED_PRECONDITION` for more values than a session may hold, and the
   *   store's errors.
   */
  readonly save: () => Promise<boolean>;
}

/**
 * The numbers that the values of a session have, as the store has them now.
 *
 * @param secrets The first one is for new values.
 */
export async function openSessionNumbers(
  store: RecordStore,
  secrets: readonly Uint8Array[],
  { sessionId, context, ifSnapshot }: RecordOwner,
): Promise<OpenNumbers> {
  const place = { sessionId, context, kind: PRIVACY_RECORDS };
  const read = async () => (await store.readRecords({ ...place, keys: [NUMBERS] }))[0];
  const record = await read();
  const hashes = (record?.value ?? {}) as NumberedHashes;
  const before = countOf(hashes);
  const numbering = new HashNumbering({ secret: secrets, hashes });
  const save = async (): Promise<boolean> => {
    const count = countOf(numbering.hashes);
    if (count === before) return true;
    if (count > MAX_VALUES) {
      throw failedPrecondition(
        `Session ${quote(sessionId)} would hold ${count} different values that the privacy rules find; at most ${MAX_VALUES} are allowed. Nothing was written. Begin a new session.`,
      );
    }
    const value = { ...numbering.hashes };
    const expectedRevision = record?.revision ?? null;
    const write = { ...place, key: NUMBERS, value, expectedRevision, ...(ifSnapshot !== undefined && { ifSnapshot }) };
    try {
      await store.writeRecord(write);
      return true;
    } catch (error) {
      if (!isAborted(error)) throw error;
      if (((await read())?.revision ?? null) === expectedRevision) throw error;
      return false;
    }
  };
  return { numbering, save };
}

/** Removes the numbers of a session, unless another process adds one in the meantime. */
export async function removeSessionNumbers(store: RecordStore, { sessionId, context }: RecordOwner): Promise<void> {
  const place = { sessionId, context, kind: PRIVACY_RECORDS };
  const [record] = await store.readRecords({ ...place, keys: [NUMBERS] });
  if (!record) return;
  await store.writeRecord({ ...place, key: NUMBERS, value: undefined, expectedRevision: record.revision });
}

function countOf(hashes: NumberedHashes): number {
  return Object.values(hashes).reduce((sum, list) => sum + list.length, 0);
}

/**
 * Numbers for the records of users and apps. Many sessions share these records, but each session has its own numbers. So here the number is
 * made from the value and the secret, and nothing is stored.
 */
export function sharedNumbers(secret: Uint8Array): OpenNumbers {
  const numberOf = (kind: string, canonical: string): number => {
    const hash = createHmac('sha256', secret)
      .update(JSON.stringify(['shared', kind, canonical]))
      .digest();
    return 10_000 + (hash.readUInt32BE(0) % 90_000);
  };
  return { numbering: { numberOf }, save: async () => true };
}
