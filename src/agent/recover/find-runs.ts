import type { ActionContext } from 'genkit';
import { listAllSnapshots } from '../../store/list/items-of.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';

/** Page size of lists. */
const LIMIT = 1000;

export interface FindRunsOptions {
  context: ActionContext | undefined;
  /** Only sessions written after this time, in ms since 1970. Default: all sessions. */
  since?: number;
  /** Called when the store has listed sessions, also older ones. */
  onListed?: () => void;
}

/** The part of a store that finding runs needs. */
export type SessionLists = Pick<SnapshotStore, 'listSessions' | 'listSnapshots'>;

/**
 * Finds the snapshots of a tenant that may be the last of an open background run: running ones that no other running one continues from.
 *
 * For a session with one leaf the session list is sufficient. A session with several leaves is read snapshot by snapshot, since each branch may
 * have a run. It does not find a run whose last turn was ended by another process, for example by an abort.
 */
export async function* findPendingLeaves(
  store: SessionLists,
  { context, since, onListed }: FindRunsOptions,
): AsyncGenerator<string> {
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ context, limit: LIMIT, ...(cursor !== undefined && { cursor }) });
    if (page.items.length > 0) onListed?.();
    const recent = page.items.filter(({ updatedAt }) => since === undefined || !(Date.parse(updatedAt) < since));
    for (const { sessionId, leafId, leafCount, status } of recent) {
      if (leafCount > 1) yield* pendingLeavesOf(store, sessionId, context);
      else if (isRunning(status)) yield leafId;
    }
    // The list is ordered by write time, newest first. A session with an inconsistent time is found by the next full search.
    cursor = recent.length > 0 ? page.nextCursor : undefined;
  } while (cursor !== undefined);
}

async function* pendingLeavesOf(
  store: SessionLists,
  sessionId: string,
  context: ActionContext | undefined,
): AsyncGenerator<string> {
  const running = (await listAllSnapshots(store, { sessionId, context })).filter(({ status }) => isRunning(status));
  const parents = new Set(running.map(({ parentId }) => parentId));
  for (const { snapshotId } of running) if (!parents.has(snapshotId)) yield snapshotId;
}

function isRunning(status: SnapshotMetadata['status']): boolean {
  return status === 'pending' || status === 'expired';
}
