import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { quote } from '../../src/errors.ts';
import type { Sealer } from '../../src/store/encryption/encryption.ts';
import type { CutMemory } from '../chain/cut.ts';
import { attempt, closeQuietly, CREATE, READ_APPEND, stampOf } from './disk/file-system.ts';
import { isRefused } from './disk/io-error.ts';
import type { HeldLock } from './disk/lock-folder.ts';
import { readBeginning, readFrom } from './disk/read-file.ts';
import { hashOf } from './format/names.ts';
import {
  DamagedLog,
  formatHeader,
  formatLine,
  parseHeader,
  parseLines,
  type LogLine,
  type SaveLine,
} from './format/save-log.ts';
import { openHead, parseFile, type SnapshotHead } from './format/snapshot-file.ts';
import { readHead, readOwnHead } from './read/read-head.ts';
import { IndexNode, SessionIndex, type SeenHead } from './session-index.ts';
import { LOG } from './tenant-folder.ts';
import type { TenantSessions } from './tenant-sessions.ts';

/** A snapshot that the log has, but of which a file is missing or damaged. */
export class DamagedSnapshot extends Error {}

/**
 * One session: its log, and the index made from it. The log has the order in which the snapshots were first saved; everything else about a
 * snapshot is in its file.
 *
 * A first save appends its line to the log, then commits by moving the snapshot's file into its place, and appends `done` when all of its
 * work is complete. So only the last line can be of a save without a commit, until the next writer cuts it off.
 */
export class FileSession {
  readonly tenant: TenantSessions;
  readonly id: string;
  /** The folder of the session's log, its shards and kept states. */
  readonly path: string;
  /** Encrypts and decrypts the session's data. */
  readonly sealer: Sealer;
  index = new SessionIndex();
  /** Shards that this process wrote, or read and found intact. */
  readonly checkedShards = new Set<string>();
  /** Shards that all exist, as long as the session's folder has this stamp. */
  completeShards: { readonly memory: CutMemory; readonly stamp: string } | undefined;
  readonly #keptHeads = new Map<string, SnapshotHead>();
  #incarnation = '';
  /** The first line of the log as it was read. */
  #header = Buffer.alloc(0);
  /** Bytes of the log that are in the index. */
  #position = 0;
  #stamp = '';
  /** The last line in the index, if no later one says that it is done. */
  #unfinished: LogLine | undefined;
  /** The log has more after `#position`: the line of a save without a commit, or a partial line. */
  #hasTail = false;
  /** The index was made from the snapshots' files. */
  #isRebuilt = false;
  #reading: Promise<void> = Promise.resolve();
  #isWriting = false;

  constructor(tenant: TenantSessions, id: string) {
    this.tenant = tenant;
    this.id = id;
    this.path = tenant.folder.session(id);
    this.sealer = tenant.folder.sealer('session', id, () => this.#reopen());
  }

  /** Distinguishes the session from a deleted one with the same id; empty if the session does not exist. */
  get incarnation(): string {
    return this.#incarnation;
  }

  /** The log could not be read, and the index is made from the snapshots' files. */
  get isRebuilt(): boolean {
    return this.#isRebuilt;
  }

  /** The session is deleted, but not all of its data is removed yet. */
  get isBeingDeleted(): boolean {
    return this.#unfinished !== undefined && 'delete' in this.#unfinished;
  }

  get #log(): string {
    return join(this.path, LOG);
  }

  /** Brings the index up to date, without any lock. Changes no file. */
  async refresh(): Promise<void> {
    this.tenant.folder.store.hasFolder(this.path);
    // While a writer of this process holds the lock, no other process writes, and the index is as the writer read it.
    if (this.#isWriting) return this.#reading;
    if (!this.#isCurrent()) await this.#readInTurn();
  }

  /** Reads run one after the other: each continues where the one before ended. */
  #readInTurn(): Promise<void> {
    const reading = this.#reading.then(() => (this.#isCurrent() ? undefined : this.#read()));
    this.#reading = reading.catch(() => {});
    return reading;
  }

  /** Rebuilds the index from the snapshots' files. */
  async rebuild(): Promise<void> {
    const scanned = (await this.tenant.scan()).get(this.id);
    this.#reset();
    this.#isRebuilt = true;
    this.#incarnation = scanned?.incarnation ?? '';
    for (const line of scanned?.lines ?? []) this.index.apply(line);
  }

  /** Rewrites the log from the snapshots' files. Call it under the lock. */
  async restore(): Promise<void> {
    await this.rebuild();
    if (this.#incarnation !== '') await this.#rewriteLog();
  }

  /** Runs `task` on the current session, while no other writer can change it. */
  withLock<T>(task: (lock: HeldLock) => Promise<T>): Promise<T> {
    const { folder } = this.tenant;
    const name = hashOf(folder.tenant, this.id, 'session');
    return folder.store.locks.run(name, `Session ${quote(this.id)}`, async (lock) => {
      this.#isWriting = true;
      try {
        await this.#refreshForWriting();
        return await task(lock);
      } finally {
        this.#isWriting = false;
      }
    });
  }

  /** Changes whenever a snapshot's file changes; empty if the file is missing. */
  stampOf({ snapshotId }: IndexNode): string {
    const stats = this.tenant.folder.store.fs.stat(this.tenant.folder.snapshot(snapshotId));
    return stats ? stampOf(stats) : '';
  }

  /** Whether a snapshot's file is unchanged since its head was read. */
  isAsSeen(node: IndexNode): boolean {
    return node.seen !== undefined && this.stampOf(node) === node.seen.stamp;
  }

  /**
   * The head of a snapshot's file.
   *
   * @throws DamagedSnapshot when the file is missing, or of another snapshot.
   */
  head(node: IndexNode): SnapshotHead {
    if (node.seen && this.isAsSeen(node)) return node.seen.head;
    const found = readHead(this.tenant.folder.store.fs, this.tenant.folder.snapshot(node.snapshotId));
    if (typeof found === 'string') throw new DamagedSnapshot(found === 'missing' ? MISSING : DAMAGED);
    return this.note(node, found);
  }

  /**
   * Keeps the head that was read from a snapshot's file.
   *
   * @throws DamagedSnapshot when it is the head of another snapshot.
   */
  note(node: IndexNode, seen: SeenHead): SnapshotHead {
    const { head } = seen;
    const isIt = head.session === this.id && head.incarnation === this.#incarnation;
    if (!isIt || head.meta.snapshotId !== node.snapshotId) throw new DamagedSnapshot(DAMAGED);
    node.seen = seen;
    return head;
  }

  /**
   * The head with its encrypted part decrypted.
   *
   * @throws DamagedSnapshot, or `FAILED_PRECONDITION` without the key.
   */
  async opened(head: SnapshotHead): Promise<SnapshotHead> {
    if (head.sealed === undefined) return head;
    try {
      const opened = await openHead(head, this.sealer);
      const node = this.index.tree.get(head.meta.snapshotId);
      if (node?.seen?.head === head) node.seen = { ...node.seen, head: opened };
      return opened;
    } catch (error) {
      throw error instanceof GenkitError ? error : new DamagedSnapshot(DAMAGED);
    }
  }

  /** Decrypts the file of the latest leaf, without the cache. */
  async #reopen(): Promise<void> {
    const { folder } = this.tenant;
    const leaf = this.index.tree.latestLeaf();
    const content = leaf && (await readFrom(folder.store.fs, folder.snapshot(leaf.snapshotId)));
    if (typeof content === 'object') await parseFile(content.bytes, this.sealer);
  }

  /**
   * A head with the session's details, which each write copies from the write before it. Some may be encrypted. If the newest can't be read,
   * an earlier one has an earlier title, and the same owner.
   */
  headWithDetails(): SnapshotHead | undefined {
    const { tree, lastWritten } = this.index;
    const last = lastWritten && headIfReadable(this, lastWritten);
    if (last) return last;
    for (const node of [...tree.nodes()].toReversed()) {
      const head = headIfReadable(this, node);
      if (head) return head;
    }
    return undefined;
  }

  /** The path of a removed snapshot's state that diffs of other snapshots need. */
  pathOfKept(version: string): string {
    return join(this.path, `${version}.json`);
  }

  /** The head of a kept state; `undefined` if it is missing. */
  keptHead(version: string): SnapshotHead | undefined {
    const head = this.#keptHeads.get(version) ?? readOwnHead(this.tenant.folder.store.fs, this.pathOfKept(version));
    if (head) this.#keptHeads.set(version, head);
    return head;
  }

  /** Keeps the state of a removed snapshot. */
  keep(head: SnapshotHead): void {
    const { store } = this.tenant.folder;
    store.fs.rename(this.tenant.folder.snapshot(head.meta.snapshotId), this.pathOfKept(head.state.version));
    this.#keptHeads.set(head.state.version, head);
  }

  /** Whether the log has lost the snapshot of this head. Removed snapshots are not lost. */
  hasLost({ meta, incarnation, place }: SnapshotHead): boolean {
    if (this.#incarnation === '') return true;
    const isKnown = this.index.tree.has(meta.snapshotId) || this.index.wasRemoved(place);
    return incarnation === this.#incarnation && !isKnown;
  }

  /**
   * Writes the line of a first save, before its commit. Call it under the lock.
   *
   * @param incarnation The session's; a new one for a new session.
   */
  beginSave(line: SaveLine, incarnation: string): PendingSave {
    const { store } = this.tenant.folder;
    const isNew = this.#incarnation === '';
    const made = isNew ? [this.path, ...store.makeFolder(this.path)] : [];
    const fd = store.fs.open(this.#log, isNew ? CREATE : READ_APPEND);
    if (isNew) {
      this.#incarnation = incarnation;
      this.#header = Buffer.from(this.#newHeader());
    }
    const cancel = (): void => {
      attempt(() => (isNew ? this.#removeFolder() : store.fs.truncate(fd, this.#position)));
      closeQuietly(store.fs, fd);
      if (isNew) this.#reset();
      this.#stamp = '';
    };
    const bytes = Buffer.from((isNew ? this.#header.toString('utf8') : '') + formatLine(line));
    try {
      store.fs.write(fd, bytes);
    } catch (error) {
      cancel();
      throw error;
    }
    const commit = (): void => {
      this.#position += bytes.length;
      this.#stamp = '';
      this.#unfinished = line;
      this.index.apply(line);
    };
    const end = (isDone: boolean): void => {
      if (isDone) attempt(() => this.#append(fd, { done: true }));
      closeQuietly(store.fs, fd);
    };
    return { fd, made, cancel, commit, end };
  }

  /** Adds a line about a finished operation or, with `flush`, about one that begins. Call it under the lock. */
  async append(line: LogLine, { flush }: { flush: boolean }): Promise<void> {
    const { store } = this.tenant.folder;
    const fd = store.fs.open(this.#log, READ_APPEND);
    try {
      this.#append(fd, line);
      if (flush) await store.flush(fd);
    } finally {
      closeQuietly(store.fs, fd);
    }
  }

  #append(fd: number, line: LogLine): void {
    const { fs } = this.tenant.folder.store;
    const bytes = Buffer.from(formatLine(line));
    try {
      fs.write(fd, bytes);
      this.#position += bytes.length;
      this.#unfinished = 'done' in line || 'rewrite' in line ? undefined : line;
      // Not for `done`: it would clear the list of the snapshots that the line before has removed.
      if (!('done' in line)) this.index.apply(line);
      this.#stamp = stampOf(fs.statOpen(fd));
    } catch (error) {
      this.#stamp = '';
      throw error;
    }
  }

  /** Rewrites the log when it is much longer than needed. Call it under the lock. */
  async compact(): Promise<void> {
    if (this.index.shouldCompact) await this.#rewriteLog();
  }

  /** Removes the session's folder, and resets the index. Call it under the lock. */
  async remove(): Promise<void> {
    this.#removeFolder();
    await this.tenant.folder.store.flushFolder(this.tenant.folder.sessions);
    this.#reset();
  }

  /** Removes the log last: as long as it exists, the next writer continues the removal. */
  #removeFolder(): void {
    const { store } = this.tenant.folder;
    for (const name of store.namesIn(this.path)) if (name !== LOG) store.remove(join(this.path, name));
    store.remove(this.#log);
    if (store.hasFolder(this.path)) store.fs.rmdir(this.path);
  }

  async #refreshForWriting(): Promise<void> {
    this.tenant.folder.store.hasFolder(this.path);
    if (!this.#isCurrent()) await this.#readInTurn();
    if (!this.#isRebuilt) this.#cutTail();
    else if (this.#incarnation !== '') await this.#rewriteLog();
    // The log of a failed first save, without a snapshot.
    else this.tenant.folder.store.remove(this.#log);
    if (!this.#unfinished) return;
    await this.tenant.finish(this, this.#unfinished);
    if (this.#unfinished) await this.append({ done: true }, { flush: false });
  }

  /** Cuts off the line of a save without a commit, or a partial line: its writer no longer holds the lock. */
  #cutTail(): void {
    const { fs } = this.tenant.folder.store;
    if (!this.#hasTail) return;
    const fd = fs.open(this.#log, READ_APPEND);
    try {
      fs.truncate(fd, this.#position);
      this.#stamp = stampOf(fs.statOpen(fd));
      this.#hasTail = false;
    } finally {
      closeQuietly(fs, fd);
    }
  }

  async #rewriteLog(): Promise<void> {
    const { store } = this.tenant.folder;
    const made = store.makeFolder(this.path);
    const header = Buffer.from(this.#newHeader());
    const bytes = Buffer.concat([header, Buffer.from(this.index.compacted().map(formatLine).join(''))]);
    await store.replace(this.#log, bytes);
    for (const path of [this.path, ...made]) await store.flushFolder(path);
    this.#header = header;
    this.#position = bytes.length;
    this.#stamp = stampOf(store.fs.stat(this.#log)!);
    this.#isRebuilt = false;
  }

  #newHeader(): string {
    return formatHeader({ session: this.id, incarnation: this.#incarnation, log: newNonce() });
  }

  #isCurrent(): boolean {
    if (this.#hasTail || this.#isRebuilt) return false;
    const stats = this.#statLog();
    return stats ? stampOf(stats) === this.#stamp : this.#incarnation === '' && this.#stamp === NO_LOG;
  }

  #statLog(): Stats | undefined {
    return this.tenant.folder.store.fs.stat(this.#log);
  }

  async #read(): Promise<void> {
    const { store } = this.tenant.folder;
    const content = await readFrom(store.fs, this.#log, this.#position);
    if (content === 'missing') return this.#readWithoutLog();
    try {
      if (content === 'no-file') throw new DamagedLog();
      const isSame = this.#position > 0 && content.stats.size >= this.#position && this.#hasSameHeader();
      if (isSame) return this.#take(content.bytes, stampOf(content.stats));
      const whole = this.#position === 0 ? content : await readFrom(store.fs, this.#log);
      this.#reset();
      if (typeof whole === 'string') return await this.#readWithoutLog();
      this.#take(this.#takeHeader(whole.bytes), stampOf(whole.stats));
    } catch (error) {
      if (!(error instanceof DamagedLog)) throw error;
      await this.rebuild();
    }
  }

  /** The session was never saved, or its log was removed from outside. */
  async #readWithoutLog(): Promise<void> {
    const { folder } = this.tenant;
    const kind = folder.kind();
    if (kind === 'lost' || (kind === 'own' && folder.store.hasFolder(this.path))) return this.rebuild();
    this.#reset();
    this.#stamp = NO_LOG;
  }

  #hasSameHeader(): boolean {
    const content = readBeginning(this.tenant.folder.store.fs, this.#log, this.#header.length);
    return typeof content === 'object' && content.bytes.equals(this.#header);
  }

  #takeHeader(bytes: Buffer): Buffer {
    const end = bytes.indexOf(10) + 1;
    if (end === 0) throw new DamagedLog();
    const header = parseHeader(bytes.subarray(0, end));
    if (header.session !== this.id) throw new DamagedLog();
    this.#header = Buffer.from(bytes.subarray(0, end));
    this.#incarnation = header.incarnation;
    this.#position = end;
    return bytes.subarray(end);
  }

  /** @param bytes The log from `#position` on. */
  #take(bytes: Buffer, stamp: string): void {
    // The bytes after the last line break are a partial line: it is being written, or was cut off.
    let end = bytes.lastIndexOf(10) + 1;
    const lines = end === 0 ? [] : parseLines(bytes.subarray(0, end));
    const last = lines.at(-1);
    // Before `#hasTail` is assigned: if this throws, a tail that was seen before is still cut off.
    const isLastUnsaved = last !== undefined && 'save' in last && !this.#isSaved(last);
    this.#hasTail = isLastUnsaved || end < bytes.length;
    if (isLastUnsaved) {
      lines.pop();
      end = bytes.lastIndexOf(10, end - 2) + 1;
    }
    for (const line of lines) this.index.apply(line);
    const unfinished = lines.at(-1);
    if (unfinished) this.#unfinished = 'done' in unfinished || 'rewrite' in unfinished ? undefined : unfinished;
    this.#position += end;
    this.#stamp = stamp;
  }

  /** Whether the file of a first save is in its place. An unreadable file counts: it was damaged after the move. */
  #isSaved({ id, save }: SaveLine): boolean {
    const found = readHead(this.tenant.folder.store.fs, this.tenant.folder.snapshot(id));
    if (typeof found === 'string') return found === 'broken' || found === 'foreign';
    return found.head.incarnation === this.#incarnation && found.head.place === save;
  }

  #reset(): void {
    this.index = new SessionIndex();
    this.checkedShards.clear();
    this.completeShards = undefined;
    this.#keptHeads.clear();
    this.#incarnation = '';
    this.#header = Buffer.alloc(0);
    this.#position = 0;
    this.#stamp = '';
    this.#unfinished = undefined;
    this.#hasTail = false;
    this.#isRebuilt = false;
  }
}

/** The stamp of a missing log; no file has it. */
const NO_LOG = 'none';

const MISSING = 'its file is missing';
const DAMAGED = 'its file is damaged, or is of another snapshot';

/** A new unique text. */
export function newNonce(): string {
  return randomBytes(6).toString('hex');
}

/** A first save whose line is in the log, before its commit. */
export interface PendingSave {
  /** The log, open. */
  readonly fd: number;
  /** Folders that got a new entry. */
  readonly made: readonly string[];
  /** Removes the line, and closes the log. */
  cancel(): void;
  /** Call it when the snapshot's file is in its place. */
  commit(): void;
  /** Closes the log. `isDone`: all work of the save is complete. */
  end(isDone: boolean): void;
}

/** The head of a snapshot's file; `undefined` if it is damaged, a newer version wrote it, or the process may not open it. */
export function headIfReadable(session: FileSession, node: IndexNode): SnapshotHead | undefined {
  try {
    return headUnlessDamaged(session, node);
  } catch (error) {
    if (isRefused(error)) return undefined;
    throw error;
  }
}

/** The head of a snapshot's file; `undefined` if it is damaged. */
export function headUnlessDamaged(session: FileSession, node: IndexNode): SnapshotHead | undefined {
  try {
    return session.head(node);
  } catch (error) {
    if (error instanceof DamagedSnapshot) return undefined;
    throw error;
  }
}
