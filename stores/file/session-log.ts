import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { parseJson } from '../../src/json/value.ts';
import { assertReadable } from '../../src/store/format.ts';
import { closeQuietly, codeOf, READ, READ_APPEND, type FileSystem } from './file-system.ts';
import { formatEntry } from './log-entry.ts';
import type { DeleteEntry, LogEntry, PieceEntry, RetireEntry, SaveEntry } from './log-entry.ts';
import { sessionNameOf, type SessionName } from './names.ts';
import { NO_AFTERMATH, SessionIndex, type Aftermath, type IndexNode } from './session-index.ts';
import { FORMAT } from './snapshot-file.ts';
import type { TenantFolder } from './tenant-folder.ts';

/** An entry that has to be confirmed, and is not yet. */
export type OpenEntry = SaveEntry | RetireEntry | DeleteEntry;

/** What was found where the log should be. */
export type LogState = 'present' | 'missing' | 'damaged';

/** Told of every snapshot that an entry wrote, in order. `isFirst`: it was there when the log was first read. */
export type EntryListener = (node: IndexNode, isFirst: boolean) => void;

/** `{"format":1,"log":"0123456789abcdef"`: two logs never begin the same, so a log that was replaced is told from one that grew. */
const BEGINNING = `{"format":${FORMAT},"log":"0123456789abcdef"`.length;

class Damage extends Error {}

/**
 * The log of a session: one JSON object a line, in the order of commits. The first line names the session; each other is a `LogEntry`.
 *
 * An entry that is not confirmed can only be the last one. A save counts, before it is confirmed, exactly when the snapshot's file has the
 * revision that the entry names; other entries count as they stand. Whoever writes next settles the last entry first. A last line without
 * its end is one that somebody is just writing, or could not: it does not count, and is cut off by whoever writes next.
 *
 * Several processes may read while one, which holds the session's lock, writes.
 */
export class SessionLog {
  /** What the entries amount to. */
  index = new SessionIndex();
  /** The last entry, when it is not confirmed and was not found to count. */
  open: SaveEntry | undefined;
  /** The last entry is to be confirmed, though it counts already. */
  unconfirmed: OpenEntry | undefined;
  /** What the last applied entry makes of the files. */
  aftermath: Aftermath = NO_AFTERMATH;
  /** Stays the same while the session lives, and never comes back when another one takes its place. */
  epoch = '';
  #since: number | undefined;
  /** `null`: the log of the snapshots that have no session. `undefined`: no log was read. */
  sessionId: string | null | undefined;
  /** The session was deleted; removing its files may not be done. */
  deleted = false;
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #name: SessionName;
  readonly #onEntry: EntryListener;
  #beginning: Buffer | undefined;
  /** How much of the file was read: up to the end of a line. */
  #offset = 0;
  /** Whether what follows the last whole line, which somebody left who died or failed, is still there. */
  #isTorn = false;
  #fd: number | undefined;

  constructor(folder: TenantFolder, name: SessionName, onEntry: EntryListener) {
    this.#fs = folder.store.fs;
    this.#path = folder.log(name);
    this.#name = name;
    this.#onEntry = onEntry;
  }

  /** The place of the session's first snapshot: what has one before that is not of this session, but of a deleted one of the same id. */
  get since(): number {
    return this.#since ?? this.index.firstSeq;
  }

  /** Changes whenever an entry was read. */
  get position(): string {
    return `${this.#beginning?.toString('latin1') ?? ''}${this.#offset}`;
  }

  /** Reads what is new. `damaged`: what is there can't be a log; nothing of it counts. */
  read(): LogState {
    const fd = this.#openFile(READ);
    if (fd === undefined) return 'missing';
    try {
      return this.#readFrom(fd);
    } finally {
      closeQuietly(this.#fs, fd);
    }
  }

  /** For the holder of the session's lock: reads what is new, and keeps the file open for `append` until `close`. */
  readForWriting(): LogState {
    this.close();
    const fd = this.#openFile(READ_APPEND);
    if (fd === undefined) return 'missing';
    this.#fd = fd;
    return this.#readFrom(fd);
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) closeQuietly(this.#fs, fd);
  }

  /**
   * For the holder of the session's lock, after `readForWriting`: appends an entry, and takes it in as if it had been read.
   *
   * @param flush Told the file once the entry is written.
   */
  async append(entry: LogEntry, flush?: (fd: number) => Promise<void>): Promise<void> {
    const fd = this.#fd;
    if (fd === undefined) throw new Error('invariant: a log is written to while it is open for writing');
    const bytes = Buffer.from(formatEntry(entry));
    this.#cutOffTornLine(fd);
    this.#writeWhole(fd, bytes);
    this.#offset += bytes.length;
    this.#take(entry, false);
    await flush?.(fd);
  }

  /** Whether this entry is the open one: announced, and not found to count. */
  isOpen({ seq, rev, meta }: SaveEntry): boolean {
    const { open } = this;
    return open?.seq === seq && open.rev === rev && open.meta.snapshotId === meta.snapshotId;
  }

  /** Takes in that an announced save counts, unless somebody in this process did already: its writer, or one of many who read. */
  count(entry: SaveEntry): void {
    if (!this.isOpen(entry)) return;
    this.open = undefined;
    this.unconfirmed = entry;
    this.#apply(entry, false);
  }

  /** Forgets all, so that the next `read` starts from the beginning. */
  reset(): void {
    this.index = new SessionIndex();
    this.open = undefined;
    this.unconfirmed = undefined;
    this.epoch = '';
    this.#since = undefined;
    this.sessionId = undefined;
    this.deleted = false;
    this.aftermath = NO_AFTERMATH;
    this.#beginning = undefined;
    this.#offset = 0;
  }

  #openFile(flags: number): number | undefined {
    try {
      return this.#fs.open(this.#path, flags);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      this.reset();
      return undefined;
    }
  }

  #readFrom(fd: number): LogState {
    const size = this.#fs.statOpen(fd).size;
    const beginning = Buffer.alloc(BEGINNING);
    const length = this.#fs.read(fd, beginning, 0);
    const isSame = length === BEGINNING && this.#beginning?.equals(beginning) === true && size >= this.#offset;
    this.#isTorn = isSame && size > this.#offset;
    if (isSame && !this.#isTorn) return 'present';
    const isFirst = !isSame;
    if (isFirst) this.reset();
    const bytes = Buffer.alloc(size - this.#offset);
    const lines = bytes.subarray(0, bytes.subarray(0, this.#fs.read(fd, bytes, this.#offset)).lastIndexOf(10) + 1);
    if (lines.length === 0) return this.#beginning ? 'present' : 'missing';
    try {
      if (!isUtf8(lines)) throw new Damage();
      this.#readLines(lines.toString('utf8').split('\n').slice(0, -1), isFirst);
    } catch (error) {
      if (!(error instanceof Damage || error instanceof SyntaxError)) throw error;
      this.reset();
      return 'damaged';
    }
    this.#beginning = beginning;
    this.#offset += lines.length;
    this.#isTorn = size > this.#offset;
    return 'present';
  }

  #readLines(lines: readonly string[], isFirst: boolean): void {
    if (isFirst) this.#readHeader(lines[0]!);
    for (const line of isFirst ? lines.slice(1) : lines) {
      const entry: unknown = parseJson(line);
      if (typeof entry !== 'object' || entry === null || !('op' in entry)) throw new Damage();
      this.#take(entry as LogEntry, isFirst);
    }
  }

  #readHeader(line: string): void {
    const header = parseJson(line) as { format?: unknown; epoch?: unknown; since?: unknown; session?: unknown } | null;
    if (typeof header?.format !== 'number') throw new Damage();
    assertReadable(header.format, FORMAT, 'The index of a session');
    const { epoch, since, session } = header;
    if (typeof epoch !== 'string' || (typeof session !== 'string' && session !== null)) throw new Damage();
    if (sessionNameOf(session) !== this.#name) throw new Damage();
    this.epoch = epoch;
    this.#since = typeof since === 'number' ? since : undefined;
    this.sessionId = session;
  }

  /** Takes in an entry of the log. Nothing else but {@link count} changes the index. */
  #take(entry: LogEntry, isFirst: boolean): void {
    const { open } = this;
    const isSettled = !open && !this.unconfirmed;
    const settles = entry.op === 'ok' || entry.op === 'void';
    // What was found to count can't be void.
    if (settles ? isSettled || (entry.op === 'void' && !open) : !isSettled) throw new Damage();
    this.open = entry.op === 'save' && !entry.ok ? entry : undefined;
    this.unconfirmed = entry.op === 'retire' || entry.op === 'delete' ? entry : undefined;
    if (entry.op === 'ok') {
      if (open) this.#apply(open, isFirst);
    } else if (entry.op !== 'void' && !this.open) this.#apply(entry, isFirst);
  }

  #apply(entry: OpenEntry | PieceEntry, isFirst: boolean): void {
    if (entry.op === 'delete') {
      this.aftermath = { ...NO_AFTERMATH, dropped: [...this.index.versions()], removed: [...this.index.tree.nodes()] };
      this.deleted = true;
      this.index = new SessionIndex();
      return;
    }
    this.aftermath = this.index.apply(entry);
    const node = entry.op === 'save' ? this.index.tree.get(entry.meta.snapshotId) : undefined;
    if (node) this.#onEntry(node, isFirst);
  }

  #cutOffTornLine(fd: number): void {
    if (this.#isTorn) this.#fs.truncate(fd, this.#offset);
    this.#isTorn = false;
  }

  #writeWhole(fd: number, bytes: Uint8Array): void {
    try {
      this.#fs.write(fd, bytes);
    } catch (error) {
      try {
        this.#fs.truncate(fd, this.#offset);
      } catch {
        // Then a torn line stays, which does not count, until the next entry is written.
        this.#isTorn = true;
      }
      throw error;
    }
  }
}

/**
 * The content of a log.
 *
 * @param log.replaced The log in whose place it comes; none for a new session.
 */
export function formatLog(log: {
  sessionId: string | null;
  entries: Iterable<LogEntry>;
  replaced?: Pick<SessionLog, 'epoch' | 'since'> | undefined;
}): Buffer {
  const nonce = randomBytes(8).toString('hex');
  const { sessionId: session, replaced } = log;
  const entries = [...log.entries];
  const since = replaced?.since ?? firstSeqIn(entries);
  const header = {
    format: FORMAT,
    log: nonce,
    epoch: replaced?.epoch ?? nonce,
    ...(Number.isFinite(since) && { since }),
    session,
  };
  return Buffer.from([`${JSON.stringify(header)}\n`, ...entries.map(formatEntry)].join(''));
}

function firstSeqIn(entries: readonly LogEntry[]): number {
  return entries.reduce((first, entry) => ('seq' in entry ? Math.min(first, entry.seq) : first), Infinity);
}
