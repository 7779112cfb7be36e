import { SessionTree, type SnapshotNode } from '../../src/snapshot/session-tree.ts';
import type { SnapshotStatus } from '../../src/snapshot/snapshot.ts';
import { DamagedLog, type LogLine, type SaveLine } from './format/save-log.ts';
import type { SnapshotHead } from './format/snapshot-file.ts';

/** The head of a file that was read; valid while the file has this stamp. */
export interface SeenHead {
  readonly head: SnapshotHead;
  readonly stamp: string;
  /** The rest of the file was read as well, and is intact. */
  readonly isWhole: boolean;
}

/** A snapshot of a session: its data in the log, and its head after that was read. */
export class IndexNode implements SnapshotNode {
  readonly snapshotId: string;
  readonly parentId?: string;
  readonly place: number;
  /** When it was first saved, in µs. */
  readonly at: number;
  seen: SeenHead | undefined;

  constructor({ save, id, parent, at }: SaveLine) {
    this.snapshotId = id;
    if (parent !== undefined) this.parentId = parent;
    this.place = save;
    this.at = at;
  }

  /** From the head if that was read, else the time of the first save. */
  get createdAt(): string {
    return this.seen?.head.meta.createdAt ?? new Date(this.at / 1000).toISOString();
  }

  get updatedAt(): string | undefined {
    return this.seen?.head.meta.updatedAt;
  }

  get status(): SnapshotStatus | undefined {
    return this.seen?.head.meta.status;
  }
}

/** The order of a session's first saves, from its log. */
export class SessionIndex {
  readonly tree = new SessionTree<IndexNode>();
  readonly #byPlace = new Map<number, IndexNode>();
  #next = 1;
  #writtenAt = 0;
  #updatedAt: string | undefined;
  #lines = 0;
  #removed: readonly IndexNode[] = [];

  /** The place of the next new snapshot. A count, so that it does not depend on a clock. */
  get next(): number {
    return this.#next;
  }

  /** When the session was last written, in µs. */
  get writtenAt(): number {
    return this.#writtenAt;
  }

  /** When the session was last written, by the times of that snapshot. */
  get updatedAt(): string | undefined {
    return this.#updatedAt;
  }

  /** The snapshot that was written last; `undefined` if it was removed. */
  get lastWritten(): IndexNode | undefined {
    const last = this.tree.lastWritten();
    return last && this.#byPlace.get(last.place);
  }

  /** Whether the snapshot that had this place was removed. */
  wasRemoved(place: number): boolean {
    return place < this.#next && !this.#byPlace.has(place);
  }

  /** The snapshots that the last line removed. */
  get removed(): readonly IndexNode[] {
    return this.#removed;
  }

  /** Whether a log with only the needed lines would be much shorter. */
  get shouldCompact(): boolean {
    return this.#lines > 4 * this.tree.size + 128;
  }

  /**
   * @throws DamagedLog when the line can't follow those before it.
   */
  apply(line: LogLine): void {
    this.#lines++;
    this.#removed = [];
    if ('save' in line) this.#save(line);
    else if ('rewrite' in line) this.#rewrite(line.rewrite, line.at);
    else if ('remove' in line) this.#remove(line.remove, line);
    else if ('delete' in line) this.#remove([...this.#byPlace.keys()], {});
    else if ('next' in line) this.#next = Math.max(this.#next, line.next);
  }

  /** The fewest lines that result in this index. */
  compacted(): LogLine[] {
    const lines = [...this.#neededLines()];
    this.#lines = lines.length;
    return lines;
  }

  *#neededLines(): Generator<LogLine> {
    let next = 1;
    for (const { place, snapshotId: id, parentId: parent, at } of this.tree.nodes()) {
      if (place !== next) yield { next: place };
      yield { save: place, id, parent, at };
      next = place + 1;
    }
    if (this.#next !== next) yield { next: this.#next };
    const last = this.lastWritten;
    if (last) yield { rewrite: last.place, at: this.#writtenAt };
    else yield { remove: [], at: this.#writtenAt, updatedAt: this.#updatedAt };
  }

  #save(line: SaveLine): void {
    if (line.save !== this.#next) throw new DamagedLog();
    const node = new IndexNode(line);
    this.tree.put(node);
    this.#byPlace.set(line.save, node);
    this.#next++;
    this.#note(line.at);
    if (line.removes) this.#remove(line.removes, {});
  }

  #rewrite(place: number, at: number): void {
    this.tree.put(this.#mustGet(place));
    this.#note(at);
  }

  #remove(
    places: readonly number[],
    { at, updatedAt }: { at?: number | undefined; updatedAt?: string | undefined },
  ): void {
    this.#removed = places.map((place) => this.#mustGet(place));
    for (const { place, snapshotId } of this.#removed) {
      this.tree.remove(snapshotId);
      this.#byPlace.delete(place);
    }
    if (at !== undefined) this.#writtenAt = at;
    if (updatedAt !== undefined) this.#updatedAt = updatedAt;
  }

  #mustGet(place: number): IndexNode {
    const node = this.#byPlace.get(place);
    if (!node) throw new DamagedLog();
    return node;
  }

  #note(at: number): void {
    this.#writtenAt = at;
    this.#updatedAt = undefined;
  }
}
