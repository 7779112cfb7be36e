import { FieldPath, Filter, type Query, type QueryDocumentSnapshot, type Timestamp } from '@google-cloud/firestore';
import type { DeleteResult, DeleteSessionsResult } from '../../../src/store/contract.ts';
import { assertExpectedLeaf } from '../../../src/store/choose-leaf.ts';
import { chunksOf } from '../../chain/chunks.ts';
import { PAGE, type Database } from '../database.ts';
import { isConflict } from '../failures.ts';
import { EMPTY_LINEAGE } from '../format/lineage.ts';
import { keyOf, ownerOfOrder, ownerOfShard, recordPrefix, sessionKeyIn } from '../format/names.ts';
import {
  LIST_FIELDS,
  readPointer,
  type Pointer,
  type PointerDocument,
  writePointer,
} from '../format/pointer-document.ts';
import { isCurrent, readRecordHead, RECORD_FIELDS, type RecordHead } from '../format/record-document.ts';
import { recordsOf } from '../read/records.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/** Sessions whose documents one query lists: a query of Firestore takes 30 ranges. */
const MOST_RANGES = 30;
/** Documents of one page of a list that has little more than their names. */
const NAMES = 1000;

type Removed = Omit<DeleteSessionsResult, 'sessions'>;

/**
 * Removes a session with all its documents. Its pointer is marked first; from then on the session does not exist. The pointer is removed
 * last, so that `prune` can finish an interrupted deletion. A session with the same id that begins meanwhile replaces the mark and is another
 * owner, so its data is not removed.
 *
 * @param expectedLeafId The leaf that the session must have. Optional.
 * @returns The documents that this call removed.
 */
export async function deleteSession(
  tenant: TenantDatabase,
  sessionId: string,
  expectedLeafId: string | undefined,
): Promise<DeleteResult> {
  for (;;) {
    const document = await tenant.database.get(tenant.pointerRef(sessionId));
    const pointer = document.exists ? readPointer(document, sessionId) : undefined;
    if (!pointer) await tenant.hasSnapshots();
    const leaf = pointer && tenant.isLive(pointer) ? pointer.lineage.leaves.at(-1)?.id : undefined;
    assertExpectedLeaf(expectedLeafId, sessionId, leaf ?? null);
    if (pointer) {
      const removed = await removeSession(tenant, pointer);
      if (removed) return removed;
    } else {
      const { snapshots, shards } = await removeRemains(tenant, [sessionId]);
      await forgetRecords(tenant, [sessionId]);
      return { snapshots, shards };
    }
  }
}

/** Removes the session of a pointer; `undefined` if the pointer was written meanwhile. */
export async function removeSession(
  tenant: TenantDatabase,
  pointer: PointerDocument,
): Promise<DeleteResult | undefined> {
  try {
    const marked = await mark(tenant, [pointer]);
    const { snapshots, shards } = await removeRemains(tenant, [pointer.sessionId], { gone: new Set([pointer.owner]) });
    await removeMarked(tenant, [pointer], marked);
    return { snapshots, shards };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

/** {@link deleteSession} for many sessions: their documents are listed and removed together. */
export async function deleteSessions(
  tenant: TenantDatabase,
  sessionIds: readonly string[],
): Promise<DeleteSessionsResult> {
  const result = { sessions: 0, snapshots: 0, shards: 0, records: 0 };
  await tenant.hasSnapshots();
  for (const ids of chunksOf([...new Set(sessionIds)], PAGE)) {
    const pointers = await readPointers(tenant, ids);
    const marked = await markAll(tenant, pointers);
    const gone = new Set(pointers.map(({ owner }) => owner));
    const { snapshots, shards, records } = await removeRemains(tenant, ids, { gone });
    await removeMarked(tenant, pointers, marked);
    // An interrupted deletion may have left the keys of sessions whose pointers it removed.
    const there = new Set(pointers.map(({ sessionId }) => sessionId));
    await forgetRecords(
      tenant,
      ids.filter((id) => !there.has(id)),
    );
    result.sessions += pointers.filter((pointer) => tenant.isLive(pointer)).length;
    result.snapshots += snapshots;
    result.shards += shards;
    result.records += records;
  }
  return result;
}

async function readPointers(tenant: TenantDatabase, sessionIds: readonly string[]): Promise<PointerDocument[]> {
  const refs = sessionIds.map((id) => tenant.pointerRef(id));
  const documents = await tenant.database.getAll(refs, LIST_FIELDS);
  return documents.flatMap((document, i) => (document.exists ? [readPointer(document, sessionIds[i])] : []));
}

/** A pointer that marks its session as removed. */
type Marked = Parameters<Database['remove']>[0][number];

/** @throws A conflict when one of the pointers was written meanwhile; then none is marked. */
async function mark(tenant: TenantDatabase, pointers: readonly PointerDocument[]): Promise<Marked[]> {
  if (pointers.length === 0) return [];
  const writes = pointers.map((pointer) => {
    const { sessionId, owner, createdAt, updatedAt } = pointer;
    const gone: Pointer = { sessionId, owner, createdAt, updatedAt, lineage: EMPTY_LINEAGE, usage: {}, isGone: true };
    return writePointer(tenant, pointer, gone, { isWritten: false });
  });
  const times: Timestamp[] = await tenant.database.commit(writes);
  for (const { sessionId } of pointers) tenant.caches.pointers.delete(tenant.keyOf(sessionId));
  return pointers.map(({ ref }, i) => ({ ref, at: times[i]! }));
}

/** Removes marked pointers, and the data keys of their sessions. */
async function removeMarked(
  tenant: TenantDatabase,
  pointers: readonly PointerDocument[],
  marked: readonly Marked[],
): Promise<void> {
  for (const pointer of pointers) await tenant.sealerOf(pointer).forget();
  const removed = await tenant.database.remove(marked);
  // A session that began again meanwhile may have written records.
  const ids = pointers.map(({ sessionId }) => sessionId);
  const begun = removed === marked.length ? [] : (await readPointers(tenant, ids)).map(({ sessionId }) => sessionId);
  await forgetRecords(
    tenant,
    ids.filter((id) => !begun.includes(id)),
  );
}

/** Removes the data keys of the records of sessions that do not exist. */
async function forgetRecords(tenant: TenantDatabase, sessionIds: readonly string[]): Promise<void> {
  for (const id of sessionIds) await tenant.sealer('session', id).forget();
}

/**
 * Removes the data key of the records of a session, if the session does not exist and all of its records are dead. Called before these are
 * removed, so that an interrupted call can be repeated.
 *
 * @param isDead Default: a record that waits for the session to begin is not dead.
 */
export async function forgetDeadRecords(
  tenant: TenantDatabase,
  sessionId: string,
  isDead = (record: RecordHead): boolean => isDeadRecord(tenant, record, undefined, false),
): Promise<void> {
  if (!tenant.isEncrypted) return;
  const records = await tenant.database.all(recordsOf(tenant, sessionId).select(...RECORD_FIELDS));
  if (!records.every((document) => isDead(readRecordHead(document)))) return;
  const [pointer] = await readPointers(tenant, [sessionId]);
  if (!pointer || !tenant.isLive(pointer)) await forgetRecords(tenant, [sessionId]);
}

/** Marks the pointers. Reads those that were written meanwhile again, until all are marked. */
async function markAll(tenant: TenantDatabase, pointers: readonly PointerDocument[]): Promise<Marked[]> {
  try {
    return await mark(tenant, pointers);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  const [first, ...rest] = pointers;
  if (rest.length === 0) return markAll(tenant, await readPointers(tenant, [first!.sessionId]));
  const marked: Marked[] = [];
  for (const half of chunksOf(pointers, Math.ceil(pointers.length / 2))) {
    marked.push(...(await markAll(tenant, half)));
  }
  return marked;
}

/**
 * Removes the documents of all incarnations of sessions, except live ones.
 *
 * @param options.gone Incarnations that are known to be dead. Optional: for others the sessions' pointers are read.
 * @param options.keepsWaiting Whether a record that waits for the session to begin is kept. Default: no.
 */
export async function removeRemains(
  tenant: TenantDatabase,
  sessionIds: readonly string[],
  { gone = new Set(), keepsWaiting = false }: { gone?: ReadonlySet<string>; keepsWaiting?: boolean } = {},
): Promise<Removed> {
  const prefixes = (before: string): string[] => sessionIds.map((id) => before + keyOf('session', id));
  const byId = FieldPath.documentId();
  const dead = { tenant, sessionIds, gone };
  const isOfAnother = (owner: string | null, live: Pointer | undefined): boolean => owner !== live?.owner;
  const snapshots = await removeDead({
    ...dead,
    queries: queriesOf(tenant.snapshots.orderBy('at').select('at'), 'at', prefixes('')),
    ownerOf: (document) => ownerOfOrder(document.get('at') as string),
    isDead: isOfAnother,
  });
  const shards = await removeDead({
    ...dead,
    queries: queriesOf(tenant.shards.orderBy(byId).select(), byId, prefixes('s')),
    ownerOf: ({ id }) => ownerOfShard(id),
    isDead: isOfAnother,
  });
  // After the snapshots: a write of a record that requires a snapshot then fails.
  const records = await removeDead({
    ...dead,
    queries: queriesOf(
      tenant.records.orderBy(byId).select(...RECORD_FIELDS),
      byId,
      sessionIds.map((id) => recordPrefix(id)),
    ),
    ownerOf: (document) => document.get('owner') as string | null,
    isDead: (_owner, live, document) => isDeadRecord(tenant, readRecordHead(document), live, !keepsWaiting),
  });
  return { snapshots, shards, records };
}

/**
 * Whether a record is to be removed: its incarnation of the session no longer exists, or it is an orphan.
 *
 * @param isOrphan Whether a record of a session that does not exist is an orphan. Otherwise it waits for the session to begin.
 */
export function isDeadRecord(
  { database }: TenantDatabase,
  record: RecordHead,
  live: Pointer | undefined,
  isOrphan: boolean,
): boolean {
  if (record.owner !== null && record.owner !== live?.owner) return true;
  return !isCurrent(record, live, database.now()) || (!live && isOrphan);
}

/** Removes the records of an incarnation whose deletion was interrupted: all that were written before its pointer was marked. */
export async function removeRecordsBefore(
  tenant: TenantDatabase,
  { sessionId, updateTime }: PointerDocument,
): Promise<void> {
  const { database } = tenant;
  const before = updateTime.valueOf();
  const records = await database.all(recordsOf(tenant, sessionId).select(), NAMES);
  await database.removeUnchanged(records.filter((record) => record.updateTime.valueOf() <= before));
}

/** Queries for the documents whose field begins with one of the prefixes. */
function queriesOf(query: Query, field: string | FieldPath, prefixes: readonly string[]): Query[] {
  return chunksOf(prefixes, MOST_RANGES).map((some) =>
    query.where(
      Filter.or(
        ...some.map((prefix) => Filter.and(Filter.where(field, '>=', prefix), Filter.where(field, '<', `${prefix}~`))),
      ),
    ),
  );
}

interface DeadDocuments {
  readonly tenant: TenantDatabase;
  readonly sessionIds: readonly string[];
  /** Incarnations that are known to be dead. */
  readonly gone: ReadonlySet<string>;
  readonly queries: readonly Query[];
  /** The incarnation that a document names, if any. */
  readonly ownerOf: (document: QueryDocumentSnapshot) => string | null;
  /** Decides by the session's pointer, if the session exists. */
  readonly isDead: (owner: string | null, live: Pointer | undefined, document: QueryDocumentSnapshot) => boolean;
}

/** Lists documents and removes them, until none is written in between. Returns how many were removed. */
async function removeDead({ tenant, sessionIds, gone, queries, ownerOf, isDead }: DeadDocuments): Promise<number> {
  const { database } = tenant;
  let removed = 0;
  for (let left = 1; left > 0;) {
    left = 0;
    for await (const batch of batches(database, queries)) {
      const isSure = batch.every((document) => gone.has(ownerOf(document) ?? ''));
      // An incarnation that is dead after the listing stays dead: a new one gets another name.
      const pointers = isSure ? [] : await readPointers(tenant, sessionIds);
      const live = new Map(
        pointers.flatMap((one) => (tenant.isLive(one) ? [[keyOf('session', one.sessionId), one] as const] : [])),
      );
      const dead = batch.filter((document) => {
        const owner = ownerOf(document);
        return gone.has(owner ?? '') || isDead(owner, live.get(sessionKeyOf(document)), document);
      });
      const count = await database.removeUnchanged(dead);
      removed += count;
      left += dead.length - count;
    }
  }
  return removed;
}

/** The documents of queries, in batches that fill a commit of deletions, except the last one. */
async function* batches(database: Database, queries: readonly Query[]): AsyncGenerator<QueryDocumentSnapshot[]> {
  let batch: QueryDocumentSnapshot[] = [];
  for (const query of queries) {
    for await (const page of database.pages(query, NAMES)) {
      batch.push(...page);
      if (batch.length < PAGE) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

/** The key of a document's session: snapshots have it in their place, shards and records in their names. */
function sessionKeyOf(document: QueryDocumentSnapshot): string {
  const at = document.get('at') as string | undefined;
  return at === undefined ? sessionKeyIn(document.id.slice(1)) : sessionKeyIn(at);
}
