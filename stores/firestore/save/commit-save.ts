import { FieldValue, type Timestamp } from '@google-cloud/firestore';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import { chunksOf } from '../../chain/chunks.ts';
import { LARGEST_COMMIT, PAGE, type DocumentWrite } from '../database.ts';
import { isConflict, Stale } from '../failures.ts';
import {
  headFields,
  placeFields,
  stateFields,
  type SnapshotDocument,
  type SnapshotHead,
  type StoredState,
} from '../format/snapshot-document.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import type { NewShard } from './packs.ts';
import type { StatePlan } from './plan-state.ts';

/** The write of a new snapshot, or of one that has not changed since it was read. Without `state` its state is not changed. */
export function writeSnapshot(
  tenant: TenantDatabase,
  head: SnapshotHead,
  state: StoredState | undefined,
  { current, cipher }: { readonly current: SnapshotDocument | undefined; readonly cipher: Cipher | undefined },
): DocumentWrite {
  const data = { ...headFields(head, cipher), ...(state && stateFields(state)) };
  if (current) return { kind: 'update', ref: current.ref, data, at: current.updateTime };
  return { kind: 'create', ref: tenant.snapshotRef(head.meta.snapshotId), data: { ...placeFields(head), ...data } };
}

/**
 * Writes a save atomically. Shards that do not fit into the commit are written before it. The commit requires that these and all
 * reused shards exist, and gives them a new update time, so that a prune that has listed them before does not remove them.
 *
 * @param bytes Bytes of those writes that may be large.
 * @returns The update times of the writes, in their order.
 * @throws Stale when a document is not as it was expected.
 */
export async function commitSave(
  { database, shards }: TenantDatabase,
  writes: readonly DocumentWrite[],
  plan: StatePlan,
  bytes = 0,
): Promise<Timestamp[]> {
  const writeShard = ({ name, data }: NewShard): DocumentWrite => ({
    kind: 'set',
    ref: shards.doc(name),
    data: { v: 1, data, t: FieldValue.serverTimestamp() },
  });
  const touchShard = (name: string): DocumentWrite => ({
    kind: 'update',
    ref: shards.doc(name),
    data: { t: FieldValue.serverTimestamp() },
  });
  const isStaged = plan.shards.reduce((sum, shard) => sum + shard.data.length, bytes) > LARGEST_COMMIT;
  try {
    // Limits a commit to its largest size and its most documents.
    const sizeOf = ({ data }: NewShard): number => Math.max(data.length, LARGEST_COMMIT / PAGE);
    const staged = isStaged ? chunksOf(plan.shards, LARGEST_COMMIT, sizeOf) : [];
    for (const some of staged) await database.commit(some.map(writeShard));
    const written = isStaged ? plan.shards.map((shard) => touchShard(shard.name)) : plan.shards.map(writeShard);
    return await database.commit([...writes, ...written, ...plan.reused.map(touchShard)]);
  } catch (error) {
    throw isConflict(error) ? new Stale('the commit was refused', { cause: error }) : error;
  }
}
