import type { SessionSnapshot, SessionStore, SessionStoreOptions } from 'genkit/beta';
import { logWarning, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { SnapshotStatus } from '../../snapshot/snapshot.ts';
import type { RunSnapshot } from '../run-lease.ts';

/**
 * Aborts the run of a snapshot for a program that has the store but not the agent, such as an operator's tool. It reaches the sessions of all
 * users; `agent.abort` only those of the caller.
 *
 * @param options The context selects the tenant.
 * @returns The status before: `'pending'` when it has stopped the run; `undefined` when there is no such snapshot.
 * @throws The store's errors.
 */
export async function abortRun<State>(
  store: SessionStore<State>,
  snapshotId: string,
  options: SessionStoreOptions = {},
): Promise<SnapshotStatus | undefined> {
  assertId(snapshotId, 'snapshotId');
  return abortIn(store, snapshotId, options, () => false);
}

/**
 * Marks a running snapshot as aborted, and with it the other open turns of its background run, because their worker may be dead. A live worker
 * stops when it is notified or renews its lease. A terminal snapshot is not changed. The next abort completes one that was
 * interrupted or failed for other turns.
 *
 * @param isHidden Whether the caller must not see the snapshot; it then counts as missing.
 * @returns The status before; `undefined` when there is no such snapshot.
 */
export async function abortIn<State>(
  store: SessionStore<State>,
  snapshotId: string,
  options: SessionStoreOptions,
  isHidden: (snapshot: SessionSnapshot<State> | undefined) => boolean,
): Promise<SnapshotStatus | undefined> {
  /** Returns the snapshot as it was before. */
  const abort = async (id: string, isExcluded: typeof isHidden): Promise<RunSnapshot<State> | undefined> => {
    const found: { before?: RunSnapshot<State> } = {};
    await store.saveSnapshot(
      id,
      (current) => {
        found.before = isExcluded(current) ? undefined : current;
        if (found.before?.status !== 'pending') return null;
        return { ...found.before, status: 'aborted', finishReason: 'aborted', updatedAt: new Date().toISOString() };
      },
      options,
    );
    return found.before;
  };
  const named = await abort(snapshotId, isHidden);
  const run = named?.backgroundRun;
  if (!run || !isNowAborted(named)) return named?.status;
  const isOfAnotherRun = (turn: RunSnapshot<State> | undefined) => turn?.backgroundRun?.id !== run.id;
  try {
    // From the last turn back, and from the named one in case the last was never stored.
    for (const from of run.id === snapshotId ? [named.parentId] : [run.id, named.parentId]) {
      for (let id = from; id !== undefined && id !== run.baseId;) {
        const turn = await abort(id, isOfAnotherRun);
        id = turn && isNowAborted(turn) ? turn.parentId : undefined;
      }
    }
  } catch (error) {
    logWarning(
      `Snapshot ${quote(snapshotId)} is aborted, but not every other turn of its run; abort it again to complete this.`,
      error,
    );
  }
  return named.status;
}

/** Takes the snapshot as it was before. The turns before a completed one have all ended. */
function isNowAborted({ status }: RunSnapshot<unknown>): boolean {
  return status === 'pending' || status === 'aborted';
}
