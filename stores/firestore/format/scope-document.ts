import type { DocumentReference, DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { dataLoss } from '../../../src/errors.ts';
import { parseJson, stringifyJson } from '../../../src/json/value.ts';
import type { ScopeRecord } from '../../../src/store/contract.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import { describeScope } from '../../../src/store/records/record-scopes.ts';
import type { DocumentWrite } from '../database.ts';
import { assertOwnDocument, FORMAT, SEALED_FORMAT } from './foreign-layout.ts';
import { packText, packTextNow, unpackText } from './packed-text.ts';
import { nextBy } from './snapshot-document.ts';

/** A record is encrypted as a whole, so there is one place. */
const PLACE = 'record';

/** A record as it was read or written. */
export interface ScopeDocument {
  readonly ref: DocumentReference;
  /** `undefined`: there is no document. */
  readonly updateTime: Timestamp | undefined;
  /** Shared: copy it before changing or returning it. `undefined`: there is none. */
  readonly record: ScopeRecord | undefined;
  /** The saves that wrote it last, the latest first. */
  readonly by: readonly string[];
  /** The length of the record as JSON. */
  readonly length: number;
}

/**
 * @param key The record's `scopeKey`.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, or without the key; `DATA_LOSS` when it is damaged.
 */
export async function readScopeDocument(
  document: DocumentSnapshot,
  key: string,
  sealer: Sealer,
): Promise<ScopeDocument> {
  const { ref, updateTime } = document;
  const data = document.data();
  if (!data) return noScope(ref);
  const what = `The state of ${describeScope(key)}`;
  assertOwnDocument(data, what);
  try {
    const text = await unpackText(data['record'] as Buffer, { sealer, place: PLACE });
    const record = parseJson(text) as ScopeRecord;
    return { ref, updateTime, record, by: data['by'] as string[], length: text.length };
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    throw dataLoss(
      `${what} can't be read: its document is damaged. Restore it from a backup, or remove it by deleteScope.`,
    );
  }
}

/** A write of a record. */
export interface ScopeWrite {
  readonly key: string;
  readonly write: DocumentWrite;
  /** Its size. */
  readonly bytes: number;
  /** The record after the write, without its time. */
  readonly after: ScopeDocument;
}

/**
 * The write that replaces a record, provided that it has not changed since it was read. An empty record is removed. A record without
 * changes is written, too: a commit checks only the documents that it writes.
 */
export async function writeScope(
  { ref, updateTime: at, by }: ScopeDocument,
  next: ScopeRecord,
  { key, nonce, sealer }: { readonly key: string; readonly nonce: string; readonly sealer: Sealer },
): Promise<ScopeWrite> {
  if (Object.keys(next).length === 0) {
    const write: DocumentWrite = at ? { kind: 'delete', ref, at } : { kind: 'absent', ref };
    return { key, write, bytes: 0, after: noScope(ref) };
  }
  const text = stringifyJson(next);
  const cipher = await sealer.cipher();
  const record = await packText(text, { cipher, place: PLACE });
  const saves = nextBy(by, nonce);
  const data = { v: cipher ? SEALED_FORMAT : FORMAT, scope: packTextNow(key), record, by: saves };
  const write: DocumentWrite = at ? { kind: 'update', ref, data, at } : { kind: 'create', ref, data };
  const after = { ref, updateTime: undefined, record: next, by: saves, length: text.length };
  return { key, write, bytes: record.length, after };
}

function noScope(ref: DocumentReference): ScopeDocument {
  return { ref, updateTime: undefined, record: undefined, by: [], length: 0 };
}
