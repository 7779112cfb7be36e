import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { isShard } from '../read/shards.ts';
import { readFile, readState } from '../read/read-snapshot.ts';
import { loadHeads } from '../read/lists.ts';
import type { SnapshotFile, SnapshotHead } from '../format/snapshot-file.ts';
import { DamagedSnapshot, type FileSession } from '../file-session.ts';

/**
 * States of removed snapshots that diffs of other snapshots still need, by version. `undefined` if they are unknown, because a file is damaged.
 *
 * @param without Ids of snapshots that will be removed.
 * @param leaving The heads of snapshots that the log no longer has, and whose files still exist, by version.
 */
export async function findNeeded(
  session: FileSession,
  without: ReadonlySet<string> = new Set(),
  leaving: ReadonlyMap<string, SnapshotHead> = new Map(),
): Promise<ReadonlyMap<string, SnapshotHead> | undefined> {
  const { tree } = session.index;
  await loadHeads(
    session,
    // Not for completed snapshots with children: their states and bases never change, so a known head stays valid.
    [...tree.nodes()].filter((node) => node.status !== 'completed' || !tree.hasChildren(node.snapshotId)),
  );
  const needed = new Map<string, SnapshotHead>();
  for (const node of tree.nodes()) {
    if (without.has(node.snapshotId)) continue;
    if (!node.seen) return undefined;
    for (let base = node.seen.head.base; base && !needed.has(base.version);) {
      const at = tree.get(base.id)?.seen?.head;
      const isThere = at?.state.version === base.version;
      // This snapshot is kept, and the outer loop checks its own base.
      if (isThere && !without.has(base.id)) break;
      const head = isThere ? at : (leaving.get(base.version) ?? session.keptHead(base.version));
      if (!head) return undefined;
      needed.set(base.version, head);
      base = head.base;
    }
  }
  return needed;
}

/**
 * Names of orphans in the session's folder: shards, and kept states.
 *
 * @param without Ids of snapshots that will be removed.
 */
export async function findUnneeded(session: FileSession, without: ReadonlySet<string> = new Set()): Promise<string[]> {
  const names = session.tenant.folder.store.namesIn(session.path);
  const needed = await findNeeded(session, without);
  const shards = needed && (await shardsOf(session, without, needed));
  if (!shards) return [];
  const versions = new Set([...needed.keys()].map((version) => `${version}.json`));
  return names.filter((name) => (isShard(name) ? !shards.has(name) : isKept(name) && !versions.has(name)));
}

/** The shards of all checkpoints; `undefined` if one can't be read, for example without its key: then any shard may be needed. */
async function shardsOf(
  session: FileSession,
  without: ReadonlySet<string>,
  needed: ReadonlyMap<string, SnapshotHead>,
): Promise<Set<string> | undefined> {
  const shards = new Set<string>();
  const add = ({ written }: SnapshotFile): void => {
    if (written.kind !== 'whole') return;
    for (const lift of written.lifts) for (const shard of lift.shards) shards.add(shard);
  };
  const { tree } = session.index;
  try {
    for (const node of tree.nodes()) {
      if (!without.has(node.snapshotId) && node.seen?.head.isLifted) add(await readFile(session, node));
    }
    for (const [version, { isLifted, meta }] of needed) {
      if (!isLifted) continue;
      add(await readState(session, { id: meta.snapshotId, version, depth: 0 }));
    }
  } catch (error) {
    // A `GenkitError`: the file is encrypted under a key that this store does not have.
    if (error instanceof DamagedSnapshot || error instanceof GenkitError) return undefined;
    throw error;
  }
  return shards;
}

/** Removes a file of the session's folder if it is an orphan, under the session's lock. */
export function removeUnneeded(session: FileSession, name: string): Promise<void> {
  return session.withLock(async () => {
    if ((await findUnneeded(session)).includes(name)) removeNames(session, [name]);
  });
}

/** Removes files of the session's folder. Returns how many of them were shards. */
export function removeNames(session: FileSession, names: readonly string[]): number {
  for (const name of names) {
    session.tenant.folder.store.remove(join(session.path, name));
    session.checkedShards.delete(name);
  }
  return names.filter(isShard).length;
}

function isKept(name: string): boolean {
  return /^[0-9a-f]{12}\.json$/.test(name);
}
