import type { ScopeRecord } from '../../../src/store/contract.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { hashOf } from './names.ts';
import { formatSealable, openSealable, parseSealable, type Sealable } from './sealable.ts';
import { isObject, jsonOf } from './text.ts';

/** Names a save: the snapshot, and the `commit` in the head that this save wrote. */
export interface SaveRef {
  readonly snapshotId: string;
  readonly commit: string;
}

/** A record's file that was read; the record may be encrypted. */
export interface RecordFile extends Pick<Sealable, 'stored'> {
  /** The record's `scopeKey`. */
  readonly key: string;
  /** The save in the second line; `undefined` if the line is missing or can't be read. */
  readonly save: SaveRef | undefined;
  /** Bytes of the first line, if there are more lines. */
  readonly cutAt: number | undefined;
}

/** The name of a record's file, without extension. */
export function recordNameOf(key: string): string {
  return hashOf(key);
}

/** A record's file. The first line has the record and its key; a draft has a second line, which names the save that it belongs to. */
export async function formatRecord(
  key: string,
  record: ScopeRecord,
  { save, cipher }: { save: SaveRef; cipher: Cipher | undefined },
): Promise<Buffer> {
  const head = { scope: JSON.parse(key) as string[] };
  // An empty record will be removed. It is in clear, so that the removal needs no key.
  const used = isEmpty(record) ? undefined : cipher;
  const line = await formatSealable(head, { name: 'record', value: record, place: PLACE }, used);
  return Buffer.from(`${line}${JSON.stringify([save.snapshotId, save.commit])}\n`);
}

/** A record is encrypted as a whole, so there is one place. */
const PLACE = 'record';

/** The record, decrypted. @throws as {@link openSealable}. */
export async function openRecord(file: RecordFile, sealer: Sealer, damaged: () => Error): Promise<ScopeRecord> {
  return (await openSealable(file, { sealer, place: PLACE, damaged })) as ScopeRecord;
}

/** Whether the file is of an empty record. */
export function isEmptyRecord({ stored }: RecordFile): boolean {
  return 'value' in stored && isEmpty(stored.value as ScopeRecord);
}

function isEmpty(record: ScopeRecord): boolean {
  return Object.keys(record).length === 0;
}

/**
 * @param name The file's name. The result is `undefined` for the file of another record, and for anything else.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseRecord(content: Buffer, name: string, what: string): RecordFile | undefined {
  const end = content.indexOf(10) + 1;
  const read = parseSealable(content.subarray(0, end), 'record', () => what);
  const { scope, record = {} } = read?.head ?? {};
  if (!read || !isObject(record) || !Array.isArray(scope)) return undefined;
  const key = JSON.stringify(scope);
  if (recordNameOf(key) !== name) return undefined;
  const isMore = end < content.length;
  return {
    key,
    stored: read.stored,
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
