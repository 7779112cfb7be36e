import { SessionTree, type SnapshotNode } from '../../src/snapshot/lineage.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { nextTime, type PieceEntry, type RetireEntry, type SaveEntry, type Trail } from './log-entry.ts';
import { snapshotName } from './names.ts';
import type { Version } from './snapshot-file.ts';

/** One state of one snapshot, as it is on the disk. */
export interface StoredVersion extends Version {
  readonly snapshotId: string;
  /** The version that its patches start from. */
  readonly base: StoredVersion | undefined;
  /** Patched versions between it and a whole one. */
  readonly depth: number;
  /** Parts of it are in shards. */
  readonly lifted: boolean;
  /** Versions that start from this one. */
  dependents: number;
  /** It is what its snapshot reads as; else it is kept as a piece, because others start from it. */
  live: boolean;
}

/** What a snapshot's file was found to hold; it counts while the file has this stamp. */
export interface SeenFile {
  readonly stamp: string;
  /** As the index has it, unless another writer rewrote the file. */
  readonly meta: SnapshotMetadata;
}

/** A snapshot of the session. */
export interface IndexNode extends SnapshotNode {
  readonly meta: SnapshotMetadata;
  readonly rev: number;
  readonly version: StoredVersion;
  /** The name of its file when another writer made it. */
  readonly foreign: string | undefined;
  /** Its statuses so far, for those who did not look in between. */
  readonly trail: Trail;
  /** `undefined`: the file was not looked into. */
  seen: SeenFile | undefined;
}

/** What an entry makes of the files. Whoever wrote the entry carries it out; doing it twice does no harm. */
export interface Aftermath {
  /** Removed snapshots that others start from: their files become pieces. */
  readonly pieces: readonly StoredVersion[];
  /** Versions that nothing needs any more. `live`: it is the snapshot's file, else a piece. */
  readonly dropped: readonly StoredVersion[];
  readonly removed: readonly IndexNode[];
  /** Names of files of another writer in whose place the store's own have come. */
  readonly replaced: readonly string[];
}

export const NO_AFTERMATH: Aftermath = { pieces: [], dropped: [], removed: [], replaced: [] };

/** Older statuses of a snapshot are forgotten. */
const LONGEST_TRAIL = 256;

/** Times beyond this one (it is in 2112) would leave no room to count on; only metadata of others say such. */
const LATEST = 2 ** 52;

/** An aftermath in the making. */
type Growing = { -readonly [K in keyof Aftermath]: Aftermath[K][number][] };

/**
 * What is known of a session without its states, kept up to date by the entries of its log: its tree, and which version starts from which.
 *
 * Invariant: a version is here exactly when it is live or has dependents, and starts from one of an earlier snapshot.
 */
export class SessionIndex {
  readonly tree = new SessionTree<IndexNode>();
  readonly #bySeq = new Map<number, IndexNode>();
  readonly #versions = new Map<string, StoredVersion>();
  /** The snapshots that the log says were ever saved, those included that were removed. */
  readonly #owners = new Map<number, string>();
  #lastTime = 0;
  #entries = 0;

  /**
   * A place in the order of first saves for a new snapshot. It is taken from the clock: so it is that of no other, not even of one that the
   * log does not tell of any more, because it was written anew since that one was removed, or was cut short or lost.
   */
  newSeq(): number {
    return nextTime(this.#lastTime);
  }

  /** The same place each time it is asked for, so that lists go on where they ended: for what another writer added. */
  get guestSeq(): number {
    return this.#lastTime + 1;
  }

  /** The id of the snapshot that has, or had, a place in the order of first saves; `undefined`: the log does not know of any. */
  ownerOf(seq: number): string | undefined {
    return this.#owners.get(seq);
  }

  /** The first place that the log tells of; where it tells of none, all may be after it. */
  get firstSeq(): number {
    let first = Infinity;
    for (const seq of this.#owners.keys()) first = Math.min(first, seq);
    return first === Infinity ? -Infinity : first;
  }

  /** When the session was saved to last, in µs, and no earlier than any of its snapshots has its place; see `nextTime`. */
  get lastTime(): number {
    return this.#lastTime;
  }

  /** Whether a log that holds only what is needed would be much shorter. */
  get isWordy(): boolean {
    return this.#entries > 2 * this.#versions.size + 64;
  }

  versions(): IterableIterator<StoredVersion> {
    return this.#versions.values();
  }

  version({ seq, stateRev }: Version): StoredVersion | undefined {
    return this.#versions.get(`${seq}.${stateRev}`);
  }

  /** Whether rewriting the state of this snapshot must keep the old one, because others start from it. */
  isBase(node: IndexNode): boolean {
    return node.version.dependents > 0;
  }

  apply(entry: SaveEntry | PieceEntry | RetireEntry): Aftermath {
    this.#entries++;
    const aftermath: Growing = { pieces: [], dropped: [], removed: [], replaced: [] };
    if (entry.op === 'piece') {
      this.#addVersion(entry.id, entry, false);
      this.#owners.set(entry.seq, entry.id);
      return aftermath;
    }
    if (entry.op === 'save') this.#save(entry, aftermath);
    for (const seq of entry.retire ?? []) this.#retire(seq, aftermath);
    return aftermath;
  }

  /** The entries that make an index like this one. */
  *entries(): Generator<SaveEntry | PieceEntry> {
    const nodes = [...this.#bySeq.values()].map((node) => this.#entryOf(node));
    const pieces = [...this.#versions.values()].filter((version) => !version.live).map(pieceOf);
    // A version starts from one of an earlier snapshot, so in this order each finds what it starts from.
    yield* [...nodes, ...pieces].toSorted((a, b) => a.seq - b.seq);
    const last = this.tree.lastWritten();
    // It may have been removed since.
    if (last && this.tree.has(last.snapshotId)) yield this.#entryOf(last);
  }

  #save(entry: SaveEntry, aftermath: Growing): void {
    const { meta } = entry;
    this.#lastTime = Math.max(this.#lastTime, Math.min(entry.t, LATEST), entry.seq);
    const before = this.tree.get(meta.snapshotId);
    const isSameState = before?.version.seq === entry.seq && before.version.stateRev === entry.stateRev;
    const version = isSameState ? before.version : this.#addVersion(meta.snapshotId, entry, true);
    const node: IndexNode = {
      snapshotId: meta.snapshotId,
      parentId: meta.parentId,
      createdAt: meta.createdAt ?? '',
      updatedAt: meta.updatedAt,
      status: meta.status,
      meta,
      rev: entry.rev,
      version,
      foreign: entry.foreign,
      trail: entry.trail ?? trailOf(entry, before?.version.seq === entry.seq ? before.trail : []),
      seen: undefined,
    };
    this.tree.put(node);
    this.#bySeq.set(entry.seq, node);
    this.#owners.set(entry.seq, meta.snapshotId);
    if (!before) return;
    if (
      before.foreign !== undefined &&
      before.foreign !== snapshotName(meta.snapshotId) &&
      node.foreign === undefined
    ) {
      aftermath.replaced.push(before.foreign);
    }
    if (isSameState) return;
    before.version.live = false;
    // Its file was replaced, so there is none to remove, but for what it started from.
    if (before.version.dependents === 0) this.#forget(before.version, aftermath);
  }

  #retire(seq: number, aftermath: Growing): void {
    const node = this.#bySeq.get(seq);
    if (!node) return;
    this.#bySeq.delete(seq);
    this.tree.remove(node.snapshotId);
    aftermath.removed.push(node);
    if (node.version.dependents > 0) {
      node.version.live = false;
      aftermath.pieces.push(node.version);
    } else this.#drop(node.version, aftermath);
  }

  #drop(version: StoredVersion, aftermath: Growing): void {
    aftermath.dropped.push(version);
    this.#forget(version, aftermath);
  }

  #forget(version: StoredVersion, aftermath: Growing): void {
    this.#versions.delete(`${version.seq}.${version.stateRev}`);
    const { base } = version;
    if (!base) return;
    base.dependents--;
    if (!base.live && base.dependents === 0) this.#drop(base, aftermath);
  }

  #addVersion(snapshotId: string, entry: SaveEntry | PieceEntry, live: boolean): StoredVersion {
    const { seq, stateRev } = entry;
    const base = entry.base && this.#mustGetBase(entry.base);
    if (base) base.dependents++;
    const depth = base ? base.depth + 1 : 0;
    const version = { snapshotId, seq, stateRev, base, depth, lifted: entry.lifted ?? false, dependents: 0, live };
    this.#versions.set(`${seq}.${stateRev}`, version);
    return version;
  }

  /** A base that is not there stands in for itself: who reads it finds that it is missing. */
  #mustGetBase([seq, stateRev]: readonly [number, number]): StoredVersion {
    return this.version({ seq, stateRev }) ?? this.#addVersion('', { op: 'piece', id: '', seq, stateRev }, false);
  }

  #entryOf(node: IndexNode): SaveEntry {
    const { seq, stateRev, base, lifted } = node.version;
    return {
      op: 'save',
      seq,
      rev: node.rev,
      stateRev,
      ...(base && { base: [base.seq, base.stateRev] }),
      ...(lifted && { lifted }),
      ...(node.foreign !== undefined && { foreign: node.foreign }),
      t: this.#lastTime,
      ok: true,
      ...(node.trail.length > 1 && { trail: node.trail }),
      meta: node.meta,
    };
  }
}

function trailOf({ rev, meta }: SaveEntry, before: Trail): Trail {
  const status = meta.status ?? null;
  return before.at(-1)?.[1] === status ? before : [...before.slice(1 - LONGEST_TRAIL), [rev, status]];
}

function pieceOf({ snapshotId, seq, stateRev, base, lifted }: StoredVersion): PieceEntry {
  return {
    op: 'piece',
    id: snapshotId,
    seq,
    stateRev,
    ...(base && { base: [base.seq, base.stateRev] }),
    ...(lifted && { lifted }),
  };
}
