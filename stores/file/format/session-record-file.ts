import type { SessionRecord } from '../../../src/store/contract.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { hashOf } from './names.ts';
import { formatSealable, openSealable, parseSealable, type Sealable } from './sealable.ts';

/** A session record's file that was read; its value may be encrypted. */
export interface SessionRecordFile extends Omit<SessionRecord, 'value'>, Pick<Sealable, 'stored'> {
  readonly sessionId: string;
}

/** The prefix of the names of all records of a kind. */
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
  const head = { session: sessionId, kind, key, revision };
  return Buffer.from(await formatSealable(head, { name: 'value', value, place: placeOf(head) }, cipher));
}

/** The record, its value decrypted. @throws as {@link openSealable}. */
export async function openSessionRecord(
  file: SessionRecordFile,
  sealer: Sealer,
  damaged: () => Error,
): Promise<SessionRecord> {
  const { kind, key, revision } = file;
  const value = await openSealable(file, { sealer, place: placeOf(file), damaged });
  return { kind, key, value, revision };
}

function placeOf({ kind, key, revision }: Omit<SessionRecord, 'value'>): string {
  return JSON.stringify(['record', kind, key, revision]);
}

/**
 * @param name The file's name. The result is `undefined` for the file of another record, and for anything else.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseSessionRecord(content: Buffer, name: string): SessionRecordFile | undefined {
  const read = parseSealable(content, 'value', ({ session }) => `A record of session ${JSON.stringify(session)}`);
  const { session: sessionId, kind, key, revision } = read?.head ?? {};
  if (!read || typeof sessionId !== 'string' || typeof revision !== 'string') return undefined;
  if (typeof kind !== 'string' || typeof key !== 'string' || recordName(kind, key) !== name) return undefined;
  return { sessionId, kind, key, revision, stored: read.stored };
}
