import { quote } from '../../../src/errors.ts';
import { stringifyJson, type Json } from '../../../src/json/value.ts';
import type { SessionRecord } from '../../../src/store/contract.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { hashOf } from './names.ts';
import { openJson, sealText } from './sealed-text.ts';
import { FORMAT, SEALED_FORMAT } from './snapshot-file.ts';
import { jsonObjectOf } from './text.ts';

/** A session record's file that was read; its value may be encrypted. */
export interface SessionRecordFile extends Omit<SessionRecord, 'value'> {
  readonly sessionId: string;
  readonly stored: { readonly value: Json } | { readonly sealed: string };
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
export async function formatSessionRecord(
  sessionId: string,
  { kind, key, revision, value }: SessionRecord,
  cipher: Cipher | undefined,
): Promise<Buffer> {
  const format = cipher ? SEALED_FORMAT : FORMAT;
  const head = JSON.stringify({ format, session: sessionId, kind, key, revision }).slice(0, -1);
  const text = stringifyJson(value);
  if (!cipher) return Buffer.from(`${head},"value":${text}}\n`);
  return Buffer.from(`${head},"sealed":"${await sealText(text, cipher, placeOf({ kind, key, revision }))}"}\n`);
}

/**
 * The record, its value decrypted.
 *
 * @throws `FAILED_PRECONDITION` without the key, `UNAVAILABLE` when it can't be reached, any other error for damage.
 */
export async function openSessionRecord(
  { kind, key, revision, stored }: SessionRecordFile,
  sealer: Sealer,
): Promise<SessionRecord> {
  const place = placeOf({ kind, key, revision });
  const value = 'value' in stored ? stored.value : await openJson(stored.sealed, sealer, place);
  return { kind, key, value, revision };
}

function placeOf({ kind, key, revision }: Omit<SessionRecord, 'value'>): string {
  return JSON.stringify(['record', kind, key, revision]);
}

/**
 * @param name What the file is called; a file of another record is `undefined` like everything that is no record.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseSessionRecord(content: Buffer, name: string): SessionRecordFile | undefined {
  const json = jsonObjectOf(content);
  if (!json) return undefined;
  const { format, session: sessionId, kind, key, revision, value, sealed } = json;
  assertReadable(
    format,
    SEALED_FORMAT,
    `A record of session ${quote(typeof sessionId === 'string' ? sessionId : '?')}`,
  );
  if (typeof sessionId !== 'string' || typeof revision !== 'string') return undefined;
  if (typeof kind !== 'string' || typeof key !== 'string' || recordName(kind, key) !== name) return undefined;
  const record = { sessionId, kind, key, revision };
  if (format === SEALED_FORMAT && typeof sealed === 'string') return { ...record, stored: { sealed } };
  return format === FORMAT && value !== undefined ? { ...record, stored: { value } } : undefined;
}
