import type { QueryDocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { assertPolicy, planRetention } from '../../src/snapshot/retention.ts';
import type { PrunePolicy, PruneResult } from '../../src/store/contract.ts';
import type { KeyQueue } from '../../src/store/key-queue.ts';
import { finishDeletion, markGone } from './delete-session.ts';
import { Stale } from './failures.ts';
import { FOREIGN_POINTER_FIELDS, isForeignPointer } from './genkit-format.ts';
import { isAlive } from './lineage.ts';
import { keyOf, orderRange, ownerOfShard } from './names.ts';
import { LIST_FIELDS, readPointer } from './pointer-document.ts';
import { listOwned, PrunedSession, removeShards } from './prune-session.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/** How far a prune has come. */
export interface PruneProgress extends PruneResult {
  /** Sessions looked at so far. */
  readonly examined: number;
}

/** How a prune is run. */
export interface PruneRun {
  readonly dryRun: boolean;
  readonly onProgress?: (progress: PruneProgress) => void;
  /** Saves of this process wait while their session is pruned. */
  readonly sessions: KeyQueue;
}

/** A shard in the database. */
export interface ListedShard {
  readonly name: string;
  readonly updateTime: Timestamp;
}

const PAGE = 300;
/** A session that is written all the time is left alone after so many attempts. */
const MOST_ATTEMPTS = 10;

/**
 * Removes what the policy names, session by session, then the shards that nobody names. It may be interrupted anywhere, and run again.
 *
 * The shards are listed before anything else: those that a save writes later are not on the list, or have another update time.
 */
export async function prune(
  tenant: Tenant,
  reader: SnapshotReader,
  policy: PrunePolicy,
  run: PruneRun,
): Promise<PruneResult> {
  assertPolicy(policy);
  const result: PruneResult = { sessions: 0, snapshots: 0, shards: 0, dryRun: run.dryRun };
  const shards = await listShards(tenant);
  const nowMs = Date.now();
  let examined = 0;
  let damage: unknown;
  for await (const document of pointers(tenant)) {
    const sessionId = sessionIdOf(document);
    if (sessionId === undefined) continue;
    const owner = keyOf('session', sessionId);
    const owned = shards.get(owner) ?? [];
    shards.delete(owner);
    const options = { policy, nowMs, dryRun: run.dryRun, shards: owned };
    const removed = await run.sessions
      .run(tenant.keyOf(sessionId), () => pruneSession(tenant, reader, sessionId, options))
      .catch((error: unknown) => {
        // What is damaged in one session is no reason to leave the others.
        if (!(error instanceof GenkitError) || error.status !== 'DATA_LOSS') throw error;
        damage ??= error;
        return NOTHING;
      });
    result.sessions += removed.sessions;
    result.snapshots += removed.snapshots;
    result.shards += removed.shards;
    run.onProgress?.({ ...result, examined: ++examined });
  }
  for (const [owner, owned] of shards) result.shards += await pruneOrphans(tenant, owner, owned, run.dryRun);
  run.onProgress?.({ ...result, examined });
  if (damage) throw damage;
  return result;
}

async function listShards(tenant: Tenant): Promise<Map<string, ListedShard[]>> {
  const byOwner = new Map<string, ListedShard[]>();
  for (let after: string | undefined; ;) {
    const found = await tenant.database.page(tenant.collections.shards, { limit: PAGE, ...(after && { after }) });
    for (const { id, updateTime } of found) {
      const owner = ownerOfShard(id);
      if (owner === undefined) continue;
      const owned = byOwner.get(owner);
      if (owned) owned.push({ name: id, updateTime });
      else byOwner.set(owner, [{ name: id, updateTime }]);
    }
    if (found.length < PAGE) return byOwner;
    after = found.at(-1)!.id;
  }
}

async function* pointers(tenant: Tenant): AsyncGenerator<QueryDocumentSnapshot> {
  const fields = [...LIST_FIELDS, ...FOREIGN_POINTER_FIELDS];
  for (let after: string | undefined; ;) {
    const { collections, database } = tenant;
    const found = await database.page(collections.pointers, { limit: PAGE, fields, ...(after && { after }) });
    yield* found;
    if (found.length < PAGE) return;
    after = found.at(-1)!.id;
  }
}

function sessionIdOf(document: QueryDocumentSnapshot): string | undefined {
  if (isForeignPointer(document.data())) return document.id;
  return document.get('v') === undefined ? undefined : readPointer(document).sessionId;
}

interface Removed {
  readonly sessions: number;
  readonly snapshots: number;
  readonly shards: number;
}

const NOTHING: Removed = { sessions: 0, snapshots: 0, shards: 0 };

async function pruneSession(
  tenant: Tenant,
  reader: SnapshotReader,
  sessionId: string,
  options: { policy: PrunePolicy; nowMs: number; dryRun: boolean; shards: readonly ListedShard[] },
): Promise<Removed> {
  const { policy, nowMs, dryRun, shards } = options;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const pointer = await reader.pointer(sessionId);
    if (!pointer) return NOTHING;
    if (pointer.isGone) {
      if (!dryRun) await finishDeletion(tenant, pointer);
      return NOTHING;
    }
    const session = await PrunedSession.read(tenant, reader, pointer);
    const plan = planRetention(session.tree, policy, nowMs);
    const isExpired = !isAlive(pointer.until === undefined ? {} : { until: pointer.until }, nowMs);
    if (plan.whole || isExpired || session.tree.size === 0) {
      const isSession = session.tree.size > 0 ? 1 : 0;
      const foreseen = { sessions: isSession, snapshots: session.tree.size, shards: shards.length };
      if (dryRun) return foreseen;
      const marked = await markGone(tenant, pointer);
      if (!marked) continue;
      return { ...(await finishDeletion(tenant, marked)), sessions: isSession };
    }
    const remove = [...plan.remove, ...session.expired];
    if (dryRun) return { sessions: 0, snapshots: remove.length, shards: session.spare(shards, remove).length };
    try {
      return { sessions: 0, snapshots: remove.length, shards: await session.remove(remove, shards) };
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
    }
  }
  return NOTHING;
}

/** Shards of sessions that have no pointer: of a first save that was never committed, or of snapshots without a session. */
async function pruneOrphans(
  tenant: Tenant,
  owner: string,
  shards: readonly ListedShard[],
  dryRun: boolean,
): Promise<number> {
  const { from, below } = orderRange(owner);
  const documents = await listOwned(tenant, from, below, ['shards']);
  const named = new Set(documents.flatMap((document) => (document.get('shards') as string[] | undefined) ?? []));
  const spare = shards.filter((shard) => !named.has(shard.name));
  return dryRun ? spare.length : removeShards(tenant, spare);
}
