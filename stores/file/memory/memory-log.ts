import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { dataLoss } from '../../../src/errors.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import type { MemoryChanges, MemoryScopeId } from '../../../src/store/memory/contract.ts';
import { describeMemoryScope, memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import { ScopeMemories } from '../../../src/store/memory/scope-memories.ts';
import { inOrderOfChange, memorySequenceOf, type MemoryVersion } from '../../../src/store/memory/version.ts';
import type { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import type { LruCache } from '../../../src/store/parts/lru-cache.ts';
import { chunksOf } from '../../chain/chunks.ts';
import { closeQuietly, READ_APPEND } from '../disk/file-system.ts';
import type { HeldLock } from '../disk/lock-folder.ts';
import { openFile, readBeginning, readPart } from '../disk/read-file.ts';
import type { StoreFolder } from '../disk/store-folder.ts';
import {
  formatBlock,
  formatHeader,
  formatTail,
  LONGEST_HEADER,
  LONGEST_TAIL,
  NO_TAIL,
  parseBlock,
  parseHeader,
  parseTail,
  type LogTail,
} from './log-format.ts';

/** A log as far as this process has read it. */
export interface LoadedLog {
  /** Distinguishes the file from one that has replaced it. */
  readonly inode: number;
  readonly memories: ScopeMemories;
  /** Where the last commit ends. */
  end: number;
  tail: LogTail;
}

export interface SharedLogs {
  readonly folder: StoreFolder;
  readonly loaded: LruCache<LoadedLog>;
  /** A log is loaded by one call at a time. */
  readonly loads: KeyQueue;
}

/** The size of a block in a rewritten log, in bytes. */
const BLOCK_BYTES = 256 * 1024;
/** After this many commits that put nothing the log is rewritten without their lines. */
const MOST_IDLE = 4000;

/**
 * The log of a scope: the memories that each commit put, in order. A commit appends a line with these memories, and a tail, which commits
 * it. A commit that removes memories rewrites the log without them. Reading takes no lock; writing takes the scope's.
 */
export class MemoryLog {
  readonly path: string;
  readonly #shared: SharedLogs;
  readonly #key: string;
  readonly #scope: MemoryScopeId;
  readonly #sealer: Sealer;

  /** @param scopePath The folder of the scope. */
  constructor(shared: SharedLogs, scopePath: string, key: string, sealer: Sealer) {
    this.path = join(scopePath, 'log.jsonl');
    this.#shared = shared;
    this.#key = key;
    this.#scope = memoryScopeOfKey(key);
    this.#sealer = sealer;
  }

  /** The last commit; reads the end of the log. */
  async tail(): Promise<LogTail> {
    const { folder } = this.#shared;
    const bytes = await this.#reading((fd, { size }) =>
      readPart(folder.fs, fd, Math.max(0, size - LONGEST_TAIL), size),
    );
    if (!bytes) return NO_TAIL;
    const end = bytes.lastIndexOf(10) + 1;
    const start = end < 2 ? 0 : bytes.lastIndexOf(10, end - 2) + 1;
    // After an interrupted write, the last tail is further up in the log.
    return parseTail(bytes.subarray(start, end)) ?? (await this.load()).tail;
  }

  /** All memories; reads what was appended since the last time. */
  load(): Promise<LoadedLog> {
    return this.#shared.loads.run(this.path, () => this.#load());
  }

  /** Reads all memories again from the disk, to check that they can be decrypted. */
  async reopen(): Promise<void> {
    this.#shared.loaded.delete(this.path);
    await this.load();
  }

  /** {@link ScopeMemories.changes}; of a log that this process has not loaded only the commits after `since` are read. */
  async changes(since: number): Promise<MemoryChanges> {
    if (since > 0 && !this.#shared.loaded.get(this.path)) {
      const changes = await this.#readBackTo(since);
      if (changes) return changes;
    }
    return (await this.load()).memories.changes(since);
  }

  /**
   * Makes a commit that puts these versions.
   *
   * @param before The last commit.
   */
  async append(before: LogTail, next: LogTail, versions: readonly MemoryVersion[], lock: HeldLock): Promise<void> {
    if (before.commit === 0 || before.isErased || next.idle > MOST_IDLE) {
      const { memories } = await this.load();
      return this.rewrite(next, [...memories.versions(), ...versions], lock);
    }
    const { folder } = this.#shared;
    const block = versions.length === 0 ? '' : await formatBlock(versions, next.commit, await this.#sealer.cipher());
    const size = Buffer.byteLength(block);
    const fd = folder.fs.open(this.path, READ_APPEND);
    try {
      await this.#dropTorn(fd, before);
      lock.assertHeld();
      folder.fs.write(fd, Buffer.from(block + formatTail({ ...next, block: size })));
      await folder.flush(fd);
    } finally {
      closeQuietly(folder.fs, fd);
    }
  }

  /** Makes a commit after which the log holds these versions and no others. */
  async rewrite(next: LogTail, versions: readonly MemoryVersion[], lock: HeldLock): Promise<void> {
    const cipher = versions.length === 0 ? undefined : await this.#sealer.cipher();
    const lines = [formatHeader(next.isErased ? undefined : this.#key)];
    const sizeOf = ({ memory, vector }: MemoryVersion): number => memory.text.length + 4 * (vector?.length ?? 0) + 500;
    for (const group of chunksOf(versions, BLOCK_BYTES, sizeOf)) {
      // Negative numbers, one for each block: an encrypted block is bound to its number.
      const commit = -lines.length;
      const block = await formatBlock(group, commit, cipher);
      const revision = Math.floor(group.at(-1)!.sequence / memorySequenceOf(1));
      lines.push(block, formatTail({ ...next, commit, revision, block: Buffer.byteLength(block) }));
    }
    lines.push(formatTail({ ...next, block: 0, idle: 0 }));
    const { folder } = this.#shared;
    await folder.replace(this.path, Buffer.concat(lines.map((line) => Buffer.from(line))), () => lock.assertHeld());
    this.#shared.loaded.delete(this.path);
  }

  /** The scope of a log; `null` if it was erased or has no files; `undefined` if it can't be read. */
  static async scopeOf(folder: StoreFolder, scopePath: string): Promise<string | null | undefined> {
    if (folder.namesIn(scopePath).length === 0) return null;
    const content = readBeginning(folder.fs, join(scopePath, 'log.jsonl'), LONGEST_HEADER);
    return typeof content === 'string'
      ? undefined
      : parseHeader(content.bytes.subarray(0, content.bytes.indexOf(10) + 1));
  }

  async #load(): Promise<LoadedLog> {
    const { loaded } = this.#shared;
    const known = loaded.get(this.path);
    try {
      const log = await this.#reading(async (fd, { ino, size }) => {
        if (known?.inode !== ino || known.end > size) return this.#readTo(fd, size, this.#newLog(ino));
        if (known.end === size) return known;
        // A later file may have the same inode.
        const isSame = await this.#hasTailAt(fd, known.end, known.tail);
        return this.#readTo(fd, size, isSame ? known : this.#newLog(ino));
      });
      if (log) loaded.set(this.path, log, Math.max(1, log.end));
      else loaded.delete(this.path);
      return log ?? this.#newLog(0);
    } catch (error) {
      loaded.delete(this.path);
      throw error;
    }
  }

  #newLog(inode: number): LoadedLog {
    return { inode, memories: new ScopeMemories(this.#scope), end: 0, tail: NO_TAIL };
  }

  /** Whether a commit with this tail ends at a position. */
  async #hasTailAt(fd: number, end: number, tail: LogTail): Promise<boolean> {
    const expected = Buffer.from(formatTail(tail));
    const bytes = await readPart(this.#shared.folder.fs, fd, Math.max(0, end - expected.length), end);
    return bytes.equals(expected);
  }

  /** Reads the commits after `log.end`. */
  async #readTo(fd: number, size: number, log: LoadedLog): Promise<LoadedLog> {
    const start = log.end;
    const bytes = await readPart(this.#shared.folder.fs, fd, start, size);
    if (start === 0) {
      log.end = bytes.indexOf(10) + 1;
      if (parseHeader(bytes.subarray(0, log.end)) === undefined) throw this.#damaged();
    }
    let block: Buffer | undefined;
    for (let at = log.end - start; ;) {
      const end = bytes.indexOf(10, at) + 1;
      if (end === 0) return log;
      const line = bytes.subarray(at, end);
      at = end;
      const tail = parseTail(line);
      if (!tail) {
        block = line;
        continue;
      }
      if (tail.block !== (block?.length ?? 0)) throw this.#damaged();
      log.memories.restore(block ? await this.#parse(block, tail.commit) : [], tail);
      [log.tail, log.end, block] = [tail, start + at, undefined];
    }
  }

  async #parse(block: Buffer, commit: number): Promise<MemoryVersion[]> {
    try {
      return await parseBlock(block, commit, { scope: this.#scope, sealer: this.#sealer });
    } catch (error) {
      if (error instanceof GenkitError) throw error;
      throw this.#damaged();
    }
  }

  /** The changes after a revision, read from the end of the log; `undefined` if the whole log must be read. */
  async #readBackTo(since: number): Promise<MemoryChanges | undefined> {
    const { folder } = this.#shared;
    return this.#reading(async (fd, { size }) => {
      const current = new Map<string, MemoryVersion>();
      let last: LogTail | undefined;
      for (let end = size; ;) {
        const start = Math.max(0, end - LONGEST_TAIL);
        const bytes = await readPart(folder.fs, fd, start, end);
        const lineStart = bytes.lastIndexOf(10, bytes.length - 2) + 1;
        const tail = bytes.at(-1) === 10 ? parseTail(bytes.subarray(lineStart)) : undefined;
        if (!tail) return undefined;
        last ??= tail;
        if (since < last.reset || since > last.revision) return undefined;
        if (tail.revision <= since) break;
        end = start + lineStart - tail.block;
        const block = tail.block === 0 ? undefined : await readPart(folder.fs, fd, end, end + tail.block);
        for (const version of block ? (await this.#parse(block, tail.commit)).toReversed() : []) {
          if (!current.has(version.memory.id)) current.set(version.memory.id, version);
        }
      }
      const first = memorySequenceOf(since + 1);
      const changed = [...current.values()].filter(({ contentSequence }) => contentSequence >= first);
      return { revision: last.revision, changed: inOrderOfChange(changed), isReset: false };
    });
  }

  /** Cuts off the rest of an interrupted write after the last commit. */
  async #dropTorn(fd: number, before: LogTail): Promise<void> {
    const { fs } = this.#shared.folder;
    const { size } = fs.statOpen(fd);
    if (await this.#hasTailAt(fd, size, before)) return;
    const { end } = await this.load();
    if (end < size) fs.truncate(fd, end);
  }

  /** Opens the log, and reads it; `undefined` if it does not exist. */
  async #reading<T>(
    read: (fd: number, stats: { readonly ino: number; readonly size: number }) => Promise<T>,
  ): Promise<T | undefined> {
    const { fs } = this.#shared.folder;
    const opened = openFile(fs, this.path);
    if (opened === 'missing') return undefined;
    if (opened === 'no-file') throw this.#damaged();
    try {
      return await read(opened.fd, opened.stats);
    } finally {
      closeQuietly(fs, opened.fd);
    }
  }

  #damaged(): GenkitError {
    return dataLoss(
      `The memories of ${describeMemoryScope(this.#key)} can't be read: their log is damaged. Restore it from a backup, or erase them.`,
    );
  }
}
