import { FieldPath, type Query, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import type { DeleteResult } from '../../../src/store/contract.ts';
import { isConflict } from '../failures.ts';
import { EMPTY_LINEAGE } from '../format/lineage.ts';
import { keyOf, ownerOfOrder, ownerOfShard } from '../format/names.ts';
import { readPointer, type Pointer, type PointerDocument } from '../format/pointer-document.ts';
import { isCurrent, readRecordHead, RECORD_FIELDS, type RecordHead } from '../format/record-document.ts';
import { recordsOf } from '../read/records.ts';
import { writePointer } from '../save/commit-save.ts';
import type { TenantData } from '../tenant-data.ts';

/**
 * Removes a session with all its documents. Its pointer is marked first, which is when the session is gone, and removed last: a deletion
 * that is interrupted is finished by `prune`. A session that is begun anew meanwhile replaces the mark, and is another owner, so nothing of
 * it is removed.
 *
 * @returns The documents that this call removed.
 */
export async function deleteSession(tenant: TenantData, sessionId: string): Promise<DeleteResult> {
  for (;;) {
    const document = await tenant.database.get(tenant.pointerRef(sessionId));
    const pointer = document.exists ? readPointer(document, sessionId) : undefined;
    if (!pointer) await tenant.hasSnapshots();
    const removed = pointer ? await removeSession(tenant, pointer) : await removeRemains(tenant, sessionId);
    if (removed) return removed;
  }
}

/** Removes a session as its pointer names it; `undefined`: the pointer was written meanwhile. */
export async function removeSession(tenant: TenantData, pointer: PointerDocument): Promise<DeleteResult | undefined> {
  const { sessionId, owner, createdAt, updatedAt, ref } = pointer;
  const gone: Pointer = { sessionId, owner, createdAt, updatedAt, lineage: EMPTY_LINEAGE, usage: {}, isGone: true };
  try {
    const [at] = await tenant.database.commit([writePointer(tenant, pointer, gone, { isWritten: false })]);
    tenant.caches.pointers.delete(tenant.keyOf(sessionId));
    const removed = await removeRemains(tenant, sessionId);
    await tenant.sealerOf(pointer).forget();
    // A session that was begun anew meanwhile may have written records.
    const isNone = (await tenant.database.remove([{ ref, at: at! }])) > 0;
    if (isNone) await tenant.sealer('session', sessionId).forget();
    return removed;
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

/**
 * Removes the documents of all incarnations of a session but a live one.
 *
 * @param isOrphan Whether a record that was not written for a certain incarnation goes too while the session is not there. Default: yes.
 */
export async function removeRemains(
  tenant: TenantData,
  sessionId: string,
  isOrphan: (record: RecordHead) => boolean = () => true,
): Promise<DeleteResult> {
  const key = keyOf('session', sessionId);
  const snapshots = tenant.snapshots.orderBy('at').startAt(key).endBefore(`${key}~`).select('at');
  const shards = tenant.shards.orderBy(FieldPath.documentId()).startAt(`s${key}`).endBefore(`s${key}~`).select();
  const remove = (query: Query, isDead: IsDead): Promise<number> => removeDead(tenant, sessionId, query, isDead);
  const removed = {
    snapshots: await remove(snapshots, (document, live) => ownerOfOrder(document.get('at') as string) !== live?.owner),
    shards: await remove(shards, ({ id }, live) => ownerOfShard(id) !== live?.owner),
  };
  // After the snapshots: a record that is written only if a snapshot is there can't come any more.
  await remove(recordsOf(tenant, sessionId).select(...RECORD_FIELDS), (document, live) =>
    isDeadRecord(tenant, readRecordHead(document), live, isOrphan),
  );
  return removed;
}

/** Whether a record is of an incarnation of its session that is gone, or of none. */
export function isDeadRecord(
  { database }: TenantData,
  record: RecordHead,
  live: Pointer | undefined,
  isOrphan: (record: RecordHead) => boolean,
): boolean {
  if (record.owner !== null && record.owner !== live?.owner) return true;
  return !isCurrent(record, live, database.now()) || (!live && isOrphan(record));
}

/** Removes the records of an incarnation whose deletion was interrupted: all that were written before its pointer was marked. */
export async function removeRecordsBefore(
  tenant: TenantData,
  { sessionId, updateTime }: PointerDocument,
): Promise<void> {
  const mark = updateTime.valueOf();
  const records = recordsOf(tenant, sessionId).select();
  await removeDead(tenant, sessionId, records, (document) => document.updateTime.valueOf() <= mark);
}

type IsDead = (document: QueryDocumentSnapshot, live: PointerDocument | undefined) => boolean;

/** Removes documents as they are listed, until none is written meanwhile; answers how many. */
async function removeDead(tenant: TenantData, sessionId: string, query: Query, isDead: IsDead): Promise<number> {
  let removed = 0;
  for (let left = 1; left > 0;) {
    left = 0;
    for await (const page of tenant.database.pages(query)) {
      const document = await tenant.database.get(tenant.pointerRef(sessionId));
      const pointer = document.exists ? readPointer(document, sessionId) : undefined;
      // An incarnation that does not live after the listing never will: new ones get new names.
      const live = pointer && tenant.isLive(pointer) ? pointer : undefined;
      const dead = page.filter((one) => isDead(one, live));
      const gone = await tenant.database.remove(dead.map(({ ref, updateTime }) => ({ ref, at: updateTime })));
      removed += gone;
      left += dead.length - gone;
    }
  }
  return removed;
}
