import { GenkitError } from 'genkit';
import { quote, unavailable } from '../../../src/errors.ts';
import { handOut } from '../../../src/snapshot/hand-out.ts';
import type { SessionSnapshot } from '../../../src/snapshot/snapshot.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import type { CutMemory } from '../../chain/cut.ts';
import { readChain } from './read-chain.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { stampOf } from '../disk/file-system.ts';
import { isSystemError } from '../disk/io-error.ts';
import { readFrom } from '../disk/read-file.ts';
import { parseFile, type SnapshotFile, type SnapshotHead, type StateRef } from '../format/snapshot-file.ts';
import { DamagedSnapshot, type FileSession } from '../file-session.ts';
import type { IndexNode } from '../session-index.ts';
import type { TenantFolder } from '../tenant-folder.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import type { SnapshotLocation } from './find-snapshot.ts';
import { readShard } from './shards.ts';

/** A snapshot that was read. Immutable: parts of it are shared with others. */
export interface LoadedSnapshot {
  readonly head: SnapshotHead;
  /** `undefined`: the snapshot has no state. */
  readonly known: KnownState | undefined;
}

/** How often a read may start again because of writes at the same time. */
const MOST_ATTEMPTS = 20;

/**
 * Reads a snapshot from its location, without a lock.
 *
 * @returns `undefined` if it does not exist any more.
 * @throws `DATA_LOSS` when it exists, but a part of it is missing or damaged.
 */
export async function readSnapshot(
  { folder }: TenantSessions,
  location: SnapshotLocation,
  snapshotId: string,
): Promise<LoadedSnapshot | undefined> {
  if (location === 'no-session') return readWithoutSession(folder, snapshotId);
  return retrying(location, snapshotId, (node) => load(location, node));
}

/** As {@link readSnapshot}, but of a snapshot in a session only the head. */
export async function readHeadOf(
  { folder }: TenantSessions,
  location: SnapshotLocation,
  snapshotId: string,
): Promise<SnapshotHead | undefined> {
  if (location === 'no-session') return (await readWithoutSession(folder, snapshotId))?.head;
  return retrying(location, snapshotId, (node) => location.opened(location.head(node)));
}

async function retrying<T>(
  session: FileSession,
  snapshotId: string,
  read: (node: IndexNode) => Promise<T> | T,
): Promise<T | undefined> {
  let seen: string | undefined;
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const node = session.index.tree.get(snapshotId);
    if (!node) return undefined;
    try {
      return await read(node);
    } catch (error) {
      if (!(error instanceof DamagedSnapshot)) throw error;
      await session.refresh();
      const again = session.index.tree.get(snapshotId);
      const found = again && `${again.place} ${session.stampOf(again)}`;
      // The file is unchanged since the last attempt, so the damage is not a write in progress.
      if (found !== undefined && found === seen) throw unreadableSnapshot(snapshotId, error.message, session.id);
      seen = found;
    }
  }
  throw unavailable(`Snapshot ${quote(snapshotId)} changed too often while it was read. Try again.`);
}

/** Reads a snapshot without a session; `undefined` if it does not exist. */
async function readWithoutSession(folder: TenantFolder, snapshotId: string): Promise<LoadedSnapshot | undefined> {
  const content = await readFrom(folder.store.fs, folder.snapshot(snapshotId));
  if (content === 'missing') return undefined;
  const file = content === 'no-file' ? 'broken' : await parseFile(content.bytes, folder.sealer('snapshot', snapshotId));
  if (typeof file === 'string' || file.head.meta.snapshotId !== snapshotId || file.written.kind === 'diff') {
    throw unreadableSnapshot(snapshotId, 'its file is damaged');
  }
  const { head, written } = file;
  if (written.kind === 'none') return { head, known: undefined };
  return { head, known: { state: written.skeleton, memory: new Map(), length: 0 } };
}

/** The snapshot for a caller; see `handOut`. */
export function handOutLoaded<S>({ head, known }: LoadedSnapshot, frozen?: boolean): SessionSnapshot<S> {
  return handOut(head.meta, { state: known && (() => known.state), frozen });
}

async function load(session: FileSession, node: IndexNode): Promise<LoadedSnapshot> {
  const head = session.head(node);
  const known = session.tenant.shared.caches.states.get(head.state.version);
  if (known && node.seen?.isWhole) return { head: await session.opened(head), known };
  const file = await readFile(session, node);
  return { head: file.head, known: await loadState(session, { id: node.snapshotId, ...file.head.state }, file) };
}

/** Reads the whole file of a snapshot. */
export async function readFile(session: FileSession, node: IndexNode): Promise<SnapshotFile> {
  const { folder } = session.tenant;
  const content = await readFrom(folder.store.fs, folder.snapshot(node.snapshotId));
  if (content === 'missing') throw new DamagedSnapshot('its file is missing');
  const file = content === 'no-file' ? 'broken' : await parseFile(content.bytes, session.sealer);
  if (typeof content === 'string' || typeof file === 'string') throw new DamagedSnapshot('its file is damaged');
  session.note(node, { head: file.head, stamp: stampOf(content.stats), isWhole: true });
  return file;
}

/** The state with this name, whose file was read already; `undefined` if the snapshot has no state. */
async function loadState(session: FileSession, state: StateRef, file: SnapshotFile): Promise<KnownState | undefined> {
  const { caches } = session.tenant.shared;
  try {
    const known = await readChain<StateRef>(state, {
      known: (ref) => caches.states.get(ref.version),
      read: async (ref) => (ref === state ? file : await readState(session, ref)).written,
      shards: (names) => readShards(session, names),
    });
    if (known) caches.keepState(state.version, known);
    return known;
  } catch (error) {
    if (error instanceof DamagedSnapshot || error instanceof GenkitError || isSystemError(error)) throw error;
    throw new DamagedSnapshot('the stored parts of its state do not fit together');
  }
}

/** The file that holds a state: the snapshot's, or the one that was kept when the snapshot was removed. It may be moved meanwhile. */
export async function readState(session: FileSession, state: StateRef): Promise<SnapshotFile> {
  const { folder } = session.tenant;
  for (const path of [folder.snapshot(state.id), session.pathOfKept(state.version)]) {
    const content = await readFrom(folder.store.fs, path);
    const file = typeof content === 'string' ? 'broken' : await parseFile(content.bytes, session.sealer);
    // `isState` checks the depth, which falls by one from diff to diff, so a chain can't be circular.
    if (typeof content === 'string' || typeof file === 'string' || !isState(file.head, state)) continue;
    const node = session.index.tree.get(state.id);
    if (node && path === folder.snapshot(state.id)) {
      session.note(node, { head: file.head, stamp: stampOf(content.stats), isWhole: true });
    }
    return file;
  }
  throw new DamagedSnapshot(MISSING_BASE);
}

function isState({ state }: SnapshotHead, { version, depth }: StateRef): boolean {
  return state.version === version && state.depth === depth;
}

const MISSING_BASE = 'the state that its diff starts from is missing or damaged';
const MISSING_SHARD = 'a part of its state is missing or damaged';

async function readShards(session: FileSession, names: readonly string[]): Promise<Map<string, string>> {
  const texts = await Promise.all(names.map(async (name) => [name, await readShard(session, name)] as const));
  return new Map(
    texts.map(([name, text]) => {
      if (text === undefined) throw new DamagedSnapshot(MISSING_SHARD);
      return [name, text];
    }),
  );
}

/**
 * Checks that the files of a snapshot's state exist: a state may be cached although its files are gone, and the parent of a new snapshot must be
 * readable for other processes. Call it under the session's lock.
 *
 * @throws `DATA_LOSS` unless all files exist.
 */
export async function assertStored(session: FileSession, { head, known }: LoadedSnapshot): Promise<void> {
  try {
    for (let at = head; at.base;) {
      const base = { ...at.base, depth: at.state.depth - 1 };
      const node = session.index.tree.get(base.id);
      const isThere = node?.seen?.isWhole && node.seen.head.state.version === base.version;
      at = isThere && session.isAsSeen(node) ? node.seen!.head : (await readState(session, base)).head;
    }
    if (known && !hasShards(session, known.memory)) throw new DamagedSnapshot(MISSING_SHARD);
  } catch (error) {
    if (!(error instanceof DamagedSnapshot)) throw error;
    throw unreadableSnapshot(head.meta.snapshotId, error.message, session.id);
  }
}

/** Looks for each shard only if a file of the folder was added or removed since the last time. */
function hasShards(session: FileSession, memory: CutMemory): boolean {
  if (memory.size === 0) return true;
  const { store } = session.tenant.folder;
  const stats = store.fs.stat(session.path);
  if (!stats) return false;
  const stamp = stampOf(stats);
  const seen = session.completeShards;
  if (seen?.memory === memory && seen.stamp === stamp) return true;
  const names = new Set(store.namesIn(session.path));
  const isComplete = [...memory.values()].flat().every((shard) => names.has(shard.name));
  session.completeShards = isComplete ? { memory, stamp } : undefined;
  return isComplete;
}
