import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { isShard } from '../read/shards.ts';
import { readFile, readState } from '../read/read-snapshot.ts';
import { loadHeads } from '../read/lists.ts';
import type { SnapshotFile, SnapshotHead } from '../format/snapshot-file.ts';
import { DamagedSnapshot, type Session } from '../session.ts';

/**
 * The states that a session needs beside those of its snapshots, by version: removed snapshots had them, and others stand on them.
 * `undefined`: it can't be told, because a file is damaged.
 *
 * @param without Ids of snapshots that are to be removed.
 * @param leaving The heads of snapshots that the log no longer knows, and whose files are still there, by version.
 */
export async function findNeeded(
  session: Session,
  without: ReadonlySet<string> = new Set(),
  leaving: ReadonlyMap<string, SnapshotHead> = new Map(),
): Promise<ReadonlyMap<string, SnapshotHead> | undefined> {
  const { tree } = session.index;
  await loadHeads(
    session,
    // The state of a completed snapshot that has children never changes, nor what it stands on.
    [...tree.nodes()].filter((node) => node.status !== 'completed' || !tree.hasChildren(node.snapshotId)),
  );
  const needed = new Map<string, SnapshotHead>();
  for (const node of tree.nodes()) {
    if (without.has(node.snapshotId)) continue;
    if (!node.seen) return undefined;
    for (let base = node.seen.head.base; base && !needed.has(base.version);) {
      const at = tree.get(base.id)?.seen?.head;
      const isThere = at?.state.version === base.version;
      // It is looked at by itself.
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
 * Names of files in the session's folder that nothing needs: shards, and states that were kept.
 *
 * @param without Ids of snapshots that are to be removed.
 */
export async function findUnneeded(session: Session, without: ReadonlySet<string> = new Set()): Promise<string[]> {
  const names = session.tenant.folder.store.namesIn(session.path);
  const needed = await findNeeded(session, without);
  const shards = needed && (await shardsOf(session, without, needed));
  if (!shards) return [];
  const versions = new Set([...needed.keys()].map((version) => `${version}.json`));
  return names.filter((name) => (isShard(name) ? !shards.has(name) : isKept(name) && !versions.has(name)));
}

/** The shards of all states that are whole; `undefined`: one can't be read, or not without a key, and may need anything. */
async function shardsOf(
  session: Session,
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
    // It may be encrypted under a key that this store does not have.
    if (error instanceof DamagedSnapshot || error instanceof GenkitError) return undefined;
    throw error;
  }
  return shards;
}

/** Removes files of the session's folder; answers how many of them were shards. */
export function removeNames(session: Session, names: readonly string[]): number {
  for (const name of names) {
    session.tenant.folder.store.remove(join(session.path, name));
    session.checkedShards.delete(name);
  }
  return names.filter(isShard).length;
}

function isKept(name: string): boolean {
  return /^[0-9a-f]{12}\.json$/.test(name);
}
