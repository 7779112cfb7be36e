import { shardName, type CutShard } from '../chain/cut.ts';
import { pack, unpack } from './compression.ts';
import { readWhole } from './read-file.ts';
import type { Session } from './session.ts';

/** The text of a shard, checked against its name. */
export async function readShard(
  { folder, name: session }: Session,
  name: string,
): Promise<{ readonly text: string } | 'missing' | 'damaged'> {
  const path = folder.shard(session, name);
  folder.assertNoLinkedShards(session);
  const content = await readWhole(folder.store.fs, path);
  if (typeof content === 'string') return 'missing';
  const text = await unpack(content).catch(() => undefined);
  if (text === undefined || shardName(text) !== name) return 'damaged';
  folder.store.checkedShards.set(path, true, 1);
  return { text };
}

/** Writes the shards that are not there yet, or are damaged. They do no harm when the save fails: nothing names them. */
export async function writeShards(session: Session, shards: readonly CutShard[]): Promise<void> {
  const { folder, name } = session;
  const { store } = folder;
  const changed = new Set<string>();
  for (const shard of shards) {
    if (await isWritten(session, shard.name)) continue;
    if (changed.size === 0)
      for (const made of [folder.shards(name), ...store.makeFolder(folder.shards(name))]) changed.add(made);
    const path = folder.shard(name, shard.name);
    await store.replace(path, await pack(shard.text()));
    store.checkedShards.set(path, true, 1);
  }
  for (const path of changed) await store.flushFolder(path);
}

/** One that this process did not itself write or read may be damaged, and would damage what is saved now. */
async function isWritten(session: Session, name: string): Promise<boolean> {
  const { folder } = session;
  const path = folder.shard(session.name, name);
  if (!folder.store.fs.stat(path)?.size) return false;
  if (folder.store.checkedShards.get(path)) return true;
  return typeof (await readShard(session, name)) === 'object';
}
