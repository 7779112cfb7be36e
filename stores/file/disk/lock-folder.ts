import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import { attempt, closeQuietly, codeOf, CREATE, type FileSystem } from './file-system.ts';
import { formatOwner, livenessOf, newOwner, parseOwner, type Owner } from './lock-owner.ts';
import { readBeginning } from './read-file.ts';

/** A lock is taken over at this age if its owner's process can't be looked up from here. */
const UNKNOWN_OWNER_EXPIRES_MS = 30_000;
/** After this time a holder no longer commits. Far below the age at which another process takes the lock over. */
const LONGEST_HOLD_MS = 15_000;
const LONGEST_PAUSE_MS = 10;

/** A lock that is held. */
export interface HeldLock {
  /** Call it right before a commit point. Throws `ABORTED` when the lock was held so long that another process may have taken it over. */
  assertHeld(): void;
}

/** A link of a chain: its path, and the owner that it names. */
interface Claim {
  readonly path: string;
  readonly text: string;
}

/** Queues the tasks of this process for a lock, so that they do not poll its file. */
const inThisProcess = new KeyQueue();

/**
 * Locks between processes that share a folder.
 *
 * Each process has a mark: a file that names it as an owner. A lock is a hard link to its owner's mark. One system call makes the link, and
 * fails if the lock exists; a link does not take an inode or a block. While the owner lives, others wait.
 *
 * A lock whose owner has died is taken over by a claim. Claims are links too: `<lock>.1`, then `<lock>.2` if the owner of `<lock>.1` has
 * died, and so on. So a lock is a chain of links, and the owner of the last link holds it. After making a claim, the claimer reads the
 * chain again; if another link of it is gone or its owner lives, the claimer withdraws. A release removes the lock first, then the claims.
 *
 * At most one owner holds a lock: if several make the same link, one succeeds. A claim that is made after the chain was released finds no
 * lock, or one of a living owner, and is withdrawn. If an owner dies during a release, its claim stays, as one more dead link of the next
 * chain.
 */
export class LockFolder {
  readonly path: string;
  readonly #fs: FileSystem;
  readonly #timeoutMs: number;
  readonly #makeFolder: () => void;
  readonly #flush: (fd: number) => Promise<void>;
  #owner: { readonly nonce: string; readonly text: string } | undefined;
  #isTidied = false;
  #named = 0;
  /** The locks that tasks of this folder hold or wait for. */
  readonly #inUse = new Set<string>();

  /**
   * @param options.makeFolder Creates the folder, if it is missing.
   * @param options.flush Flushes an open file.
   */
  constructor(
    fs: FileSystem,
    path: string,
    options: { timeoutMs: number; makeFolder: () => void; flush: (fd: number) => Promise<void> },
  ) {
    this.#fs = fs;
    this.path = path;
    this.#timeoutMs = options.timeoutMs;
    this.#makeFolder = options.makeFolder;
    this.#flush = options.flush;
  }

  /** A new, unique name that contains this process as the owner. */
  newOwnName(): string {
    return `${this.#self().text}-${(this.#named++).toString(36)}`;
  }

  /**
   * Runs `task` while holding the lock of this name.
   *
   * @param what What is locked, for the message: `Session "s"`.
   * @throws `ABORTED` when another owner holds the lock until the timeout; the system's error when the lock can't be created.
   */
  run<T>(name: string, what: string, task: (lock: HeldLock) => Promise<T>): Promise<T> {
    const path = join(this.path, name);
    return inThisProcess.run(path, async () => {
      this.#inUse.add(name);
      try {
        const chain = await this.#acquire(path, what);
        const age = stopwatch();
        if (!this.#isTidied) attempt(() => this.tidy());
        this.#isTidied = true;
        try {
          return await task({ assertHeld: () => assertRecent(age(), what) });
        } finally {
          // After that time another process may hold it.
          const own = age() < LONGEST_HOLD_MS ? chain : this.#tryAcquire(path);
          if (own) this.#release(own);
        }
      } finally {
        this.#inUse.delete(name);
      }
    });
  }

  /** Whether the owner that `text` names has died; if that can't be determined, whether the file at `path` is older than 30 seconds. */
  isAbandoned(text: string, path: string): boolean {
    const owner = parseOwner(text);
    const liveness = owner ? livenessOf(owner) : 'unknown';
    return liveness === 'unknown' ? this.#ageOf(path) > UNKNOWN_OWNER_EXPIRES_MS : liveness === 'dead';
  }

  /** Removes the files of dead owners. Keeps files whose names do not have the store's form. */
  tidy(): void {
    const names = this.#fs.readdir(this.path).filter((one) => OWN_NAME.test(one));
    for (const name of names) {
      const path = join(this.path, name);
      const isMark = name.startsWith(MARK);
      const text = isMark ? name.slice(MARK.length) : this.#read(path);
      if (text === undefined || this.#isOwn(text) || !this.isAbandoned(text, path)) continue;
      const [lock, claim] = name.split('.', 2) as [string, string | undefined];
      // In use by a task of this process, whose claim comes after this dead link.
      if (this.#inUse.has(lock)) continue;
      if (isMark || (claim !== undefined && !names.includes(lock))) this.#remove(path);
      else if (claim === undefined) this.#release(this.#tryAcquire(path) ?? []);
    }
  }

  /** Removes this process's mark; the next lock creates it again. */
  close(): void {
    if (this.#owner) this.#remove(this.#mark());
  }

  async #acquire(path: string, what: string): Promise<Claim[]> {
    const waited = stopwatch();
    for (let attempt = 1; ; attempt++) {
      const chain = await this.#tryWithMark(path);
      if (chain) return chain;
      if (waited() > this.#timeoutMs) {
        throw new GenkitError({
          status: 'ABORTED',
          message: `${what} was locked by another process for ${this.#timeoutMs} ms. Try again, or raise lockTimeoutMs.`,
        });
      }
      await pause(Math.min(attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random()));
    }
  }

  async #tryWithMark(path: string): Promise<Claim[] | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return this.#tryAcquire(path);
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' || attempt > MOST_MARKS) throw error;
        await this.#makeMark();
      }
    }
  }

  /** The chain that this process now holds, the lock first; `undefined`: another owner holds the lock. */
  #tryAcquire(path: string): Claim[] | undefined {
    const chain: Claim[] = [];
    for (let at = path; ; at = `${path}.${chain.length}`) {
      if (this.#create(at)) {
        if (chain.every((claim) => this.#isLost(claim))) return [...chain, { path: at, text: this.#self().text }];
        this.#remove(at);
        return undefined;
      }
      const text = this.#read(at);
      if (text === undefined) return undefined;
      const claim = { path: at, text };
      // Tasks of this process run one after the other, so its own link here is one that an earlier task could not remove.
      if (!this.#isOwn(text) && !this.isAbandoned(text, at)) return undefined;
      chain.push(claim);
    }
  }

  /** Whether a link still exists and its owner no longer holds the lock by it. */
  #isLost({ path, text }: Claim): boolean {
    return this.#read(path) === text && (this.#isOwn(text) || this.isAbandoned(text, path));
  }

  /** Removes the lock before its claims: the claims must exist as long as the lock does, or another process would take it over. */
  #release(chain: readonly Claim[]): void {
    for (const { path } of chain) {
      // A link that can't be removed stays this owner's: the next task here claims it, or another process after this one has ended.
      if (!this.#remove(path) && !this.#remove(path)) return;
    }
  }

  #remove(path: string): boolean {
    try {
      this.#fs.unlink(path);
      return true;
    } catch (error) {
      return codeOf(error) === 'ENOENT';
    }
  }

  #create(path: string): boolean {
    try {
      this.#fs.link(this.#mark(), path);
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    }
  }

  /**
   * Makes the folder and this process's mark. The mark is written and flushed before any lock is linked to it, so every lock has its
   * text even after a power failure. If the mark can't be written, the call fails.
   */
  async #makeMark(): Promise<void> {
    this.#makeFolder();
    if (this.#fs.stat(this.#mark())) return;
    const fd = this.#fs.open(this.#mark(), CREATE);
    try {
      this.#fs.write(fd, Buffer.from(this.#self().text, 'latin1'));
      await this.#flush(fd);
    } catch (error) {
      this.#remove(this.#mark());
      throw error;
    } finally {
      closeQuietly(this.#fs, fd);
    }
  }

  #mark(): string {
    return join(this.path, `${MARK}${this.#self().text}`);
  }

  /** The text of a lock or a claim; `undefined` if it does not exist. */
  #read(path: string): string | undefined {
    const content = readBeginning(this.#fs, path, LONGEST_TEXT);
    return typeof content === 'object' ? content.bytes.toString('latin1') : content === 'missing' ? undefined : '';
  }

  #isOwn(text: string): boolean {
    return parseOwner(text)?.nonce === this.#self().nonce;
  }

  #ageOf(path: string): number {
    const madeAt = this.#fs.stat(path)?.ctimeMs;
    // A time in the future means that the clock was set back since.
    return madeAt === undefined ? 0 : Math.abs(Date.now() - madeAt);
  }

  #self(): { readonly nonce: string; readonly text: string } {
    if (!this.#owner) {
      const owner: Owner = newOwner();
      this.#owner = { nonce: owner.nonce, text: formatOwner(owner) };
    }
    return this.#owner;
  }
}

/** The beginning of the names of marks. The owner's text follows; it is the file's content, too. */
const MARK = 'owner-';
/** Bytes that are read of a mark. */
const LONGEST_TEXT = 256;
/** How often a mark is created again: another process may remove a mark that is just being written. */
const MOST_MARKS = 5;

/** The names of marks, of locks, and of claims on them. The store does not remove other files in the folder. */
const OWN_NAME = /^(?:owner-1\.[0-9a-f.]+|[0-9a-f]{64}(?:\.\d+)?)$/;

function assertRecent(ageMs: number, what: string): void {
  if (ageMs < LONGEST_HOLD_MS) return;
  throw new GenkitError({
    status: 'ABORTED',
    message: `${what} was locked for longer than ${LONGEST_HOLD_MS} ms by this call, which saved nothing. Try again.`,
  });
}

/**
 * Measures time in ms, as the maximum of two clocks: one stops while the machine sleeps, the other may be set. A clock that was set back counts
 * as time that has passed, as it does for the processes that wait for the lock.
 */
function stopwatch(): () => number {
  const [wall, steady] = [Date.now(), performance.now()];
  return () => Math.max(Math.abs(Date.now() - wall), performance.now() - steady);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
