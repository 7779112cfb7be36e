import { quote } from '../../../src/errors.ts';
import { stringifyJson } from '../../../src/json/value.ts';
import type { SessionRecord } from '../../../src/store/contract.ts';
import { assertReadable } from '../../../src/store/format.ts';
import { hashOf } from './names.ts';
import { FORMAT } from './snapshot-file.ts';
import { jsonOf } from './text.ts';

/** A session record's file that was read. */
export interface SessionRecordFile {
  readonly sessionId: string;
  readonly record: SessionRecord;
}

/** What the names of all records of a kind begin with. */
export function recordPrefix(kind: string): string {
  return `${hashOf(kind)}-`;
}

/** The name of a record's file. */
export function recordName(kind: string, key: string): string {
  return `${recordPrefix(kind)}${hashOf(key)}.json`;
}

/** A record's file: one line of JSON, so that it can be read without the store. */
export function formatSessionRecord(sessionId: string, { kind, key, revision, value }: SessionRecord): Buffer {
  const head = JSON.stringify({ format: FORMAT, session: sessionId, kind, key, revision });
  return Buffer.from(`${head.slice(0, -1)},"value":${stringifyJson(value)}}\n`);
}

/**
 * @param name What the file is called; a file of another record is `undefined` like everything that is no record.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseSessionRecord(content: Buffer, name: string): SessionRecordFile | undefined {
  const json = jsonOf(content);
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return undefined;
  const { format, session: sessionId, kind, key, revision, value } = json;
  assertReadable(format, FORMAT, `A record of session ${quote(typeof sessionId === 'string' ? sessionId : '?')}`);
  if (format !== FORMAT || typeof sessionId !== 'string' || typeof revision !== 'string') return undefined;
  if (typeof kind !== 'string' || typeof key !== 'string' || recordName(kind, key) !== name) return undefined;
  return value === undefined ? undefined : { sessionId, record: { kind, key, value, revision } };
}
