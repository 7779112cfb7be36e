import { FieldValue, Timestamp, type DocumentData, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { dataLoss, quote } from '../../../src/errors.ts';
import { parseJson, stringifyJson, type Json } from '../../../src/json/value.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import type { RecordWrite } from '../../../src/store/records/session-records.ts';
import { assertOwnDocument, FORMAT, SEALED_FORMAT } from './foreign-layout.ts';
import { packText, packTextNow, unpackJson, unpackText } from './packed-text.ts';
import type { Pointer } from './pointer-document.ts';

/** A session record's document without the value. */
export interface RecordHead {
  readonly sessionId: string;
  readonly kind: string;
  readonly key: string;
  /** Names the write that created it. */
  readonly revision: string;
  /** The incarnation of the session that it was written for, if the write named a snapshot. */
  readonly owner: string | null;
  /** When its session expires, in ms, as known at the write; `Infinity`: never. */
  readonly until: number;
  readonly written: Timestamp;
  readonly updateTime: Timestamp;
}

/** Fields of {@link RecordHead}. */
export const RECORD_FIELDS = ['v', 'name', 'revision', 'owner', 'until', 'written'] as const;

/** The fields of a record that is written. */
export async function recordFields(
  { sessionId, kind, key }: RecordWrite,
  value: Json,
  { revision, until, cipher }: Pick<RecordHead, 'revision' | 'until'> & { readonly cipher: Cipher | undefined },
): Promise<DocumentData> {
  const place = placeOf({ kind, key, revision });
  return {
    v: cipher ? SEALED_FORMAT : FORMAT,
    name: packTextNow(JSON.stringify([sessionId, kind, key])),
    value: await packText(stringifyJson(value), { cipher, place }),
    revision,
    owner: null,
    until: until === Infinity ? null : Timestamp.fromMillis(until),
    written: FieldValue.serverTimestamp(),
  };
}

/** @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, `DATA_LOSS` when it is damaged. */
export function readRecordHead(document: QueryDocumentSnapshot): RecordHead {
  const { updateTime } = document;
  const data = document.data();
  assertOwnDocument(data, 'A session record');
  try {
    const [sessionId, kind, key] = unpackJson(data['name'] as Buffer) as [string, string, string];
    const { revision, owner, until, written } = data as Pick<RecordHead, 'revision' | 'owner' | 'written'> & {
      until: Timestamp | null;
    };
    return { sessionId, kind, key, revision, owner, until: until?.toMillis() ?? Infinity, written, updateTime };
  } catch {
    throw dataLoss(`The session record in ${document.ref.path} is damaged. Restore it from a backup, or remove it.`);
  }
}

function placeOf({ kind, key, revision }: Pick<RecordHead, 'kind' | 'key' | 'revision'>): string {
  return JSON.stringify(['record', kind, key, revision]);
}

/** @throws as {@link readRecordHead}; `FAILED_PRECONDITION` without the encryption key, `UNAVAILABLE` when that can't be reached. */
export async function readRecord(
  document: QueryDocumentSnapshot,
  sealer: Sealer,
): Promise<RecordHead & { readonly value: Json }> {
  const head = readRecordHead(document);
  try {
    const opener = { sealer, place: placeOf(head) };
    return { ...head, value: parseJson(await unpackText(document.get('value') as Buffer, opener)) };
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    const { sessionId, kind, key } = head;
    throw dataLoss(
      `The record ${quote(key)} of kind ${quote(kind)} of session ${quote(sessionId)} can't be read: its document is damaged. ` +
        'Restore it from a backup, or write it again.',
    );
  }
}

/**
 * Whether a record has not expired. Its own expiry may be earlier than its session's, but is never later. So after it the pointer decides:
 * the record is current if the same session still exists, and not a later one of the same id.
 *
 * @param pointer The session's pointer; `undefined` if the session does not exist.
 */
export function isCurrent({ until }: Pick<RecordHead, 'until'>, pointer: Pointer | undefined, now: number): boolean {
  return until > now || (pointer !== undefined && until > (pointer.begun ?? 0));
}
