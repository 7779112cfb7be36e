import type { DocumentReference, DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { dataLoss } from '../../src/errors.ts';
import { parseJson, stringifyJson } from '../../src/json/value.ts';
import type { ScopeRecord } from '../../src/store/contract.ts';
import { describeScopeKey } from '../../src/store/scopes.ts';
import { assertReadable } from '../../src/store/format.ts';
import type { DocumentWrite } from './database.ts';
import { packText, packTextNow, unpackText } from './pack-json.ts';
import { FORMAT } from './snapshot-document.ts';
import type { Tenant } from './tenant.ts';

/** A record as it was read or written. */
export interface RecordDocument {
  readonly ref: DocumentReference;
  /** `undefined`: there is no document. */
  readonly updateTime: Timestamp | undefined;
  /** Shared: whoever hands it out, or changes it, makes a copy. `undefined`: there is none. */
  readonly record: ScopeRecord | undefined;
  /** The saves that wrote it last, the latest first. */
  readonly by: readonly string[];
  /** The length of the record as JSON. */
  readonly length: number;
}

/** A write of a record. */
export interface RecordWrite {
  readonly write: DocumentWrite;
  /** Its size. */
  readonly bytes: number;
  /** The record when the write is made, but for its time. */
  readonly after: RecordDocument;
}

/** A record's document names so many saves: those whose commits may still be sent again. */
const MOST_SAVES = 8;

/** The documents of the records, read with one request. */
export async function readRecords(tenant: Tenant, keys: readonly string[]): Promise<RecordDocument[]> {
  const documents = await tenant.database.getAll(keys.map((key) => tenant.recordRef(key)));
  const records = await Promise.all(documents.map((document, i) => readRecord(document, keys[i]!)));
  for (const [i, key] of keys.entries()) tenant.rememberRecord(key, records[i]!);
  return records;
}

/** @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, `DATA_LOSS` when it is damaged. */
async function readRecord(document: DocumentSnapshot, key: string): Promise<RecordDocument> {
  const { ref, updateTime } = document;
  const data = document.data();
  if (!data) return noRecord(ref);
  const what = `The state of ${describeScopeKey(key)}`;
  assertReadable(data['v'], FORMAT, what);
  try {
    const text = await unpackText(data['record'] as Buffer);
    const record = parseJson(text) as ScopeRecord;
    return { ref, updateTime, record, by: data['by'] as string[], length: text.length };
  } catch {
    throw dataLoss(
      `${what} can't be read: its document is damaged. Restore it from a backup, or remove it by deleteScope.`,
    );
  }
}

/** The write that puts `next` in the place of what is known, if that is still so; an empty record is none. */
export async function writeRecord(
  { ref, updateTime: at, by }: RecordDocument,
  next: ScopeRecord,
  save: { readonly key: string; readonly nonce: string },
): Promise<RecordWrite> {
  if (at && Object.keys(next).length === 0) {
    return { write: { kind: 'delete', ref, at }, bytes: 0, after: noRecord(ref) };
  }
  const text = stringifyJson(next);
  const record = await packText(text);
  const saves = [save.nonce, ...by].slice(0, MOST_SAVES);
  const data = { v: FORMAT, scope: packTextNow(save.key), record, by: saves };
  const write: DocumentWrite = at ? { kind: 'update', ref, data, at } : { kind: 'create', ref, data };
  const after = { ref, updateTime: undefined, record: next, by: saves, length: text.length };
  return { write, bytes: record.length, after };
}

function noRecord(ref: DocumentReference): RecordDocument {
  return { ref, updateTime: undefined, record: undefined, by: [], length: 0 };
}
