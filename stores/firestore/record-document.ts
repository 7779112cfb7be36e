import type { DocumentSnapshot } from '@google-cloud/firestore';
import { dataLoss } from '../../src/errors.ts';
import { parseJson, stringifyJson } from '../../src/json/value.ts';
import type { ScopeRecord } from '../../src/store/contract.ts';
import { describeScopeKey } from '../../src/store/scopes.ts';
import { assertReadable } from '../../src/store/format.ts';
import type { DocumentWrite } from './database.ts';
import { packText, packTextNow, unpackText } from './pack-json.ts';
import { FORMAT } from './snapshot-document.ts';
import type { Tenant } from './tenant.ts';

/** A record as it was read. */
export interface RecordDocument {
  readonly document: DocumentSnapshot;
  /** `undefined`: there is none. */
  readonly record: ScopeRecord | undefined;
  /** The saves that wrote it last, the latest first. */
  readonly by: readonly string[];
}

/** A record's document names so many saves: those whose commits may still be sent again. */
const MOST_SAVES = 8;

/** The documents of the records, read with one request. */
export async function readRecords(tenant: Tenant, keys: readonly string[]): Promise<RecordDocument[]> {
  const documents = await tenant.database.getAll(keys.map((key) => tenant.recordRef(key)));
  return Promise.all(documents.map((document, i) => readRecord(document, keys[i]!)));
}

/** @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, `DATA_LOSS` when it is damaged. */
async function readRecord(document: DocumentSnapshot, key: string): Promise<RecordDocument> {
  const data = document.data();
  if (!data) return { document, record: undefined, by: [] };
  const what = `The state of ${describeScopeKey(key)}`;
  assertReadable(data['v'], FORMAT, what);
  try {
    const record = parseJson(await unpackText(data['record'] as Buffer)) as ScopeRecord;
    return { document, record, by: data['by'] as string[] };
  } catch {
    throw dataLoss(
      `${what} can't be read: its document is damaged. Restore it from a backup, or remove it by deleteScope.`,
    );
  }
}

/** The write that puts `next` in the place of what was read, if that is still so; an empty record is none. */
export async function writeRecord(
  { document, by }: RecordDocument,
  next: ScopeRecord,
  save: { readonly key: string; readonly nonce: string },
): Promise<DocumentWrite> {
  const { ref, updateTime: at } = document;
  if (at && Object.keys(next).length === 0) return { kind: 'delete', ref, at };
  const data = {
    v: FORMAT,
    scope: packTextNow(save.key),
    record: await packText(stringifyJson(next)),
    by: [save.nonce, ...by].slice(0, MOST_SAVES),
  };
  return at ? { kind: 'update', ref, data, at } : { kind: 'create', ref, data };
}
