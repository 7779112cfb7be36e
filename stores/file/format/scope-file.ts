import { stringifyJson, type Json } from '../../../src/json/value.ts';
import type { ScopeRecord } from '../../../src/store/contract.ts';
import { assertReadable } from '../../../src/store/format.ts';
import { hashOf } from './names.ts';
import { FORMAT } from './snapshot-file.ts';
import { jsonOf } from './text.ts';

/** Names a save: the snapshot, and the `commit` in the head that this save wrote. */
export interface SaveRef {
  readonly snapshotId: string;
  readonly commit: string;
}

/** A record's file that was read. */
export interface RecordFile {
  /** The record's `scopeKey`. */
  readonly key: string;
  readonly record: ScopeRecord;
  /** The save that the second line names; `undefined`: there is no such line, or it can't be read. */
  readonly save: SaveRef | undefined;
  /** Bytes of the first line, when there is more. */
  readonly cutAt: number | undefined;
}

/** What the file of a record is called, without ending. */
export function recordNameOf(key: string): string {
  return hashOf(key);
}

/** A record's file: one line says whose record it is, and the record; the next one, while it is a draft, the save that is to make it. */
export function formatRecord(key: string, record: ScopeRecord, save: SaveRef): Buffer {
  const line = `{"format":${FORMAT},"scope":${key},"record":${stringifyJson(record)}}`;
  return Buffer.from(`${line}\n${JSON.stringify([save.snapshotId, save.commit])}\n`);
}

/**
 * @param name What the file is called; a file of another record is `undefined` like everything that is no record.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseRecord(content: Buffer, name: string, what: string): RecordFile | undefined {
  const end = content.indexOf(10) + 1;
  const json = end === 0 ? undefined : jsonOf(content.subarray(0, end));
  if (!isObject(json)) return undefined;
  const { format, scope, record } = json;
  assertReadable(format, FORMAT, what);
  const isIt = format === FORMAT && Array.isArray(scope) && recordNameOf(JSON.stringify(scope)) === name;
  if (!isIt || !isObject(record)) return undefined;
  const isMore = end < content.length;
  return {
    key: JSON.stringify(scope),
    record,
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

function isObject(value: Json | undefined): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
