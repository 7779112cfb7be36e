import type { SessionSnapshot, SessionStore, SessionStoreOptions } from 'genkit/beta';
import type { SnapshotStatus } from '../../snapshot/snapshot.ts';

/**
 * Marks a running snapshot as aborted; a terminal snapshot is not changed. Its worker stops when it hears of it, or renews its lease.
 *
 * @param isHidden Whether the caller must not see the snapshot; it then counts as none.
 * @returns The status before; `undefined` when there is no such snapshot.
 */
export async function abortIn<State>(
  store: SessionStore<State>,
  snapshotId: string,
  options: SessionStoreOptions,
  isHidden: (snapshot: SessionSnapshot<State> | undefined) => boolean = () => false,
): Promise<SnapshotStatus | undefined> {
  let before: SnapshotStatus | undefined;
  await store.saveSnapshot(
    snapshotId,
    (current) => {
      before = isHidden(current) ? undefined : current?.status;
      if (!current || before !== 'pending') return null;
      return { ...current, status: 'aborted', finishReason: 'aborted', updatedAt: new Date().toISOString() };
    },
    options,
  );
  return before;
}
