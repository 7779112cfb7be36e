import { FieldPath, type Query, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import type { SessionRecord } from '../../../src/store/contract.ts';
import { byKindAndKey, type RecordRead } from '../../../src/store/records/session-records.ts';
import { MOST_READ_AT_ONCE } from '../database.ts';
import { recordPrefix } from '../format/names.ts';
import { isCurrent, readRecord } from '../format/record-document.ts';
import { revisionKey, type TenantDatabase } from '../tenant-database.ts';
import type { SnapshotReader } from './snapshot-reader.ts';

/** The records of a request, by kind and key. The session's pointer is read only if the expiry of a record has passed. */
export async function readRecords(reader: SnapshotReader, request: RecordRead): Promise<SessionRecord[]> {
  const { tenant } = reader;
  const sealer = tenant.sealer('session', request.sessionId);
  const found = await Promise.all((await findRecords(tenant, request)).map((one) => readRecord(one, sealer)));
  const now = tenant.database.now();
  const mayBeExpired = found.some(({ until }) => until <= now);
  const pointer = mayBeExpired ? await reader.livePointer(request.sessionId) : undefined;
  const current = found.filter((record) => isCurrent(record, pointer, now));
  for (const record of current) {
    const { revision, updateTime, until } = record;
    tenant.caches.revisions.set(revisionKey(record, revision), { updateTime, until }, 1);
  }
  return current.map(({ kind, key, value, revision }) => ({ kind, key, value, revision })).toSorted(byKindAndKey);
}

async function findRecords(
  tenant: TenantDatabase,
  { sessionId, kind, keys }: RecordRead,
): Promise<QueryDocumentSnapshot[]> {
  const { database } = tenant;
  if (keys) {
    const refs = keys.map((key) => tenant.recordRef(sessionId, kind!, key));
    const documents = await database.getShared(refs);
    return documents.filter((document): document is QueryDocumentSnapshot => document.exists);
  }
  return database.all(recordsOf(tenant, sessionId, kind), MOST_READ_AT_ONCE);
}

/** All records of a session, or those of a kind. */
export function recordsOf({ records }: TenantDatabase, sessionId: string, kind?: string): Query {
  const prefix = recordPrefix(sessionId, kind);
  return records.orderBy(FieldPath.documentId()).startAt(prefix).endBefore(`${prefix}~`);
}
