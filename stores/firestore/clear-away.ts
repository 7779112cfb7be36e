import type { DocumentSnapshot } from '@google-cloud/firestore';
import { finishDeletion, markGone } from './delete-session.ts';
import { isConflict } from './failures.ts';
import type { PointerDocument } from './pointer-document.ts';
import { PrunedSession } from './prune-session.ts';
import { readHead } from './snapshot-document.ts';
import type { SaveTools } from './save-request.ts';

/** Removes a snapshot that counts as gone, before Firestore's TTL policy does, because its id is wanted. */
export async function clearAway(
  { tenant, reader }: SaveTools,
  document: DocumentSnapshot,
  snapshotId: string,
): Promise<void> {
  const { sessionId } = readHead(snapshotId, document.data()!);
  const pointer = sessionId === undefined ? undefined : await reader.pointer(sessionId);
  if (pointer) return clearExpired({ tenant, reader }, pointer);
  try {
    await tenant.database.commit([{ kind: 'delete', ref: document.ref, at: document.updateTime! }]);
  } catch (error) {
    // Somebody else was faster.
    if (!isConflict(error)) throw error;
  }
}

/**
 * Removes what counts as gone of a session, and has its pointer say what is left: Firestore's TTL policy removes snapshots without telling it.
 *
 * @throws Stale when somebody wrote to the session.
 */
export async function clearExpired(
  { tenant, reader }: Pick<SaveTools, 'tenant' | 'reader'>,
  pointer: PointerDocument,
): Promise<void> {
  const session = await PrunedSession.read(tenant, reader, pointer);
  if (session.tree.size > 0) return session.clear();
  const marked = await markGone(tenant, pointer);
  if (marked) await finishDeletion(tenant, marked);
}
