import { planRetention } from '../../../src/snapshot/retention.ts';
import type { DeleteResult, PrunePolicy, PruneResult } from '../../../src/store/contract.ts';
import type { PruneOptions } from '../../../src/store/base-session-store.ts';
import { assertExpectedLeaf } from '../../../src/store/choose-leaf.ts';
import { Pace } from '../disk/pace.ts';
import { isRefused, unlessRefused } from '../disk/io-error.ts';
import { snapshotName } from '../format/names.ts';
import type { LogLine } from '../format/save-log.ts';
import type { SnapshotHead } from '../format/snapshot-file.ts';
import { loadHeads, sessionsOf } from '../read/lists.ts';
import { readHead, readOwnHead } from '../read/read-head.ts';
import { isShard } from '../read/shards.ts';
import { ScopeRecords } from '../records/scope-records.ts';
import { removeOrphanRecords, SessionRecords } from '../records/session-records.ts';
import { headUnlessDamaged, type FileSession } from '../file-session.ts';
import type { IndexNode } from '../session-index.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { findNeeded, findUnneeded, removeNames } from './unneeded.ts';

const NOTHING: DeleteResult = { snapshots: 0, shards: 0 };

/** Removes a session with all its data on the disk. */
export async function deleteSession(session: FileSession, expectedLeafId: string | undefined): Promise<DeleteResult> {
  await session.refresh();
  const assertLeaf = (): void => {
    assertExpectedLeaf(expectedLeafId, session.id, session.index.tree.latestLeaf()?.snapshotId ?? null);
  };
  // An interrupted deletion may have left only the folder.
  const isThere = session.incarnation !== '' || session.tenant.folder.store.hasFolder(session.path);
  if (!isThere && !new SessionRecords(session).exist()) {
    assertLeaf();
    return NOTHING;
  }
  return session.withLock(() => {
    assertLeaf();
    return deleteLocked(session);
  });
}

/** Removes the remaining files of a session if it still has no snapshots. */
export function removeEmptySession(session: FileSession): Promise<void> {
  return session.withLock(async () => {
    if (session.index.tree.size === 0) await deleteLocked(session);
  });
}

/** Removes what the policy names, session by session. An interruption leaves each session either unchanged or pruned. */
export async function prune(
  tenant: TenantSessions,
  policy: PrunePolicy,
  { dryRun, sessionId: only }: PruneOptions,
): Promise<PruneResult> {
  const result: PruneResult = { sessions: 0, snapshots: 0, shards: 0, dryRun };
  const nowMs = Date.now();
  // First, because shards and states that only lost snapshots need would be removed.
  if (!dryRun && only === undefined) await reconcileAll(tenant);
  for await (const { sessionId } of only === undefined ? sessionsOf(tenant, []) : [{ sessionId: only }]) {
    const session = tenant.session(sessionId);
    const pruning = pruneSession(session, policy, { nowMs, dryRun });
    const removed = await (only === undefined ? unlessRefused(pruning) : pruning);
    result.sessions += removed?.sessions ?? 0;
    result.snapshots += removed?.snapshots ?? 0;
    result.shards += removed?.shards ?? 0;
  }
  if (!dryRun && only === undefined) await removeOrphanRecords(tenant);
  return result;
}

async function pruneSession(
  session: FileSession,
  policy: PrunePolicy,
  { nowMs, dryRun }: { nowMs: number; dryRun: boolean },
): Promise<Removed> {
  await session.refresh();
  const planned = await planPrune(session, policy, nowMs);
  const isNothing = planned.sessions + planned.snapshots + planned.shards === 0;
  return dryRun || isNothing ? planned : session.withLock(() => pruneLocked(session, policy, nowMs));
}

/** Finishes the operation of the log's last line, a part of which may be done. Call it under the session's lock. */
export async function finish(session: FileSession, line: LogLine): Promise<void> {
  await removeFiles(session, session.index.removed);
  if ('save' in line) await settleRecords(session, line.id);
  if ('delete' in line) await removeRest(session);
}

/** Removes the log last: until then the next writer finishes an interrupted deletion. */
async function removeRest(session: FileSession): Promise<void> {
  await new SessionRecords(session).removeAll();
  await session.sealer.forget();
  await session.remove();
  session.tenant.forget(session);
}

async function settleRecords({ index, tenant }: FileSession, snapshotId: string): Promise<void> {
  const head = readOwnHead(tenant.folder.store.fs, tenant.folder.snapshot(snapshotId));
  if (head && index.tree.has(snapshotId)) await new ScopeRecords(tenant.folder).settle(head);
}

/** Removes the files of snapshots that are removed in the log. Returns the number of shards that were removed with them. */
export async function removeFiles(session: FileSession, removed: readonly IndexNode[]): Promise<number> {
  const heads: SnapshotHead[] = [];
  const unreadable: string[] = [];
  for (const node of removed) {
    const path = session.tenant.folder.snapshot(node.snapshotId);
    session.tenant.forgetSnapshot(node.snapshotId);
    const found = headToRemove(session, node, path);
    if (typeof found === 'object') heads.push(found);
    else if (found === 'unreadable') unreadable.push(path);
  }
  return heads.length + unreadable.length === 0 ? 0 : discard(session, heads, unreadable);
}

/** The head of a removed snapshot's file. `unreadable`: only the log says that the file is this session's. `undefined`: keep the file. */
function headToRemove(session: FileSession, node: IndexNode, path: string): SnapshotHead | 'unreadable' | undefined {
  const { fs } = session.tenant.folder.store;
  try {
    const head = headUnlessDamaged(session, node);
    // The id of a removed snapshot may be in use by another session.
    if (head || typeof readHead(fs, path) === 'object') return head;
  } catch (error) {
    if (!isRefused(error)) throw error;
    // Other snapshots may need the state, unless all of them are removed.
    if (!session.isBeingDeleted) return undefined;
  }
  const found = fs.stat(path);
  return found && !found.isDirectory() ? 'unreadable' : undefined;
}

/** Removes the files of snapshots that the log no longer has. Keeps states that diffs of other snapshots need. */
async function discard(
  session: FileSession,
  heads: readonly SnapshotHead[],
  unreadable: readonly string[] = [],
): Promise<number> {
  const { folder } = session.tenant;
  for (const path of unreadable) folder.store.remove(path);
  for (const head of heads) await new ScopeRecords(folder).settle(head);
  const needed = await findNeeded(session, undefined, new Map(heads.map((head) => [head.state.version, head])));
  let isUnneeded = unreadable.length > 0;
  for (const head of heads) {
    if (!needed || needed.has(head.state.version)) {
      session.keep(head);
    } else {
      folder.store.remove(folder.snapshot(head.meta.snapshotId));
      isUnneeded = true;
    }
  }
  if (!isUnneeded) return 0;
  await folder.store.flushFolder(folder.path);
  return removeNames(session, await findUnneeded(session));
}

interface Removed extends DeleteResult {
  sessions: number;
}

async function planPrune(session: FileSession, policy: PrunePolicy, nowMs: number): Promise<Removed> {
  const { tree } = session.index;
  await loadHeads(session, tree.nodes(), headUnlessDamaged);
  const plan = planRetention(tree, policy, nowMs);
  const names = session.tenant.folder.store.namesIn(session.path);
  if (tree.size === 0 || plan.whole) {
    return { sessions: tree.size > 0 ? 1 : 0, snapshots: tree.size, shards: names.filter(isShard).length };
  }
  const unneeded = await findUnneeded(session, new Set(plan.remove));
  return { sessions: 0, snapshots: plan.remove.length, shards: unneeded.filter(isShard).length };
}

async function pruneLocked(session: FileSession, policy: PrunePolicy, nowMs: number): Promise<Removed> {
  const { index } = session;
  const { tree } = index;
  await loadHeads(session, tree.nodes(), headUnlessDamaged);
  const plan = planRetention(tree, policy, nowMs);
  if (plan.whole || tree.size === 0) return { ...(await deleteLocked(session)), sessions: plan.whole ? 1 : 0 };
  let shards = 0;
  if (plan.remove.length > 0) {
    const last = tree.lastWritten();
    const isLastRemoved = last && plan.remove.includes(last.snapshotId);
    const remove = plan.remove.map((id) => tree.mustGet(id).place);
    const written = isLastRemoved ? { at: index.writtenAt, updatedAt: last.updatedAt ?? last.createdAt } : {};
    await session.append({ remove, ...written }, { flush: true });
    shards += await removeFiles(session, index.removed);
    await session.append({ done: true }, { flush: false });
  }
  shards += removeNames(session, await findUnneeded(session));
  await session.compact();
  return { sessions: 0, snapshots: plan.remove.length, shards };
}

async function deleteLocked(session: FileSession): Promise<DeleteResult> {
  const snapshots = session.index.tree.size;
  const shards = session.tenant.folder.store.namesIn(session.path).filter(isShard).length;
  const records = new SessionRecords(session).count();
  if (session.incarnation === '') {
    // Only shards of a failed first save may remain.
    await removeRest(session);
    return { snapshots, shards, records };
  }
  await session.append({ delete: true }, { flush: true });
  await finish(session, { delete: true });
  return { snapshots, shards, records };
}

/** Runs {@link reconcile} for all snapshot files that no log has. */
async function reconcileAll(tenant: TenantSessions): Promise<void> {
  const { folder } = tenant;
  await new ScopeRecords(folder).sweep();
  const known = new Set<string>();
  for await (const { sessionId } of sessionsOf(tenant, [])) {
    const session = tenant.session(sessionId);
    await session.refresh();
    for (const { snapshotId } of session.index.tree.nodes()) known.add(snapshotName(snapshotId));
  }
  const pace = new Pace();
  for (const name of folder.store.namesIn(folder.path)) {
    if (!name.endsWith('.json') || known.has(name)) continue;
    await pace.rest();
    await unlessRefused(reconcileFile(tenant, name));
  }
}

async function reconcileFile(tenant: TenantSessions, name: string): Promise<void> {
  const head = readOwnHead(tenant.folder.store.fs, `${tenant.folder.path}/${name}`);
  if (!head || head.session === null || snapshotName(head.meta.snapshotId) !== name) return;
  await reconcile(tenant.session(head.session), head.meta.snapshotId);
}

/**
 * Handles a snapshot's file that its session's log does not have. If the log has lost the snapshot, the log is rewritten; if the snapshot
 * was removed, its file is removed.
 */
export async function reconcile(session: FileSession, snapshotId: string): Promise<void> {
  const { folder } = session.tenant;
  await session.withLock(async () => {
    const head = readOwnHead(folder.store.fs, folder.snapshot(snapshotId));
    if (head?.session !== session.id || session.index.tree.has(snapshotId)) return;
    if (session.hasLost(head)) await session.restore();
    if (session.index.tree.has(snapshotId)) return;
    if (head.incarnation === session.incarnation) await discard(session, [head]);
    else folder.store.remove(folder.snapshot(snapshotId));
  });
}
