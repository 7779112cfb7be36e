import type { DocumentReference, QueryDocumentSnapshot } from '@google-cloud/firestore';
import type { DeleteResult } from '../../src/store/contract.ts';
import { writePointer } from './commit-writes.ts';
import { MOST_DELETES_AT_ONCE } from './database.ts';
import { isConflict } from './failures.ts';
import { FOREIGN_FIELDS, foreignShards, foreignState, isForeign } from './genkit-format.ts';
import { adopt } from './genkit-session.ts';
import { keyOf, orderRange } from './names.ts';
import type { PointerDocument } from './pointer-document.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/**
 * Removes a session with everything that it left in the database. Its pointer is marked first, which is when the session is gone, and removed
 * last, so that whoever comes next ends what was not ended.
 */
export async function deleteSession(tenant: Tenant, reader: SnapshotReader, sessionId: string): Promise<DeleteResult> {
  for (;;) {
    const document = await tenant.database.get(tenant.pointerRef(sessionId));
    if (!document.exists) {
      tenant.rememberPointer(sessionId, undefined);
      return removeDocuments(tenant, sessionId);
    }
    const pointer = (await reader.readPointer(sessionId, document))!;
    const marked = await markGone(tenant, pointer);
    if (marked) return finishDeletion(tenant, marked);
  }
}

/** Marks a session as being removed; `undefined`: somebody wrote its pointer. */
export async function markGone(tenant: Tenant, pointer: PointerDocument): Promise<PointerDocument | undefined> {
  if (pointer.isGone) return pointer;
  if (pointer.isForeign) await adopt(tenant, pointer.sessionId);
  const { head: _head, isForeign: _isForeign, ...rest } = pointer;
  const gone = { ...rest, isGone: true, removals: pointer.removals + 1 };
  try {
    const [updateTime] = await tenant.database.commit([writePointer(tenant, pointer, gone, { isWritten: false })]);
    return { ...gone, updateTime: updateTime! };
  } catch (error) {
    if (isConflict(error)) return undefined;
    throw error;
  }
}

/** Ends the removal of a session that is marked. */
export async function finishDeletion(tenant: Tenant, pointer: PointerDocument): Promise<DeleteResult> {
  const removed = await removeDocuments(tenant, pointer.sessionId);
  try {
    await tenant.database.commit([{ kind: 'delete', ref: pointer.ref, at: pointer.updateTime }]);
  } catch (error) {
    // Somebody else has ended it.
    if (!isConflict(error)) throw error;
  }
  tenant.rememberPointer(pointer.sessionId, undefined);
  return removed;
}

async function removeDocuments(tenant: Tenant, sessionId: string): Promise<DeleteResult> {
  const owner = keyOf('session', sessionId);
  const removed = { snapshots: 0, shards: 0 };
  const { from, below } = orderRange(owner);
  const { collections, database } = tenant;
  const query = collections.snapshots.where('at', '>=', from).where('at', '<', below);
  for (;;) {
    const found = await database.query(query.limit(MOST_DELETES_AT_ONCE).select(...FOREIGN_FIELDS));
    if (found.length === 0) break;
    removed.shards += await removeForeignShards(tenant, found);
    await database.deleteAll(found.map((document) => document.ref));
    removed.snapshots += found.length;
  }
  for (;;) {
    const found = await database.page(collections.shards, { limit: MOST_DELETES_AT_ONCE, prefix: `s${owner}-` });
    if (found.length === 0) return removed;
    await database.deleteAll(found.map((document) => document.ref));
    removed.shards += found.length;
  }
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
