import { join } from 'node:path';
import { stampOf } from './file-system.ts';
import { byCreation } from '../../src/snapshot/lineage.ts';
import { sessionOf, type SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import type { PieceEntry, SaveEntry } from './log-entry.ts';
import { sessionNameOf, snapshotName, type SessionName } from './names.ts';
import { Pace } from './pace.ts';
import { readWhole } from './read-file.ts';
import { parseSnapshot, type ParsedFile, type Version } from './snapshot-file.ts';
import type { TenantFolder } from './tenant-folder.ts';

/** What is known of a snapshot from its file alone. */
export interface ScannedSnapshot {
  readonly fileName: string;
  readonly meta: SnapshotMetadata;
  readonly session: string | null;
  /** `undefined`: another writer's. */
  readonly own: (Version & { readonly rev: number; readonly base?: Version; readonly lifted: boolean }) | undefined;
}

interface ScannedFile {
  /** Changes with the file. */
  readonly stamp: string;
  /** `undefined`: it is none. */
  readonly snapshot: ScannedSnapshot | undefined;
}

/** How long before it is looked at a folder must have changed, so that its time tells of the next change. */
const CLOCK_TICK_MS = 100;

/**
 * Finds the snapshots of a tenant by reading their files: for folders that another writer filled, and where a log was lost. What was read
 * is kept, so that the next scan reads only what changed. Files that are no snapshots are passed over.
 */
export class TenantScan {
  readonly #folder: TenantFolder;
  #files = new Map<string, ScannedFile>();
  #sessions = new Map<SessionName, ScannedSnapshot[]>();
  #stamp = '';

  constructor(folder: TenantFolder) {
    this.#folder = folder;
  }

  /** The snapshots, by session, in no particular order. */
  async sessions(): Promise<ReadonlyMap<SessionName, readonly ScannedSnapshot[]>> {
    const { fs } = this.#folder.store;
    const before = fs.stat(this.#folder.path);
    const stamp = before && Date.now() - before.mtimeMs > CLOCK_TICK_MS ? `${before.ino} ${before.mtimeMs}` : '';
    if (stamp !== '' && stamp === this.#stamp) return this.#sessions;
    await this.#readFiles(before ? fs.readdir(this.#folder.path) : []);
    this.#stamp = stamp;
    this.#sessions = new Map();
    for (const { snapshot } of this.#files.values()) {
      if (!snapshot) continue;
      const name = sessionNameOf(snapshot.session);
      const known = this.#sessions.get(name);
      if (known) known.push(snapshot);
      else this.#sessions.set(name, [snapshot]);
    }
    return this.#sessions;
  }

  async #readFiles(names: readonly string[]): Promise<void> {
    const files = new Map<string, ScannedFile>();
    const pace = new Pace();
    for (const name of names) {
      if (!name.endsWith('.json')) continue;
      const path = join(this.#folder.path, name);
      const found = this.#folder.store.fs.stat(path);
      if (!found?.isFile()) continue;
      const stamp = stampOf(found);
      const known = this.#files.get(name);
      if (known?.stamp === stamp) {
        files.set(name, known);
        continue;
      }
      files.set(name, { stamp, snapshot: await this.#readSnapshot(name, path) });
      await pace.rest();
    }
    this.#files = files;
  }

  async #readSnapshot(name: string, path: string): Promise<ScannedSnapshot | undefined> {
    const content = await readWhole(this.#folder.store.fs, path);
    if (typeof content === 'string') return undefined;
    try {
      return scanned(name, parseSnapshot(content));
    } catch {
      // One that a newer version wrote: who asks for it by its id is told so.
      return undefined;
    }
  }
}

/** `undefined`: the file is no snapshot, or not one of this name. */
export function scanned(fileName: string, parsed: ParsedFile): ScannedSnapshot | undefined {
  if (parsed.kind === 'broken') return undefined;
  const meta = parsed.kind === 'own' ? parsed.file.meta : parsed.meta;
  if (fileName !== snapshotName(meta.snapshotId) && fileName !== `${meta.snapshotId}.json`) return undefined;
  if (parsed.kind === 'foreign') {
    const session = sessionOf({ ...meta, state: parsed.state as { sessionId?: string } | undefined });
    return { fileName, meta, session: typeof session === 'string' ? session : null, own: undefined };
  }
  const { session, seq, stateRev, rev, written } = parsed.file;
  const base = written.kind === 'base' ? written.base : undefined;
  const lifted = written.kind === 'whole' && written.lifts.length > 0;
  return { fileName, meta, session, own: { seq, stateRev, rev, base, lifted } };
}

/**
 * The log that a session would have, from its files: those of other writers first, in the order of their creation, then its own in the
 * order of their first saves.
 */
export async function entriesOf(
  folder: TenantFolder,
  session: SessionName,
  snapshots: readonly ScannedSnapshot[],
): Promise<(SaveEntry | PieceEntry)[]> {
  // Where a snapshot has two files, the one under the encoded name is newer.
  const byId = new Map<string, ScannedSnapshot>();
  for (const snapshot of snapshots) {
    const { snapshotId } = snapshot.meta;
    if (!byId.has(snapshotId) || snapshot.fileName === snapshotName(snapshotId)) byId.set(snapshotId, snapshot);
  }
  const all = [...byId.values()];
  const own = all.filter((snapshot) => snapshot.own);
  const foreign = all.filter((snapshot) => !snapshot.own);
  foreign.sort((a, b) => byCreation(nodeOf(a), nodeOf(b)));
  const saves = own.map(ownEntry);
  const ours = [...saves, ...(await piecesOf(folder, session, saves))];
  // A piece that is missing has its place all the same.
  const taken = ours.flatMap(({ seq, base }) => (base ? [seq, base[0]] : [seq]));
  const lowest = taken.reduce((least, seq) => Math.min(least, seq), foreign.length + 1);
  const theirs = foreign.map((snapshot, index) => foreignEntry(snapshot, lowest - foreign.length + index));
  return [...theirs, ...ours].toSorted((a, b) => a.seq - b.seq || a.stateRev - b.stateRev);
}

/** The entry that adopts another writer's snapshot. */
export function foreignEntry({ fileName, meta }: ScannedSnapshot, seq: number): SaveEntry {
  return { op: 'save', seq, rev: 0, stateRev: 0, foreign: fileName, t: timeOf(meta), ok: true, meta };
}

/** The entry that takes in a snapshot of this store. */
export function ownEntry({ meta, own }: ScannedSnapshot): SaveEntry {
  const { seq, rev, stateRev, base, lifted } = own!;
  return {
    op: 'save',
    seq,
    rev,
    stateRev,
    ...(base && { base: [base.seq, base.stateRev] }),
    ...(lifted && { lifted }),
    t: timeOf(meta),
    ok: true,
    meta,
  };
}

/** The pieces that these versions start from, and those that they start from in turn. */
async function piecesOf(
  folder: TenantFolder,
  session: SessionName,
  saves: readonly SaveEntry[],
): Promise<PieceEntry[]> {
  const present = new Set(saves.map(({ seq, stateRev }) => `${seq}.${stateRev}`));
  const pieces: PieceEntry[] = [];
  const wanted = saves.flatMap(({ base }) => (base ? [base] : []));
  for (const [seq, stateRev] of wanted) {
    if (present.has(`${seq}.${stateRev}`)) continue;
    present.add(`${seq}.${stateRev}`);
    folder.assertNoLinkedShards(session);
    const content = await readWhole(folder.store.fs, folder.piece(session, { seq, stateRev }));
    if (typeof content === 'string') continue;
    const parsed = parseSnapshot(content);
    if (parsed.kind !== 'own') continue;
    const { meta, written } = parsed.file;
    const lifted = written.kind === 'whole' && written.lifts.length > 0;
    const base = written.kind === 'base' ? ([written.base.seq, written.base.stateRev] as const) : undefined;
    pieces.push({ op: 'piece', id: meta.snapshotId, seq, stateRev, ...(base && { base }), ...(lifted && { lifted }) });
    if (base) wanted.push(base);
  }
  return pieces;
}

/** µs since 1970. A time that can't be read is the oldest. */
function timeOf(meta: SnapshotMetadata): number {
  return (Date.parse(meta.updatedAt ?? meta.createdAt) || 0) * 1000;
}

function nodeOf({ meta }: ScannedSnapshot): SnapshotMetadata {
  return { ...meta, createdAt: meta.createdAt ?? '' };
}
