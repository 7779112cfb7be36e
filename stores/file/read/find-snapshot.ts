import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import type { FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { readHead, readOwnHead } from './read-head.ts';

/** Where a snapshot was found; `no-session`: it has no session. */
export type SnapshotLocation = FileSession | 'no-session';

/** As {@link locate}, for a reader. Finds the snapshot also if its session's log has lost it. */
export async function locateForReading(
  tenant: TenantSessions,
  snapshotId: string,
): Promise<SnapshotLocation | undefined> {
  const location = await locate(tenant, snapshotId);
  if (typeof location !== 'object' || location.index.tree.has(snapshotId)) return location;
  const head = readOwnHead(tenant.folder.store.fs, tenant.folder.snapshot(snapshotId));
  // Rebuilds only the index of this process: readers don't change files.
  if (head && location.hasLost(head)) await location.rebuild();
  return location;
}

/**
 * Finds the session of a snapshot's file. The session's log may not have the snapshot: it has lost it, or the snapshot was removed.
 *
 * @throws `DATA_LOSS` when the file is damaged.
 */
export async function locate(tenant: TenantSessions, snapshotId: string): Promise<SnapshotLocation | undefined> {
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
  if (session.index.tree.has(snapshotId)) tenant.rememberSnapshot(snapshotId, session);
  return session;
}
