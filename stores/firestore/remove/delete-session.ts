import { FieldPath, type Query, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import type { DeleteResult } from '../../../src/store/contract.ts';
import { isConflict } from '../failures.ts';
import { EMPTY_LINEAGE } from '../format/lineage.ts';
import { keyOf, ownerOfOrder, ownerOfShard } from '../format/names.ts';
import { readPointer, type Pointer, type PointerDocument } from '../format/pointer-document.ts';
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
    if (!pointer && !(await tenant.hasSnapshots())) return { snapshots: 0, shards: 0 };
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
    await tenant.database.remove([{ ref, at: at! }]);
    return removed;
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

/** Removes the documents of all incarnations of a session but a live one. */
export async function removeRemains(tenant: TenantData, sessionId: string): Promise<DeleteResult> {
  const key = keyOf('session', sessionId);
  const snapshots = tenant.snapshots.orderBy('at').startAt(key).endBefore(`${key}~`).select('at');
  const shards = tenant.shards.orderBy(FieldPath.documentId()).startAt(`s${key}`).endBefore(`s${key}~`).select();
  return {
    snapshots: await removeDead(tenant, sessionId, snapshots, (document) => ownerOfOrder(document.get('at') as string)),
    shards: await removeDead(tenant, sessionId, shards, ({ id }) => ownerOfShard(id)),
  };
}

async function removeDead(
  tenant: TenantData,
  sessionId: string,
  query: Query,
  ownerOf: (document: QueryDocumentSnapshot) => string,
): Promise<number> {
  let removed = 0;
  for await (const page of tenant.database.pages(query)) {
    const document = await tenant.database.get(tenant.pointerRef(sessionId));
    const pointer = document.exists ? readPointer(document, sessionId) : undefined;
    // An incarnation that does not live after the listing never will: new ones get new names.
    const live = pointer && tenant.isLive(pointer) ? pointer.owner : undefined;
    const dead = page.filter((one) => ownerOf(one) !== live);
    removed += await tenant.database.remove(dead.map(({ ref }) => ({ ref })));
  }
  return removed;
}
