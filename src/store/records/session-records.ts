import { GenkitError } from 'genkit';
import { invalidArgument, quote } from '../../errors.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError, type Json } from '../../json/value.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { ReadRecordsOptions, SessionRecord, WriteRecordOptions } from '../contract.ts';
import { MAX_RECORD_BYTES } from './record-scopes.ts';

const MAX_KEYS = 100;

/** The kind of the records that put a session on hold: while it has one, it does not expire. */
export const HOLD_RECORDS = 'hold';

/** How long records are kept for a session that has no snapshot yet, in ms. */
export const ORPHAN_RECORD_MS = 3_600_000;

/** A checked {@link ReadRecordsOptions}. */
export interface RecordRead {
  readonly sessionId: string;
  /** `undefined`: all records of the session. */
  readonly kind: string | undefined;
  /** Sorted and distinct; `undefined`: all records of the kind. */
  readonly keys: readonly string[] | undefined;
}

/** Names a record within its session. */
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

/** @throws `INVALID_ARGUMENT` for names that are no ids, for keys without a kind, and for too many keys. */
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

/** @throws `INVALID_ARGUMENT` for names that are no ids, and for a value that JSON can't hold or that is too large. */
export function checkRecordWrite(options: WriteRecordOptions): RecordWrite {
  const { sessionId, kind, key, value, expectedRevision, ifSnapshot } = options ?? {};
  assertId(sessionId, 'sessionId');
  assertId(kind, 'kind');
  assertId(key, 'key');
  if (ifSnapshot !== undefined) assertId(ifSnapshot, 'ifSnapshot');
  if (expectedRevision !== undefined && expectedRevision !== null && typeof expectedRevision !== 'string') {
    throw invalidArgument('expectedRevision must be the revision of a record, or null.');
  }
  return { sessionId, kind, key, value: value === undefined ? value : ownValue(options), expectedRevision, ifSnapshot };
}

function ownValue({ sessionId, kind, key, value }: WriteRecordOptions): Json {
  const name = describeRecord({ sessionId, kind, key });
  let own: Json;
  try {
    own = copyJson(value!);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    throw invalidArgument(`The value of ${name} can't be saved: ${error.message}`);
  }
  if (jsonBytes(own, MAX_RECORD_BYTES) > MAX_RECORD_BYTES) {
    throw invalidArgument(
      `The value of ${name} would take more than ${MAX_RECORD_BYTES} bytes. Divide it among several keys.`,
    );
  }
  return own;
}

/**
 * Decides a write by what the store has; call it inside the write's atomic part.
 *
 * @param current The revision of the record; `undefined`: there is no such record.
 * @param hasSnapshot Whether `ifSnapshot` names a snapshot of the session. Asked only when the write names one.
 * @throws `ABORTED`
 */
export function assertMayWrite(write: RecordWrite, current: string | undefined, hasSnapshot: () => boolean): void {
  if (write.expectedRevision !== undefined && write.expectedRevision !== (current ?? null)) throw recordChanged(write);
  if (write.ifSnapshot !== undefined && !hasSnapshot()) throw snapshotGone(write);
}

/** The error of a write whose `expectedRevision` does not hold. */
export function recordChanged(write: Pick<RecordWrite, 'sessionId' | 'kind' | 'key'>): GenkitError {
  return aborted(
    `The ${describeRecord(write)} was written or removed in the meantime. Read it again, and decide anew.`,
  );
}

/** The error of a write or a save whose `ifSnapshot` does not hold. */
export function snapshotGone({ sessionId, ifSnapshot }: Pick<RecordWrite, 'sessionId' | 'ifSnapshot'>): GenkitError {
  return aborted(
    `Session ${quote(sessionId)} has no snapshot ${quote(ifSnapshot!)} any more, so nothing was written for it.`,
  );
}

function aborted(message: string): GenkitError {
  return new GenkitError({ status: 'ABORTED', message });
}

/** A text for each record of a session, different for different records. */
export function recordKey({ kind, key }: RecordName): string {
  return JSON.stringify([kind, key]);
}

/** The order of `readRecords`, by UTF-16 code units. */
export function byKindAndKey(x: RecordName, y: RecordName): number {
  const [one, other] = x.kind === y.kind ? [x.key, y.key] : [x.kind, y.kind];
  return one < other ? -1 : Number(one > other);
}

function describeRecord({ sessionId, kind, key }: Pick<RecordWrite, 'sessionId' | 'kind' | 'key'>): string {
  return `record ${quote(key)} of kind ${quote(kind)} of session ${quote(sessionId)}`;
}
