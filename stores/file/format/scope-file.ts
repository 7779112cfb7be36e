import { stringifyJson } from '../../../src/json/value.ts';
import type { ScopeRecord } from '../../../src/store/contract.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { hashOf } from './names.ts';
import { openJson, sealText } from './sealed-text.ts';
import { FORMAT, SEALED_FORMAT } from './snapshot-file.ts';
import { isObject, jsonObjectOf, jsonOf } from './text.ts';

/** Names a save: the snapshot, and the `commit` in the head that this save wrote. */
export interface SaveRef {
  readonly snapshotId: string;
  readonly commit: string;
}

/** A record's file that was read; the record may be encrypted. */
export interface RecordFile {
  /** The record's `scopeKey`. */
  readonly key: string;
  readonly stored: { readonly record: ScopeRecord } | { readonly sealed: string };
  /** The save that the second line names; `undefined`: there is no such line, or it can't be read. */
  readonly save: SaveRef | undefined;
  /** Bytes of the first line, when there is more. */
  readonly cutAt: number | undefined;
}

/** What the file of a record is called, without ending. */
export function recordNameOf(key: string): string {
  return hashOf(key);
}

/** A record's file. The first line has the record and its key; a draft has a second line, which names the save that it belongs to. */
export async function formatRecord(
  key: string,
  record: ScopeRecord,
  { save, cipher }: { save: SaveRef; cipher: Cipher | undefined },
): Promise<Buffer> {
  const text = stringifyJson(record);
  // An empty record is about to be removed. It is in clear, so that this needs no key.
  const line =
    cipher && !isEmpty(record)
      ? `{"format":${SEALED_FORMAT},"scope":${key},"sealed":"${await sealText(text, cipher, PLACE)}"}`
      : `{"format":${FORMAT},"scope":${key},"record":${text}}`;
  return Buffer.from(`${line}\n${JSON.stringify([save.snapshotId, save.commit])}\n`);
}

/** A record is encrypted as a whole, so there is one place. */
const PLACE = 'record';

/**
 * The record, decrypted.
 *
 * @throws `FAILED_PRECONDITION` without the key, `UNAVAILABLE` when it can't be reached, any other error for damage.
 */
export async function openRecord({ stored }: RecordFile, sealer: Sealer): Promise<ScopeRecord> {
  return 'record' in stored ? stored.record : ((await openJson(stored.sealed, sealer, PLACE)) as ScopeRecord);
}

/** Whether a file is that of a record without a key. */
export function isEmptyRecord({ stored }: RecordFile): boolean {
  return 'record' in stored && isEmpty(stored.record);
}

function isEmpty(record: ScopeRecord): boolean {
  return Object.keys(record).length === 0;
}

/**
 * @param name What the file is called; a file of another record is `undefined` like everything that is no record.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseRecord(content: Buffer, name: string, what: string): RecordFile | undefined {
  const end = content.indexOf(10) + 1;
  const json = jsonObjectOf(content.subarray(0, end));
  if (!json) return undefined;
  const { format, scope, record, sealed } = json;
  assertReadable(format, SEALED_FORMAT, what);
  if (!Array.isArray(scope) || recordNameOf(JSON.stringify(scope)) !== name) return undefined;
  const stored = format === SEALED_FORMAT ? typeof sealed === 'string' && { sealed } : isObject(record) && { record };
  if (!stored || (format !== FORMAT && format !== SEALED_FORMAT)) return undefined;
  const isMore = end < content.length;
  return {
    key: JSON.stringify(scope),
    stored,
    save: isMore ? saveOf(content.subarray(end)) : undefined,
    cutAt: isMore ? end : undefined,
  };
}

function saveOf(line: Buffer): SaveRef | undefined {
  const parts = jsonOf(line);
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === 'string')) return undefined;
  const [snapshotId, commit] = parts;
  return snapshotId === undefined || commit === undefined ? undefined : { snapshotId, commit };
}
