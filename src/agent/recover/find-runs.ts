import type { ActionContext } from 'genkit';
import type { SnapshotStore } from '../../store/contract.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';

/** A page of a list. */
const LIMIT = 1000;

/** Which sessions to look at. */
export interface FindOptions {
  context: ActionContext | undefined;
  /** Only those written after this time, in ms since 1970; all unless told. */
  since?: number;
}

/** The part of a store that finding runs needs. */
export type SessionLists = Pick<SnapshotStore, 'listSessions' | 'listSnapshots'>;

/**
 * The snapshots of a tenant that may be the last of a background run without an end: running ones that no other running one continues from.
 *
 * The list of the sessions says it of each session with one leaf. A session with several is looked at snapshot by snapshot, since any of its
 * branches may have a run. What is not found is a run whose last turn somebody settled in place of its dead owner, by aborting it say.
 */
export async function* findPendingLeaves(store: SessionLists, { context, since }: FindOptions): AsyncGenerator<string> {
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ context, limit: LIMIT, ...(cursor !== undefined && { cursor }) });
    const recent = page.items.filter(({ updatedAt }) => since === undefined || !(Date.parse(updatedAt) < since));
    for (const { sessionId, leafId, leafCount, status } of recent) {
      if (leafCount > 1) yield* pendingLeavesOf(store, sessionId, context);
      else if (isRunning(status)) yield leafId;
    }
    // The list has what was written last first; a session whose times are odd is found by the next look at all.
    cursor = recent.length > 0 ? page.nextCursor : undefined;
  } while (cursor !== undefined);
}

async function* pendingLeavesOf(
  store: SessionLists,
  sessionId: string,
  context: ActionContext | undefined,
): AsyncGenerator<string> {
  const running = new Map<string, SnapshotMetadata>();
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({
      sessionId,
      context,
      limit: LIMIT,
      ...(cursor !== undefined && { cursor }),
    });
    for (const snapshot of page.items) if (isRunning(snapshot.status)) running.set(snapshot.snapshotId, snapshot);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const parents = new Set([...running.values()].map(({ parentId }) => parentId));
  for (const snapshotId of running.keys()) if (!parents.has(snapshotId)) yield snapshotId;
}

function isRunning(status: SnapshotMetadata['status']): boolean {
  return status === 'pending' || status === 'expired';
}
