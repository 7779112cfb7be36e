import { join } from 'node:path';
import { shardName, type CutShard, type CutMemory } from '../../chain/cut.ts';
import { readFrom } from '../disk/read-file.ts';
import { isPacked, pack, unpack } from '../format/compression.ts';
import { textOf } from '../format/text.ts';
import type { Session } from '../session.ts';

/** Whether a file in a session's folder is called as shards are. */
export function isShard(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}

/** The text of a shard, checked against its name; `undefined`: it is missing or damaged. */
export async function readShard(session: Session, name: string): Promise<string | undefined> {
  const { store } = session.tenant.folder;
  const content = await readFrom(store.fs, join(session.path, name));
  if (typeof content === 'string') return undefined;
  const bytes = isPacked(content.bytes) ? await unpack(content.bytes).catch(() => undefined) : content.bytes;
  if (!bytes || shardName(bytes) !== name) return undefined;
  session.checkedShards.add(name);
  return textOf(bytes);
}

/**
 * Writes the shards that are not there yet, or are damaged. They do no harm when the save fails: nothing names them.
 *
 * A run that is sealed stays as it is for the rest of the session, and is stored once, as it is, so that a cold read need not unpack it. What
 * still grows is stored anew by every checkpoint, and packed.
 *
 * @returns Whether there was one to write.
 */
export async function writeShards(session: Session, shards: readonly CutShard[], memory: CutMemory): Promise<boolean> {
  const { store } = session.tenant.folder;
  const sealed = new Set(
    [...memory.values()]
      .flat()
      .filter((run) => run.sealed)
      .map((run) => run.name),
  );
  let isWritten = false;
  for (const shard of shards) {
    if (await isStored(session, shard.name)) continue;
    const text = shard.text();
    await store.replace(join(session.path, shard.name), sealed.has(shard.name) ? Buffer.from(text) : await pack(text));
    session.checkedShards.add(shard.name);
    isWritten = true;
  }
  return isWritten;
}

/** One that this process did not itself write or read may be damaged, and would damage what is saved now. */
async function isStored(session: Session, name: string): Promise<boolean> {
  const stats = session.tenant.folder.store.fs.stat(join(session.path, name));
  if (!stats?.size) return false;
  return session.checkedShards.has(name) || (await readShard(session, name)) !== undefined;
}
