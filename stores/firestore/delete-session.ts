import type { DocumentReference, QueryDocumentSnapshot } from '@google-cloud/firestore';
import type { DeleteResult } from '../../src/store/contract.ts';
import { writePointer } from './commit-writes.ts';
import { MOST_DELETES_AT_ONCE, type DocumentWrite } from './database.ts';
import { isConflict, Stale } from './failures.ts';
import { FOREIGN_FIELDS, foreignShards, foreignState, isForeign, isForeignPointer } from './genkit-format.ts';
import { adopt } from './genkit-session.ts';
import { EMPTY_LINEAGE } from './lineage.ts';
import { keyOf, orderRange } from './names.ts';
import { readPointer, type Pointer, type PointerDocument } from './pointer-document.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/**
 * Removes a session with everything that it left in the database. Its pointer is marked first, which is when the session is gone, and removed
 * last, so that whoever comes next ends what was not ended. In between nothing is removed unless the mark is still there: a session that
 * others begin anew, or for the first time, is never taken for what is left of one.
 *
 * @returns What this call removed; what others did who ended the same removal is theirs.
 */
export async function deleteSession(tenant: Tenant, reader: SnapshotReader, sessionId: string): Promise<DeleteResult> {
  for (;;) {
    const document = await tenant.database.get(tenant.pointerRef(sessionId));
    const pointer = document.exists ? await reader.readPointer(sessionId, document) : undefined;
    if (!pointer) {
      tenant.rememberPointer(sessionId, undefined);
      const left = await leftBy(tenant, sessionId);
      if (left.snapshots.length + left.shards.length === 0) return { snapshots: 0, shards: 0 };
    }
    const marked = pointer ? await markGone(tenant, pointer) : await markLeft(tenant, sessionId);
    if (marked) return finishDeletion(tenant, marked);
  }
}

/** Marks a session as being removed; `undefined`: somebody wrote its pointer. */
export async function markGone(tenant: Tenant, pointer: PointerDocument): Promise<PointerDocument | undefined> {
  if (pointer.isGone) return pointer;
  const { head: _head, isForeign: _isForeign, ...rest } = pointer;
  return writeMark(tenant, pointer, { ...rest, isGone: true, removals: pointer.removals + 1 });
}

/** Marks what is left of a session that has no pointer; `undefined`: somebody has just begun the session. */
function markLeft(tenant: Tenant, sessionId: string): Promise<PointerDocument | undefined> {
  const times = { createdAt: '', updatedAt: '' };
  const gone = { sessionId, lineage: EMPTY_LINEAGE, removals: 1, ...times, isGone: true };
  return writeMark(tenant, undefined, gone);
}

async function writeMark(
  tenant: Tenant,
  before: PointerDocument | undefined,
  gone: Pointer,
): Promise<PointerDocument | undefined> {
  try {
    if (before?.isForeign) await adopt(tenant, before.sessionId);
    const [updateTime] = await tenant.database.commit([writePointer(tenant, before, gone, { isWritten: false })]);
    return { ...gone, ref: tenant.pointerRef(gone.sessionId), updateTime: updateTime! };
  } catch (error) {
    if (isConflict(error) || error instanceof Stale) return undefined;
    throw error;
  }
}

/** Ends the removal of a session that is marked; it may be ended already, and the session begun anew. */
export async function finishDeletion(tenant: Tenant, pointer: PointerDocument): Promise<DeleteResult> {
  const removed = { snapshots: 0, shards: 0 };
  for (let mark: PointerDocument | undefined = pointer; mark;) mark = await removeSome(tenant, mark, removed);
  tenant.rememberPointer(pointer.sessionId, undefined);
  return removed;
}

/**
 * Removes as much as one commit may, and with the last of it the mark. Every commit writes the mark, and counts only while that is as it was
 * before the documents were listed: so they are none of a session that was begun since.
 *
 * @returns The mark as it is then; `undefined`: the removal is over.
 */
async function removeSome(
  tenant: Tenant,
  mark: PointerDocument,
  removed: DeleteResult,
): Promise<PointerDocument | undefined> {
  const { snapshots, shards, isAll } = await leftBy(tenant, mark.sessionId);
  // They have no names that this store gives, so no session that is begun anew needs them.
  const foreign = await removeForeignShards(tenant, snapshots);
  const next = { ...mark, removals: mark.removals + 1 };
  const writes: DocumentWrite[] = [
    isAll
      ? { kind: 'delete', ref: mark.ref, at: mark.updateTime }
      : writePointer(tenant, mark, next, { isWritten: false }),
    ...[...snapshots, ...shards].map(({ ref }): DocumentWrite => ({ kind: 'delete', ref })),
  ];
  try {
    const [updateTime] = await tenant.database.commit(writes);
    removed.snapshots += snapshots.length;
    removed.shards += shards.length + foreign;
    return isAll ? undefined : { ...next, updateTime: updateTime! };
  } catch (error) {
    if (!isConflict(error)) throw error;
    return readMark(tenant, mark);
  }
}

/** The mark as others left it who end the same removal; `undefined`: they have ended it. */
async function readMark(tenant: Tenant, { ref, sessionId }: PointerDocument): Promise<PointerDocument | undefined> {
  const document = await tenant.database.get(ref);
  if (!document.exists || isForeignPointer(document.data()!)) return undefined;
  const pointer = readPointer(document, sessionId);
  return pointer.isGone ? pointer : undefined;
}

/** What is left of a session, beside its pointer. */
interface Left {
  readonly snapshots: readonly QueryDocumentSnapshot[];
  readonly shards: readonly QueryDocumentSnapshot[];
  /** There is no more than this. */
  readonly isAll: boolean;
}

/** As much of what is left as is removed with one commit. */
async function leftBy({ collections, database }: Tenant, sessionId: string): Promise<Left> {
  const owner = keyOf('session', sessionId);
  const { from, below } = orderRange(owner);
  const query = collections.snapshots.where('at', '>=', from).where('at', '<', below);
  const snapshots = await database.query(query.limit(MOST_DELETES_AT_ONCE).select(...FOREIGN_FIELDS));
  const limit = MOST_DELETES_AT_ONCE - snapshots.length;
  const shards = limit > 0 ? await database.page(collections.shards, { limit, prefix: `s${owner}-` }) : [];
  return { snapshots, shards, isAll: shards.length < limit };
}

/** Removes the shards of snapshots of Genkit's own store; answers how many there were. */
export async function removeForeignShards(
  tenant: Tenant,
  documents: readonly QueryDocumentSnapshot[],
): Promise<number> {
  const refs = documents.flatMap((document): DocumentReference[] => {
    const data = document.data();
    if (!isForeign(data) || data['kind'] !== 'checkpoint') return [];
    return foreignShards(foreignState(data)).map((name) => tenant.collections.shards.doc(name));
  });
  await tenant.database.deleteAll(refs);
  return refs.length;
}
