import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import type { SnapshotHead } from '../format/snapshot-file.ts';
import type { FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { readHead } from './read-head.ts';

/** Where a snapshot was found; `no-session`: it has no session. */
export type SnapshotLocation = FileSession | 'no-session';

/**
 * Finds a snapshot by its id.
 *
 * @param onUnknown Called when the snapshot's file exists but its session's log does not have it. Returns whether to look again; otherwise
 *   the result is `undefined`.
 * @throws `DATA_LOSS` when its file is damaged.
 */
export async function locate(
  tenant: TenantSessions,
  snapshotId: string,
  onUnknown: (session: FileSession, head: SnapshotHead) => Promise<boolean> = rebuildIfLost,
): Promise<SnapshotLocation | undefined> {
  const known = tenant.sessionOfSnapshot(snapshotId);
  if (known) {
    if (!known.index.tree.has(snapshotId)) await known.refresh();
    if (known.index.tree.has(snapshotId)) return known;
  }
  const found = readHead(tenant.folder.store.fs, tenant.folder.snapshot(snapshotId));
  if (found === 'missing') return undefined;
  if (typeof found === 'string' || found.head.meta.snapshotId !== snapshotId) {
    throw unreadableSnapshot(snapshotId, 'its file is damaged, or another program wrote it');
  }
  const { session: sessionId } = found.head;
  if (sessionId === null) return 'no-session';
  const session = tenant.session(sessionId);
  await session.refresh();
  if (!session.index.tree.has(snapshotId)) {
    const looksAgain = await onUnknown(session, found.head);
    return looksAgain && session.index.tree.has(snapshotId) ? session : undefined;
  }
  tenant.rememberSnapshot(snapshotId, session);
  return session;
}

/** Rebuilds the index of this process with a snapshot that the log has lost. Does not change files, because readers don't. */
async function rebuildIfLost(session: FileSession, head: SnapshotHead): Promise<boolean> {
  if (!session.hasLost(head)) return false;
  await session.rebuild();
  return true;
}
