import type { DocumentSnapshot, QueryDocumentSnapshot } from '@google-cloud/firestore';
import { byCreation, SessionTree } from '../../src/snapshot/lineage.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { isConflict, Stale } from './failures.ts';
import { newest, type Lineage } from './lineage.ts';
import { keyOf, orderKey, parentKey } from './names.ts';
import type { PointerDocument } from './pointer-document.ts';
import { HEAD_FIELDS, readHead } from './snapshot-document.ts';
import type { Tenant } from './tenant.ts';

/**
 * A session of Genkit's own store as this one would have it: its tree by `createdAt`, then id, because there is no order of commits. Nothing
 * is written.
 */
export async function adoptedView(
  tenant: Tenant,
  sessionId: string,
  document: DocumentSnapshot,
): Promise<PointerDocument> {
  const metas = await snapshotsOf(tenant, sessionId);
  const tree = new SessionTree();
  for (const meta of metas) tree.put(meta);
  const seqOf = new Map(metas.map((meta, seq) => [meta.snapshotId, seq]));
  const leaves = tree.leaves().map((leaf) => ({
    id: leaf.snapshotId,
    seq: seqOf.get(leaf.snapshotId)!,
    ...(leaf.status !== undefined && { status: leaf.status }),
  }));
  const listed = newest(leaves, (leaf) => leaf.id);
  const missing = new Set(
    metas.flatMap(({ parentId }) => (parentId === undefined || tree.has(parentId) ? [] : [parentId])),
  );
  const lineage: Lineage = {
    nextSeq: metas.length,
    count: metas.length,
    leaves: listed,
    moreLeaves: leaves.length - listed.length,
    missing: [...missing],
    moreMissing: false,
  };
  const last = metas.toSorted((a, b) => (writtenAt(a) < writtenAt(b) ? -1 : 1)).at(-1);
  return {
    sessionId,
    lineage,
    removals: 0,
    createdAt: metas[0]?.createdAt ?? '',
    updatedAt: last ? writtenAt(last) : '',
    isGone: false,
    isForeign: true,
    ref: document.ref,
    updateTime: document.updateTime!,
  };
}

/**
 * Gives the documents of such a session their places in this store's order; to be done before its pointer is replaced, and harmless when it
 * is done again.
 *
 * @throws Stale when one of them was removed meanwhile.
 */
export async function adopt(tenant: Tenant, sessionId: string): Promise<void> {
  const owner = keyOf('session', sessionId);
  const metas = await snapshotsOf(tenant, sessionId);
  const writes = metas.map(({ snapshotId, parentId }, seq) => ({
    kind: 'update' as const,
    ref: tenant.collections.snapshots.doc(snapshotId),
    data: { at: orderKey(owner, seq), ...(parentId !== undefined && { up: parentKey(owner, parentId) }) },
  }));
  try {
    for (let start = 0; start < writes.length; start += 200) {
      await tenant.database.commit(writes.slice(start, start + 200));
    }
  } catch (error) {
    throw isConflict(error) ? new Stale(error) : error;
  }
}

/** The session's snapshots in their order. */
export async function snapshotsOf(tenant: Tenant, sessionId: string): Promise<SnapshotMetadata[]> {
  return (await foreignDocuments(tenant, sessionId)).map(({ meta }) => meta);
}

/** The documents of the session's snapshots in their order. */
export async function foreignDocuments(
  tenant: Tenant,
  sessionId: string,
): Promise<{ document: QueryDocumentSnapshot; meta: SnapshotMetadata }[]> {
  const query = tenant.collections.snapshots.where('sessionId', '==', sessionId).select(...HEAD_FIELDS);
  const found = await tenant.database.query(query);
  const read = found.map((document) => ({ document, meta: readHead(document.id, document.data()).meta }));
  return read.toSorted((a, b) => byCreation(a.meta, b.meta));
}

function writtenAt(meta: SnapshotMetadata): string {
  return meta.updatedAt ?? meta.createdAt;
}
