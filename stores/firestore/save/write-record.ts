import { randomBytes } from 'node:crypto';
import type {
  DocumentReference,
  DocumentData,
  DocumentSnapshot,
  QueryDocumentSnapshot,
  Timestamp,
} from '@google-cloud/firestore';
import {
  assertMayWrite,
  HOLD_RECORDS,
  recordChanged,
  snapshotGone,
  type RecordWrite,
} from '../../../src/store/records/session-records.ts';
import type { DocumentWrite } from '../database.ts';
import { isConflict } from '../failures.ts';
import { writePointer, type PointerDocument } from '../format/pointer-document.ts';
import { keyOf } from '../format/names.ts';
import { isCurrent, readRecordHead, recordFields } from '../format/record-document.ts';
import type { SnapshotReader } from '../read/snapshot-reader.ts';
import { revisionKey, type TenantDatabase } from '../tenant-database.ts';

/** How often a write is tried while others write the record. */
const MOST_ATTEMPTS = 20;

/** The condition of the commit on the record's document: its update time, that it is missing, or none. */
type Guard = Timestamp | 'absent' | 'any';

/**
 * Creates, replaces or removes a record. The commit checks the expected revision, so the record is read only if this process does not know
 * the write that made the revision. A required snapshot is read; if the record may not exist yet, under the lock of a transaction, because
 * a session's records are removed after its snapshots.
 *
 * @returns The revision; `null`: the record was removed.
 */
export async function writeRecord(reader: SnapshotReader, request: RecordWrite): Promise<string | null> {
  const { tenant } = reader;
  const { database, caches } = tenant;
  const { sessionId, kind, key, value } = request;
  const ref = tenant.recordRef(sessionId, kind, key);
  const pointer = await pointerOf(reader, sessionId);
  const revision = randomBytes(12).toString('base64url');
  const until = pointer?.until ?? tenant.expiry().until ?? Infinity;
  const cipher = await tenant.sealer('session', sessionId).cipher();
  const data = value === undefined ? undefined : await recordFields(request, value, { revision, until, cipher });
  let guard = knownGuard(tenant, request, pointer);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    if (guard === undefined) {
      const document = await database.get(ref);
      const current = document.exists ? readRecordHead(document as QueryDocumentSnapshot) : undefined;
      // An earlier attempt was made, though its answer was lost.
      if (current?.revision === revision) return revision;
      const isThere = current && isCurrent(current, pointer, database.now());
      assertMayWrite(request, isThere ? current.revision : undefined, () => true);
      guard = current?.updateTime ?? 'absent';
    }
    try {
      const write = planWrite(ref, data, guard);
      const commitWrite = kind === HOLD_RECORDS ? commitHold : commit;
      const updateTime = await commitWrite(reader, request, write);
      if (updateTime && data) caches.revisions.set(revisionKey(request, revision), { updateTime, until }, 1);
      return data ? revision : null;
    } catch (error) {
      if (!isConflict(error)) throw error;
      guard = undefined;
    }
  }
  throw recordChanged(request);
}

/** The session's pointer if sessions expire. It may be cached: its expiry is never later than the real one. */
async function pointerOf(reader: SnapshotReader, sessionId: string): Promise<PointerDocument | undefined> {
  const { tenant } = reader;
  if (tenant.settings.expireAfterMs === undefined) return undefined;
  const known = tenant.pointer(sessionId);
  return known && known !== 'absent' && tenant.isLive(known) ? known : reader.livePointer(sessionId);
}

/** The condition for the commit; `undefined` if the record must be read first. */
function knownGuard(
  { caches, database }: TenantDatabase,
  request: RecordWrite,
  pointer: PointerDocument | undefined,
): Guard | undefined {
  const { expectedRevision, value } = request;
  if (expectedRevision === undefined) return 'any';
  if (expectedRevision === null) return value === undefined ? undefined : 'absent';
  const known = caches.revisions.get(revisionKey(request, expectedRevision));
  return known && isCurrent(known, pointer, database.now()) ? known.updateTime : undefined;
}

function planWrite(ref: DocumentReference, data: DocumentData | undefined, guard: Guard): DocumentWrite | undefined {
  if (!data) {
    if (guard === 'absent') return undefined;
    return { kind: 'delete', ref, ...(guard !== 'any' && { at: guard }) };
  }
  if (guard === 'any') return { kind: 'set', ref, data };
  return guard === 'absent' ? { kind: 'create', ref, data } : { kind: 'update', ref, data, at: guard };
}

/** @returns The update time of the record, if the commit returns it. */
async function commit(
  reader: SnapshotReader,
  request: RecordWrite,
  write: DocumentWrite | undefined,
): Promise<Timestamp | undefined> {
  const { database } = reader.tenant;
  const { ifSnapshot, sessionId } = request;
  if (ifSnapshot === undefined) return write && (await database.commit([write]))[0];
  const ref = reader.tenant.snapshotRef(ifSnapshot);
  const ownedWrite = async (document: DocumentSnapshot): Promise<DocumentWrite | undefined> => {
    const snapshot = await reader.snapshot(ifSnapshot, document);
    if (snapshot?.sessionId !== sessionId) throw snapshotGone(request);
    return write && ownedBy(snapshot.owner, write);
  };
  if (write && 'at' in write && write.at) {
    // No lock is needed: a deletion that comes in between also removes this record, before or after this write.
    const owned = await ownedWrite(await database.get(ref));
    return (await database.commit([owned!]))[0];
  }
  // A transaction returns no update time.
  await database.readAndCommit(ref, ownedWrite);
  return undefined;
}

/** The write of a record for an incarnation of its session. */
function ownedBy(owner: string | null, write: DocumentWrite): DocumentWrite {
  return 'data' in write ? { ...write, data: { ...write.data, owner } } : write;
}

/**
 * Commits a record that puts a session on hold, or its removal, together with the session's pointer. The pointer lists the holds, and has
 * no expiry while there is one.
 */
async function commitHold(
  reader: SnapshotReader,
  request: RecordWrite,
  write: DocumentWrite | undefined,
): Promise<Timestamp | undefined> {
  const { tenant } = reader;
  const { ifSnapshot, sessionId, value } = request;
  const pointer = await reader.livePointer(sessionId);
  const snapshot = ifSnapshot === undefined ? undefined : await reader.snapshot(ifSnapshot);
  if (ifSnapshot !== undefined && (!pointer || snapshot?.owner !== pointer.owner)) throw snapshotGone(request);
  const writes: DocumentWrite[] = write ? [ownedBy(snapshot?.owner ?? null, write)] : [];
  if (pointer) {
    const name = keyOf('key', request.key);
    const { holds: before = [], until: _, ...rest } = pointer;
    const holds = [...before.filter((other) => other !== name), ...(value === undefined ? [] : [name])];
    const changed = { ...rest, ...(holds.length > 0 ? { holds } : tenant.expiry()) };
    writes.push(writePointer(tenant, pointer, changed, { isWritten: false }));
    tenant.caches.pointers.delete(tenant.keyOf(sessionId));
  }
  return writes.length > 0 ? (await tenant.database.commit(writes))[0] : undefined;
}
