import { Timestamp, type DocumentData } from '@google-cloud/firestore';
import { commitTime, LARGEST_COMMIT, without, type DocumentWrite } from './database.ts';
import { isConflict, Stale } from './failures.ts';
import { FOREIGN_FIELDS, FOREIGN_PATCH, FOREIGN_POINTER_FIELDS } from './genkit-format.ts';
import type { NewShard } from './packs.ts';
import { OPTIONAL_POINTER_FIELDS, pointerFields, type Pointer, type PointerDocument } from './pointer-document.ts';
import {
  headFields,
  placeFields,
  STATE_FIELDS,
  stateFields,
  type SnapshotDocument,
  type SnapshotHead,
  type StoredState,
} from './snapshot-document.ts';
import type { StatePlan } from './state-writer.ts';
import { NO_RECORDS, type RecordWrites } from './record-changes.ts';
import type { Tenant } from './tenant.ts';

/** Commits that are larger in one place are split up before. */
const MOST_STAGED_AT_ONCE = 200;

/** The write of a new snapshot. */
export function createSnapshot(tenant: Tenant, head: SnapshotHead, state: StoredState): DocumentWrite {
  const data = { ...placeFields(head), ...headFields(head), ...stateFields(state, []), ...expiryOf(tenant, head) };
  return { kind: 'create', ref: tenant.snapshotRef(head.meta.snapshotId), data };
}

/** The write of a snapshot that changes nothing but its metadata; its session's pointer does not hear of it. */
export function beatSnapshot(before: SnapshotDocument, head: SnapshotHead): DocumentWrite {
  const beat = head.sessionId === undefined ? {} : { beat: commitTime() };
  const data = { ...headFields(head), ...beat };
  return { kind: 'update', ref: before.ref, data, at: before.updateTime };
}

/** The write of a snapshot that may change all that may change. */
export function rewriteSnapshot(
  tenant: Tenant,
  before: SnapshotDocument,
  head: SnapshotHead,
  state: { readonly state: StoredState; readonly old: readonly StoredState[]; readonly isLeaf?: boolean },
): DocumentWrite {
  // What stands on it counts on the time of its removal, which is later than it counts as gone.
  const expiry = head.until === before.until ? {} : { expireAt: without(), ...expiryOf(tenant, head) };
  const optional = [...STATE_FIELDS, 'beat'];
  // The patch of Genkit's own store stays where snapshots of that store stand on it.
  const foreign = before.state.kind === 'foreign' ? [...FOREIGN_FIELDS, ...(state.isLeaf ? [FOREIGN_PATCH] : [])] : [];
  const data = {
    ...removing([...optional, ...foreign]),
    ...placeFields(head),
    ...headFields(head),
    ...stateFields(state.state, state.old, before.shards),
    ...expiry,
  };
  return { kind: 'update', ref: before.ref, data, at: before.updateTime };
}

/** The write of a session's pointer. */
export function writePointer(
  tenant: Tenant,
  before: PointerDocument | undefined,
  pointer: Pointer,
  options: { isWritten: boolean } = { isWritten: true },
): DocumentWrite {
  const until = pointer.until === undefined ? {} : { expireAt: Timestamp.fromMillis(pointer.until) };
  const written = options.isWritten ? { written: commitTime() } : {};
  const fields = { ...pointerFields(pointer), ...written, ...until };
  const ref = tenant.pointerRef(pointer.sessionId);
  if (!before) return { kind: 'create', ref, data: fields };
  const foreign = before.isForeign ? FOREIGN_POINTER_FIELDS : [];
  const data = { ...removing([...OPTIONAL_POINTER_FIELDS, ...foreign]), ...fields };
  return { kind: 'update', ref, data, at: before.updateTime };
}

/**
 * Writes a save: all or nothing. Shards that are too many for one commit are written before; the commit then makes sure that they are still
 * there, because a prune may have taken them for orphans.
 *
 * @returns The update times of the writes of `records`, then those of `writes`.
 * @throws Stale when a document is not as it was expected.
 */
export async function commitSave(
  tenant: Tenant,
  writes: readonly DocumentWrite[],
  plan: StatePlan,
  records: RecordWrites = NO_RECORDS,
): Promise<Timestamp[]> {
  try {
    const bytes = plan.shards.reduce((sum, shard) => sum + shard.data.length, records.bytes);
    const isStaged = bytes > LARGEST_COMMIT;
    if (isStaged) await stage(tenant, plan);
    const { life } = plan;
    const shards = plan.shards.map((shard) =>
      isStaged ? touchShard(tenant, shard.name, life) : writeShard(tenant, shard, life),
    );
    const prolonged = plan.prolonged.map((name) => touchShard(tenant, name, life));
    return await tenant.database.commit([...records.writes, ...writes, ...shards, ...prolonged]);
  } catch (error) {
    throw isConflict(error) ? new Stale(error) : error;
  }
}

async function stage(tenant: Tenant, { shards, life }: StatePlan): Promise<void> {
  let some: NewShard[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    if (some.length > 0) await tenant.database.commit(some.map((shard) => writeShard(tenant, shard, life)));
    some = [];
    bytes = 0;
  };
  for (const shard of shards) {
    if (bytes + shard.data.length > LARGEST_COMMIT || some.length === MOST_STAGED_AT_ONCE) await flush();
    some.push(shard);
    bytes += shard.data.length;
  }
  await flush();
}

/** The time makes each write of a shard a change, so that a prune that saw it before leaves it alone. */
function writeShard(tenant: Tenant, { name, data }: NewShard, life: number | undefined): DocumentWrite {
  return { kind: 'set', ref: tenant.shardRef(name), data: { v: 1, data, t: commitTime(), ...shardExpiry(life) } };
}

function touchShard(tenant: Tenant, name: string, life: number | undefined): DocumentWrite {
  return { kind: 'update', ref: tenant.shardRef(name), data: { t: commitTime(), ...shardExpiry(life) } };
}

function shardExpiry(life: number | undefined): DocumentData {
  return life === undefined ? {} : { life, expireAt: Timestamp.fromMillis(Date.now() + 4 * life) };
}

/** When Firestore may remove a snapshot, in ms: later than it counts as gone, because others stand on it for a while. */
export function removalOf({ settings: { expireAfterMs } }: Tenant, { until }: SnapshotHead): number | undefined {
  return expireAfterMs === undefined || until === undefined ? undefined : until + expireAfterMs;
}

function expiryOf(tenant: Tenant, head: SnapshotHead): DocumentData {
  const removal = removalOf(tenant, head);
  return removal === undefined ? {} : { expireAt: Timestamp.fromMillis(removal) };
}

function removing(fields: readonly string[]): DocumentData {
  return Object.fromEntries(fields.map((name) => [name, without()]));
}
