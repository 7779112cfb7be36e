import { join } from 'node:path';
import { GenkitError } from 'genkit';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import { shardName, type CutShard, type CutMemory, type ShardNames } from '../../chain/cut.ts';
import { readFrom } from '../disk/read-file.ts';
import { isPacked, pack, unpack } from '../format/compression.ts';
import { textOf } from '../format/text.ts';
import type { FileSession } from '../file-session.ts';

/** Whether a file in a session's folder has the name of a shard. */
export function isShard(name: string): boolean {
  return /^(?:[0-9a-f]{16}-)?[0-9a-f]{64}$/.test(name);
}

/** Names of encrypted shards. They depend on the data key, so they don't reveal that two sessions have equal contents. */
export function sealedNames(cipher: Cipher): ShardNames {
  const prefix = `${cipher.keyTag}-`;
  return { of: (text) => prefix + cipher.nameOf(text), has: (name) => name.startsWith(prefix) };
}

/**
 * The text of a shard, checked against its name; `undefined` if it is missing or damaged.
 *
 * @throws `FAILED_PRECONDITION` when it is encrypted, and the key is missing.
 */
export async function readShard(session: FileSession, name: string): Promise<string | undefined> {
  const { store } = session.tenant.folder;
  const content = await readFrom(store.fs, join(session.path, name));
  if (typeof content === 'string') return undefined;
  try {
    const isSealed = name.includes('-');
    const stored = isSealed ? await session.sealer.open(content.bytes, name) : content.bytes;
    const bytes = isPacked(stored) ? await unpack(stored) : stored;
    if (!isSealed && shardName(bytes) !== name) return undefined;
    session.checkedShards.add(name);
    return textOf(bytes);
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    return undefined;
  }
}

/**
 * Writes the shards that are missing or damaged. If the save fails, they are orphans.
 *
 * A run that has ended never changes again, so it is stored once, unpacked for fast reads. A run that still grows is stored again by
 * every checkpoint, packed.
 *
 * @returns Whether any shard was written.
 */
export async function writeShards(
  session: FileSession,
  shards: readonly CutShard[],
  memory: CutMemory,
  cipher: Cipher | undefined,
): Promise<boolean> {
  const { store } = session.tenant.folder;
  const ended = new Set(
    [...memory.values()]
      .flat()
      .filter((run) => run.isEnded)
      .map((run) => run.name),
  );
  let isWritten = false;
  for (const shard of shards) {
    if (await isStored(session, shard.name)) continue;
    const text = shard.text();
    const bytes = ended.has(shard.name) ? Buffer.from(text) : await pack(text);
    await store.replace(join(session.path, shard.name), cipher ? cipher.seal(bytes, shard.name) : bytes);
    session.checkedShards.add(shard.name);
    isWritten = true;
  }
  return isWritten;
}

/** Whether an intact shard is stored. A shard that this process has not yet written or read is checked, because it may be damaged. */
async function isStored(session: FileSession, name: string): Promise<boolean> {
  const stats = session.tenant.folder.store.fs.stat(join(session.path, name));
  if (!stats?.size) return false;
  return session.checkedShards.has(name) || (await readShard(session, name)) !== undefined;
}
