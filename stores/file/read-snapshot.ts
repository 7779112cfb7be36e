import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { dataLoss, quote, unavailable } from '../../src/errors.ts';
import { copyJson, type Json } from '../../src/json/value.ts';
import { handOut } from '../../src/snapshot/hand-out.ts';
import type { SessionSnapshot, SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { shardName } from '../chain/cut.ts';
import { materialise } from '../chain/materialise.ts';
import type { KnownState } from '../chain/written-state.ts';
import { unpack } from './compression.ts';
import { snapshotName } from './names.ts';
import { readWhole } from './read-file.ts';
import { readVersion } from './read-version.ts';
import type { Session } from './session.ts';
import type { IndexNode, StoredVersion } from './session-index.ts';
import type { SnapshotFile, Version } from './snapshot-file.ts';
import type { StateCache } from './state-cache.ts';

/** A snapshot as it was read. Immutable: parts of it are shared with others. */
export interface LoadedSnapshot {
  readonly node: IndexNode;
  readonly meta: SnapshotMetadata;
  /** `undefined`: the snapshot has no state. */
  readonly known: KnownState | undefined;
  /** It is as another writer left it. */
  readonly isForeign: boolean;
}

/** How often a read may start again because somebody was just writing. */
const MOST_ATTEMPTS = 20;

/** What is on the disk does not fit the index: somebody is just writing, or it is damaged. */
class Unreadable extends Error {}

/**
 * Reads a snapshot without any lock, however many others write.
 *
 * @returns `undefined` when the session does not have it.
 * @throws `DATA_LOSS` when it has, and a part of it is missing or damaged.
 */
export async function readSnapshot(
  session: Session,
  snapshotId: string,
  cache: StateCache,
): Promise<LoadedSnapshot | undefined> {
  for (let attempt = 1; ; attempt++) {
    const node = session.index.tree.get(snapshotId);
    if (!node) return undefined;
    const { position } = session;
    try {
      return await load(session, node, cache);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      await session.refresh();
      if (session.position === position && isSame(session.index.tree.get(snapshotId), node)) {
        throw dataLoss(
          `Snapshot ${quote(snapshotId)} can't be read: ${error.message}. Restore it from a backup, or resume from another snapshot.`,
        );
      }
      if (attempt === MOST_ATTEMPTS) {
        throw unavailable(`Snapshot ${quote(snapshotId)} changed too often while it was read. Try again.`);
      }
    }
  }
}

/** The snapshot as a caller gets it; see {@link handOut}. */
export function handOutLoaded<S>({ meta, known }: LoadedSnapshot): SessionSnapshot<S> {
  return handOut(meta, known && (() => copyJson(known.state) as NonNullable<SessionSnapshot<S>['state']>));
}

/** @throws `DATA_LOSS` when the snapshot's file is gone. */
export function assertPresent(session: Session, node: IndexNode): void {
  const { folder } = session;
  if (!folder.store.fs.stat(fileOf(session, node))?.isFile()) {
    throw dataLoss(
      `Snapshot ${quote(node.snapshotId)} can't be read: its file is missing. Restore it from a backup, or resume from another snapshot.`,
    );
  }
}

async function load(session: Session, node: IndexNode, cache: StateCache): Promise<LoadedSnapshot> {
  const found = session.folder.store.fs.stat(fileOf(session, node));
  if (!found?.isFile())
    throw new Unreadable(found ? 'something else is in the place of its file' : 'its file is missing');
  if (node.foreign !== undefined) return loadForeign(session, node, node.foreign);
  const key = session.keyOf(node.version);
  const cached = cache.get(key);
  if (cached?.inode === found.ino) return { node, meta: node.meta, known: cached.known, isForeign: false };
  const file = await readVersion(session, node.version);
  if (!file) return loadForeign(session, node, snapshotName(node.snapshotId));
  if (file.rev !== node.rev) throw new Unreadable('its file is older than it should be');
  const known = await loadState(session, node.version, cache, file);
  if (known) cache.set(key, known, found.ino);
  return { node, meta: node.meta, known, isForeign: false };
}

/** The state of a version of the session. */
export async function loadState(
  session: Session,
  version: StoredVersion,
  cache: StateCache,
  file?: SnapshotFile,
): Promise<KnownState | undefined> {
  try {
    return await materialise<Version>(version, {
      known: (ref) => cache.get(session.keyOf(ref))?.known,
      read: async (ref) => (ref === version && file ? file : await mustReadVersion(session, ref)).written,
      shards: (names) => readShards(session, names),
    });
  } catch (error) {
    if (error instanceof Unreadable || error instanceof GenkitError || isSystemError(error)) throw error;
    throw new Unreadable('what is stored of its state does not fit together');
  }
}

/** A snapshot that is as another writer left it, be it that writer's own or one of ours that it rewrote. */
async function loadForeign(session: Session, node: IndexNode, fileName: string): Promise<LoadedSnapshot> {
  const parsed = await session.folder.readFile(fileName);
  if (parsed?.kind !== 'foreign' || parsed.meta.snapshotId !== node.snapshotId) {
    throw new Unreadable('its file is damaged');
  }
  const known = parsed.state === undefined ? undefined : wholeState(parsed.state);
  return { node, meta: parsed.meta, known, isForeign: true };
}

function isSame(a: IndexNode | undefined, b: IndexNode): boolean {
  return a?.rev === b.rev && a.version.seq === b.version.seq && a.version.stateRev === b.version.stateRev;
}

function wholeState(state: Json): KnownState {
  return { state, memory: new Map(), length: 0 };
}

async function mustReadVersion(session: Session, ref: Version): Promise<SnapshotFile> {
  const version = session.index.version(ref);
  const file = version && (await readVersion(session, version));
  if (!file) throw new Unreadable('a file that its state is in, or its own, is missing or damaged');
  return file;
}

async function readShards(session: Session, names: readonly string[]): Promise<Map<string, string>> {
  const texts = await Promise.all(names.map(async (name) => [name, await readShard(session, name)] as const));
  return new Map(texts);
}

async function readShard(session: Session, name: string): Promise<string> {
  const { folder } = session;
  const content = await readWhole(folder.store.fs, folder.shard(session.name, name));
  if (typeof content === 'string') throw new Unreadable('a piece of its state is missing');
  const text = await unpack(content).catch(() => undefined);
  if (text === undefined || shardName(text) !== name) throw new Unreadable('a piece of its state is damaged');
  return text;
}

function fileOf({ folder }: Session, node: IndexNode): string {
  return node.foreign === undefined ? folder.snapshot(node.snapshotId) : join(folder.path, node.foreign);
}

function isSystemError(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).code === 'string' && 'syscall' in (error as object);
}
