import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { quote, unavailable } from '../../src/errors.ts';
import type { Json } from '../../src/json/value.ts';
import { handOut, type HandOutOptions } from '../../src/snapshot/hand-out.ts';
import type { SessionSnapshot, SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { unreadableSnapshot } from '../../src/store/unreadable.ts';
import type { CutMemory } from '../chain/cut.ts';
import { materialise } from '../chain/materialise.ts';
import type { KnownState } from '../chain/written-state.ts';
import { stampOf } from './file-system.ts';
import { newerNode } from './lost-snapshots.ts';
import { sessionNameOf, snapshotName } from './names.ts';
import { readHeader, readVersion } from './read-version.ts';
import type { Session } from './session.ts';
import type { IndexNode, StoredVersion } from './session-index.ts';
import { readShard } from './shards.ts';
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
export function readSnapshot(
  session: Session,
  snapshotId: string,
  cache: StateCache,
): Promise<LoadedSnapshot | undefined> {
  return retrying(session, snapshotId, (node) => load(session, node, cache));
}

/** As {@link readSnapshot}, but reads no more of a file than tells whether somebody else rewrote it, and that once. */
export function readMetadata(session: Session, snapshotId: string): Promise<SnapshotMetadata | undefined> {
  return retrying(session, snapshotId, (node) => loadMetadata(session, node));
}

async function retrying<T>(
  session: Session,
  snapshotId: string,
  read: (node: IndexNode) => Promise<T>,
): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    const node = session.index.tree.get(snapshotId);
    if (!node) return undefined;
    const { position } = session;
    try {
      return await read(node);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      await session.refresh();
      if (session.position === position && isSame(session.index.tree.get(snapshotId), node)) {
        return await readNewer(session, node, read, error);
      }
      if (attempt === MOST_ATTEMPTS) {
        throw unavailable(`Snapshot ${quote(snapshotId)} changed too often while it was read. Try again.`);
      }
    }
  }
}

/** Nobody is writing, and still the file does not fit the index: perhaps the log lost a rewrite. */
async function readNewer<T>(
  session: Session,
  node: IndexNode,
  read: (node: IndexNode) => Promise<T>,
  error: Unreadable,
): Promise<T> {
  const newer = await newerNode(session, node);
  if (!newer) throw unreadableSnapshot(node.snapshotId, error.message);
  try {
    return await read(newer);
  } catch (reason) {
    throw reason instanceof Unreadable ? unreadableSnapshot(node.snapshotId, reason.message) : reason;
  }
}

/** The snapshot as a caller gets it; see {@link handOut}. */
export function handOutLoaded<S>(
  { meta, known }: LoadedSnapshot,
  { frozen }: Pick<HandOutOptions, 'frozen'> = {},
): SessionSnapshot<S> {
  return handOut(meta, { state: known && (() => known.state), frozen });
}

/**
 * For the holder of the session's lock: a snapshot may be at hand though what its state starts from is not, and nothing is saved on top of
 * one that nobody else could read.
 *
 * @throws `DATA_LOSS` unless all the files are there that the state is in.
 */
export async function assertStored(
  session: Session,
  { node, known }: LoadedSnapshot,
  cache: StateCache,
): Promise<void> {
  const { folder, name } = session;
  const { fs } = folder.store;
  for (let version = node.version.base; version; version = version.base) {
    const path = version.live ? folder.snapshot(version.snapshotId) : folder.piece(name, version);
    const found = fs.stat(path);
    if (!found?.size) throw unreadableSnapshot(node.snapshotId, MISSING_FILE);
    const key = session.keyOf(version);
    const cached = version.live ? cache.get(key) : undefined;
    const stamp = stampOf(found);
    if (!cached || cached.stamp === stamp) continue;
    if (!(await readVersion(session, version))) throw unreadableSnapshot(node.snapshotId, MISSING_FILE);
    cache.set(key, cached.known, stamp);
  }
  if (known && !hasShards(session, known.memory)) throw unreadableSnapshot(node.snapshotId, MISSING_SHARD);
}

const MISSING_FILE = 'a file that its state is in, or its own, is missing or damaged';
const MISSING_SHARD = 'a piece of its state is missing';

/** Looks for each shard only when some file came or went since the last time. */
function hasShards(session: Session, memory: CutMemory): boolean {
  if (memory.size === 0) return true;
  const { folder, name, presentShards: present } = session;
  const { fs } = folder.store;
  const found = fs.stat(folder.shards(name));
  if (!found) return false;
  const stamp = stampOf(found);
  if (present?.memory === memory && present.stamp === stamp) return true;
  const names = new Set(fs.readdir(folder.shards(name)));
  const isComplete = [...memory.values()].flat().every((shard) => names.has(shard.name));
  session.presentShards = isComplete ? { memory, stamp } : undefined;
  return isComplete;
}

async function load(session: Session, node: IndexNode, cache: StateCache): Promise<LoadedSnapshot> {
  const stamp = stampOfFile(session, node);
  if (node.foreign !== undefined) return loadForeign(session, node, stamp);
  const key = session.keyOf(node.version);
  const cached = cache.get(key);
  if (cached?.stamp === stamp) return { node, meta: node.meta, known: cached.known, isForeign: false };
  const file = await readVersion(session, node.version);
  if (!file) return loadForeign(session, node, stamp);
  if (file.rev !== node.rev) throw new Unreadable(OTHER_REVISION);
  const known = await loadState(session, node.version, cache, file);
  if (known) cache.set(key, known, stamp);
  node.seen = { stamp, meta: node.meta };
  return { node, meta: node.meta, known, isForeign: false };
}

async function loadMetadata(session: Session, node: IndexNode): Promise<SnapshotMetadata> {
  const stamp = stampOfFile(session, node);
  if (node.seen?.stamp === stamp) return node.seen.meta;
  const header =
    node.foreign === undefined ? await readHeader(session.folder, snapshotName(node.snapshotId)) : 'foreign';
  if (typeof header === 'string') return (await loadForeign(session, node, stamp)).meta;
  const isIt = header.seq === node.version.seq && sessionNameOf(header.session) === session.name;
  if (!isIt || header.rev !== node.rev) throw new Unreadable(OTHER_REVISION);
  node.seen = { stamp, meta: node.meta };
  return node.meta;
}

const OTHER_REVISION = 'its file is older than it should be, or another one';

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
async function loadForeign(session: Session, node: IndexNode, stamp: string): Promise<LoadedSnapshot> {
  const parsed = await session.folder.readFile(node.foreign ?? snapshotName(node.snapshotId));
  if (parsed?.kind !== 'foreign' || parsed.meta.snapshotId !== node.snapshotId) {
    throw new Unreadable('its file is damaged');
  }
  node.seen = { stamp, meta: parsed.meta };
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
  if (!file) throw new Unreadable(MISSING_FILE);
  return file;
}

async function readShards(session: Session, names: readonly string[]): Promise<Map<string, string>> {
  const texts = await Promise.all(names.map(async (name) => [name, await mustReadShard(session, name)] as const));
  return new Map(texts);
}

async function mustReadShard(session: Session, name: string): Promise<string> {
  const shard = await readShard(session, name);
  if (shard === 'missing') throw new Unreadable(MISSING_SHARD);
  if (shard === 'damaged') throw new Unreadable('a piece of its state is damaged');
  return shard.text;
}

/** Changes when the snapshot's file does. */
function stampOfFile({ folder }: Session, node: IndexNode): string {
  const path = node.foreign === undefined ? folder.snapshot(node.snapshotId) : join(folder.path, node.foreign);
  const found = folder.store.fs.stat(path);
  if (found?.isFile()) return stampOf(found);
  throw new Unreadable(found ? 'something else is in the place of its file' : 'its file is missing');
}

function isSystemError(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).code === 'string' && 'syscall' in (error as object);
}
