import { assertPolicy, planRetention, type RetentionPlan } from '../../src/snapshot/retention.ts';
import type { DeleteResult, PrunePolicy, PruneResult } from '../../src/store/contract.ts';
import { Cleanup } from './cleanup.ts';
import { isLost, takeInLost } from './lost-snapshots.ts';
import { NO_SESSION, snapshotName } from './names.ts';
import { Pace } from './pace.ts';
import { parseSnapshot } from './snapshot-file.ts';
import { readWhole } from './read-file.ts';
import { ScopeRecords } from './scope-records.ts';
import type { Session } from './session.ts';
import { SessionIndex } from './session-index.ts';
import type { Tenant } from './tenant.ts';

const NOTHING: DeleteResult = { snapshots: 0, shards: 0 };

/** Removes a session with everything that it left on the disk. */
export async function deleteSession(tenant: Tenant, sessionId: string): Promise<DeleteResult> {
  if (tenant.folder.kind() === 'none') return NOTHING;
  const session = tenant.sessionFor(sessionId);
  await session.refresh();
  if (session.index.tree.size === 0 && !session.hasLog) return NOTHING;
  await tenant.prepare();
  return session.locked(() => deleteLocked(session));
}

/** Removes what the policy names, session by session; an interruption leaves each session as it was or as it is to be. */
export async function prune(tenant: Tenant, policy: PrunePolicy, dryRun: boolean): Promise<PruneResult> {
  assertPolicy(policy);
  const result: PruneResult = { sessions: 0, snapshots: 0, shards: 0, dryRun };
  const nowMs = Date.now();
  const names = await tenant.sessionNames();
  if (names.length > 0 && !dryRun) await tenant.prepare();
  const pace = new Pace();
  // First, because what the files of lost snapshots need would be removed as well.
  if (!dryRun) await settleLeftovers(tenant, pace);
  for (const name of names) {
    if (name === NO_SESSION) continue;
    await pace.rest();
    const session = await tenant.session(name);
    const foreseen = await foresee(session, planRetention(session.index.tree, policy, nowMs));
    const removed =
      dryRun || isNothing(foreseen)
        ? foreseen
        : await session.locked(() => carryOut(session, planRetention(session.index.tree, policy, nowMs)));
    result.sessions += removed.sessions;
    result.snapshots += removed.snapshots;
    result.shards += removed.shards;
  }
  return result;
}

interface Removed extends DeleteResult {
  sessions: number;
}

function isNothing({ sessions, snapshots, shards }: Removed): boolean {
  return sessions + snapshots + shards === 0;
}

async function foresee(session: Session, plan: RetentionPlan): Promise<Removed> {
  session.folder.assertNoLinkedShards(session.name);
  const { index } = session;
  if (plan.whole) {
    const isSession = index.tree.size > 0;
    const shards = await new Cleanup(session).spareShards(new SessionIndex());
    return { sessions: isSession ? 1 : 0, snapshots: index.tree.size, shards };
  }
  const after = new SessionIndex();
  for (const entry of index.entries()) after.apply(entry);
  after.apply({ op: 'retire', retire: seqsOf(session, plan.remove) });
  return { sessions: 0, snapshots: plan.remove.length, shards: await new Cleanup(session).spareShards(after) };
}

async function carryOut(session: Session, plan: RetentionPlan): Promise<Removed> {
  if (plan.whole) {
    const isSession = session.index.tree.size > 0;
    return { ...(await deleteLocked(session)), sessions: isSession ? 1 : 0 };
  }
  const cleanup = new Cleanup(session);
  if (plan.remove.length > 0) {
    const entry = { op: 'retire', retire: seqsOf(session, plan.remove) } as const;
    await session.log.append(entry, (fd) => session.folder.store.flush(fd));
    await cleanup.removeFiles(session.log.aftermath);
  }
  const shards = await cleanup.sweep();
  if (plan.remove.length > 0) await session.log.append({ op: 'ok', t: session.index.lastTime });
  await session.compact();
  return { sessions: 0, snapshots: plan.remove.length, shards };
}

async function deleteLocked(session: Session): Promise<DeleteResult> {
  if (!session.hasLog) return NOTHING;
  const snapshots = session.index.tree.size;
  const entry = { op: 'delete' } as const;
  await session.log.append(entry, (fd) => session.folder.store.flush(fd));
  const shards = await new Cleanup(session).finishDeletion();
  return { snapshots, shards };
}

function seqsOf({ index }: Session, snapshotIds: readonly string[]): number[] {
  return snapshotIds.map((id) => index.tree.mustGet(id).version.seq);
}

/** Removes what crashes left: drafts of records, and files of snapshots that no session has any more. Takes in what a log has lost. */
async function settleLeftovers(tenant: Tenant, pace: Pace): Promise<void> {
  const { folder } = tenant;
  if (folder.kind() !== 'own') return;
  await new ScopeRecords(folder).sweep();
  const known = new Set<string>();
  const settled = new Set<Session>();
  for (const name of await tenant.sessionNames()) {
    await pace.rest();
    for (const node of (await tenant.session(name)).index.tree.nodes()) {
      known.add(node.foreign ?? snapshotName(node.snapshotId));
    }
  }
  for (const fileName of folder.store.fs.readdir(folder.path)) {
    if (!fileName.endsWith('.json') || known.has(fileName)) continue;
    await pace.rest();
    const content = await readWhole(folder.store.fs, `${folder.path}/${fileName}`);
    const parsed = typeof content === 'string' ? undefined : parseSnapshot(content);
    if (parsed?.kind !== 'own') continue;
    const session = tenant.sessionFor(parsed.file.session);
    const { snapshotId } = parsed.file.meta;
    await session.locked(async (lock) => {
      if (await isLost(session, snapshotId)) {
        // All at once; what stays out the first time does so again.
        if (!settled.has(session)) await takeInLost(session, lock);
        settled.add(session);
      } else await new Cleanup(session).removeLeftover(snapshotId);
    });
  }
}
