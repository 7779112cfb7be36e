import { Timestamp, type DocumentData, type DocumentSnapshot } from '@google-cloud/firestore';
import { refuseCycle } from '../../src/snapshot/lineage.ts';
import { commitTime, type DocumentWrite } from './database.ts';
import { isAlive } from './lineage.ts';
import { ALONE, parentKey } from './names.ts';
import { FORMAT, HEAD_FIELDS, readHead, type SnapshotHead } from './snapshot-document.ts';
import type { Tenant } from './tenant.ts';

/** Marks are of use while a save is under way. Firestore may remove them after so many ms. */
const MARK_LIFE_MS = 86_400_000;

/**
 * The writes that belong to the first save of a snapshot without a session that has a parent. There is no pointer that would guard the save,
 * so each id has a mark instead, a document that every save writes that names the id as parent, and the first save of the id itself: of saves
 * that would close a circle together, the last finds a mark changed. So the writes fail where somebody names the snapshot meanwhile, or
 * saves the one at which its ancestors end.
 *
 * @param nonce Makes each write of a mark a change.
 * @throws `FAILED_PRECONDITION` when the snapshot would become its own ancestor.
 */
export async function markParents(tenant: Tenant, { meta }: SnapshotHead, nonce: string): Promise<DocumentWrite[]> {
  const { snapshotId, parentId } = meta;
  if (parentId === undefined) return [];
  if (parentId === snapshotId) refuseCycle(snapshotId, parentId);
  const own = await tenant.database.get(tenant.parentRef(snapshotId), ['v']);
  // Who named it before its mark was read is found; who does so later changes the mark.
  const end = (await isNamed(tenant, snapshotId)) ? await endOfPath(tenant, snapshotId, parentId) : undefined;
  const data = markData(nonce);
  const guards = end ? [own, end] : [own];
  const writes = guards.map((mark) => guardedMark(mark, data));
  const parentRef = tenant.parentRef(parentId);
  if (!end?.ref.isEqual(parentRef)) writes.push({ kind: 'set', ref: parentRef, data });
  return writes;
}

async function isNamed({ database, collections }: Tenant, snapshotId: string): Promise<boolean> {
  const namers = collections.snapshots.where('up', '==', parentKey(ALONE, snapshotId));
  return (await database.query(namers.limit(1).select())).length > 0;
}

/** @returns The mark of the ancestor that is not there; `undefined` when the path ends with one that has no parent. */
async function endOfPath(tenant: Tenant, snapshotId: string, parentId: string): Promise<DocumentSnapshot | undefined> {
  const seen = new Set<string>();
  for (let id = parentId; !seen.has(id);) {
    if (id === snapshotId) refuseCycle(snapshotId, parentId);
    seen.add(id);
    const refs = [tenant.parentRef(id), tenant.snapshotRef(id)];
    const [mark, document] = await tenant.database.getAll(refs, HEAD_FIELDS);
    const head = document!.exists ? readHead(id, document!.data()!) : undefined;
    if (!head || head.sessionId !== undefined || !isAlive(head, Date.now())) return mark;
    if (head.meta.parentId === undefined) return undefined;
    id = head.meta.parentId;
  }
  return undefined;
}

/** Writes a mark if it is still as it was read. */
function guardedMark({ ref, updateTime }: DocumentSnapshot, data: DocumentData): DocumentWrite {
  return updateTime ? { kind: 'update', ref, data, at: updateTime } : { kind: 'create', ref, data };
}

function markData(nonce: string): DocumentData {
  return { v: FORMAT, t: commitTime(), by: nonce, expireAt: Timestamp.fromMillis(Date.now() + MARK_LIFE_MS) };
}
