import { GenkitError } from 'genkit';
import { invalidArgument, quote } from '../../errors.ts';
import type { Json } from '../../json/value.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { ReadRecordsOptions, SessionRecord, WriteRecordOptions } from '../contract.ts';
import { ownJson } from '../parts/own-json.ts';
import { MAX_RECORD_BYTES } from './record-scopes.ts';

const MAX_KEYS = 100;

/** The kind of the records that put a session on hold. A session with such a record does not expire. */
export const HOLD_RECORDS = 'hold';

/** How long the records of a session without a snapshot are kept, in ms. */
export const ORPHAN_RECORD_MS = 3_600_000;

/** A checked {@link ReadRecordsOptions}. */
export interface RecordRead {
  readonly sessionId: string;
  /** `undefined`: all records of the session. */
  readonly kind: string | undefined;
  /** Sorted and distinct; `undefined`: all records of the kind. */
  readonly keys: readonly string[] | undefined;
}

/** Identifies a record within its session. */
export type RecordName = Pick<SessionRecord, 'kind' | 'key'>;

/** A checked {@link WriteRecordOptions}. */
export interface RecordWrite {
  readonly sessionId: string;
  readonly kind: string;
  readonly key: string;
  /** The store's own copy; `undefined` removes the record. */
  readonly value: Json | undefined;
  readonly expectedRevision: string | null | undefined;
  readonly ifSnapshot: string | undefined;
}

/** @throws `INVALID_ARGUMENT` for names that are not ids, for keys without a kind, and for too many keys. */
export function checkRecordRead(options: ReadRecordsOptions): RecordRead {
  const { sessionId, kind, keys } = options ?? {};
  assertId(sessionId, 'sessionId');
  if (kind !== undefined || keys !== undefined) assertId(kind, 'kind');
  if (keys === undefined) return { sessionId, kind, keys };
  if (!Array.isArray(keys) || keys.length > MAX_KEYS) {
    throw invalidArgument(`keys must be a list of at most ${MAX_KEYS} keys of records.`);
  }
  for (const key of keys as readonly unknown[]) assertId(key, 'key');
  return { sessionId, kind, keys: [...new Set(keys as readonly string[])].toSorted() };
}

/** @throws `INVALID_ARGUMENT` for names that are not ids, and for a value that JSON can't represent or that is too large. */
export function checkRecordWrite(options: WriteRecordOptions): RecordWrite {
  const { sessionId, kind, key, value, expectedRevision, ifSnapshot } = options ?? {};
  assertId(sessionId, 'sessionId');
  assertId(kind, 'kind');
  assertId(key, 'key');
  if (ifSnapshot !== undefined) assertId(ifSnapshot, 'ifSnapshot');
  if (expectedRevision !== undefined && expectedRevision !== null && typeof expectedRevision !== 'string') {
    throw invalidArgument('expectedRevision must be the revision of a record, or null.');
  }
  const what = `The value of ${describeRecord({ sessionId, kind, key })}`;
  const own = value === undefined ? value : ownJson(value, what, MAX_RECORD_BYTES);
  return { sessionId, kind, key, value: own, expectedRevision, ifSnapshot };
}

/**
 * Refuses a write whose conditions are not met. Call it in the atomic part of the write.
 *
 * @param current The revision of the record; `undefined`: the record does not exist.
 * @param hasSnapshot Whether the session has the snapshot `ifSnapshot`. Called only if `ifSnapshot` is set.
 * @throws `ABORTED`
 */
export function assertMayWrite(write: RecordWrite, current: string | undefined, hasSnapshot: () => boolean): void {
  if (write.expectedRevision !== undefined && write.expectedRevision !== (current ?? null)) throw recordChanged(write);
  if (write.ifSnapshot !== undefined && !hasSnapshot()) throw snapshotGone(write);
}

/** Makes the error of a write whose record does not have `expectedRevision`. */
export function recordChanged(write: Pick<RecordWrite, 'sessionId' | 'kind' | 'key'>): GenkitError {
  return aborted(
    `The ${describeRecord(write)} was written or removed in the meantime. Read it again, and decide again.`,
  );
}

/** Makes the error of a write or a save whose session does not have the snapshot `ifSnapshot`. */
export function snapshotGone({ sessionId, ifSnapshot }: Pick<RecordWrite, 'sessionId' | 'ifSnapshot'>): GenkitError {
  return aborted(
    `Session ${quote(sessionId)} no longer has the snapshot ${quote(ifSnapshot!)}, so nothing was written for it.`,
  );
}

function aborted(message: string): GenkitError {
  return new GenkitError({ status: 'ABORTED', message });
}

/** Returns a string that identifies a record of a session. */
export function recordKey({ kind, key }: RecordName): string {
  return JSON.stringify([kind, key]);
}

/** Compares records in the order of `readRecords`, by UTF-16 code units. */
export function byKindAndKey(x: RecordName, y: RecordName): number {
  const [one, other] = x.kind === y.kind ? [x.key, y.key] : [x.kind, y.kind];
  return one < other ? -1 : Number(one > other);
}

function describeRecord({ sessionId, kind, key }: Pick<RecordWrite, 'sessionId' | 'kind' | 'key'>): string {
  return `record ${quote(key)} of kind ${quote(kind)} of session ${quote(sessionId)}`;
}
