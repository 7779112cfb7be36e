import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { KeyQueue } from '../../src/store/key-queue.ts';
import { codeOf, type FileSystem } from './file-system.ts';
import { Notes } from './notes.ts';
import { formatOwner, livenessOf, newOwner, parseOwner, type Owner } from './owner.ts';

/** The lock of an owner that can't be asked is taken over when it has not been heard of for so long, by the file system's clock. */
const REMOTE_LOCK_EXPIRES_MS = 30_000;
/** Whoever holds a lock for longer gives up before it commits; far below the time after which another machine takes it over. */
const LONGEST_HOLD_MS = 15_000;
/** What such an owner left behind otherwise, nobody waits for: it is kept for a day, by this machine's clock. */
const REMOTE_OWNER_FORGOTTEN_MS = 24 * 60 * 60 * 1000;
const LONGEST_PAUSE_MS = 10;

/** A lock that is held. */
export interface HeldLock {
  /** Call it right before a commit point: throws `ABORTED` when the lock has been held too long to be sure of it. */
  assertHeld(): void;
}

/** Tasks of this process wait for each other here, in order, instead of by looking at the file again and again. */
const inThisProcess = new KeyQueue();

/**
 * Locks between processes that share a folder.
 *
 * A lock is a note, made by who gets it, whose text names its owner; who finds one waits until it is gone. A lock whose owner has died is
 * taken over. The chain of a lock is its note, then the claim on that note's owner, then the claim on that claim's owner, and so on; a claim
 * on an owner is a note too, named after the lock and the owner's nonce. The holder is the last of the chain. To take over is to claim the
 * last of a chain of dead owners, and then to see that the chain is still the one that was read; else the claim is withdrawn. To release is
 * to remove the lock's note first, then the claims.
 *
 * At most one holds: a note is made at most once, so one process at a time has the claim on an owner. If it had been made before, by one
 * that has released since, that one removed the lock's note first; a note of the dead owner can't come back, because its nonce is its
 * own; so the look at the chain after claiming finds another one, and the late claim is withdrawn. Who withdraws, or removes claims while
 * releasing, removes notes that no chain leads to any more.
 */
export class LockFolder {
  readonly #fs: FileSystem;
  readonly #notes: Notes;
  readonly #folder: string;
  readonly #timeoutMs: number;
  readonly #makeFolder: () => void;
  #owner: Owner | undefined;
  #isTidied = false;

  /** @param options.makeFolder Makes the folder, if it is not there. */
  constructor(fs: FileSystem, folder: string, options: { timeoutMs: number; makeFolder: () => void }) {
    this.#fs = fs;
    this.#notes = new Notes(fs);
    this.#folder = folder;
    this.#timeoutMs = options.timeoutMs;
    this.#makeFolder = options.makeFolder;
  }

  /** Put it into the names of what is made while holding a lock: {@link isLeftBehind} then tells whether its maker is gone. */
  get nonce(): string {
    return this.#self().nonce;
  }

  /**
   * Runs `task` while holding the lock of this name.
   *
   * @param what What is locked, for the message: `Session "s"`.
   * @throws `ABORTED` when the lock is not to be had in time.
   */
  async run<T>(name: string, what: string, task: (lock: HeldLock) => Promise<T>): Promise<T> {
    const path = join(this.#folder, name);
    return inThisProcess.run(path, async () => {
      this.#tidyOnce();
      const chain = await this.#acquire(path, what);
      const since = Date.now();
      try {
        return await task({ assertHeld: () => assertRecent(since, what) });
      } finally {
        this.#release(chain);
      }
    });
  }

  /** Whether what the owner of this nonce left behind can be removed. */
  isLeftBehind(nonce: string): boolean {
    if (nonce === this.#owner?.nonce) return false;
    const path = this.#master(nonce);
    const owner = parseOwner(this.#notes.read(path) ?? '');
    return !owner || this.#isForgotten(owner, path);
  }

  /** Removes what dead owners left: their marks, claims that nothing leads to, and locks that nobody holds. What is no note stays. */
  tidy(): void {
    const names = this.#fs.readdir(this.#folder).filter((name) => OWN_NAME.test(name));
    for (const name of names) {
      const path = join(this.#folder, name);
      const found = this.#fs.stat(path);
      if (!found?.isFile() && !found?.isSymbolicLink()) continue;
      const owner = parseOwner(this.#notes.read(path) ?? '');
      const isInUse = owner && (owner.nonce === this.#owner?.nonce || !this.#isForgotten(owner, path));
      // A file may have lost its text with the machine's power; a link that has another one is not the store's.
      if (isInUse || (!owner && !found.isFile())) continue;
      const [lock, claimed] = name.split('.') as [string, string | undefined];
      if (lock.startsWith(MARK)) this.#fs.unlink(path);
      else if (claimed === undefined) this.#release(this.#tryAcquire(path) ?? []);
      else if (!names.includes(lock)) this.#fs.unlink(path);
    }
  }

  /** Removes this process's mark. It comes back with the next lock. */
  close(): void {
    if (this.#owner) this.#remove(this.#master(this.#owner.nonce));
  }

  #tidyOnce(): void {
    if (this.#isTidied) return;
    this.#isTidied = true;
    try {
      this.tidy();
    } catch {
      // The next process that locks something tries again.
    }
  }

  async #acquire(path: string, what: string): Promise<string[]> {
    const deadline = performance.now() + this.#timeoutMs;
    for (let attempt = 1; ; attempt++) {
      const chain = this.#tryAcquire(path);
      if (chain) return chain;
      if (performance.now() > deadline) {
        throw new GenkitError({
          status: 'ABORTED',
          message: `${what} was locked by others for ${this.#timeoutMs} ms. Try again; raise lockTimeoutMs if it has to wait longer.`,
        });
      }
      await pause(Math.min(attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random()));
    }
  }

  /** The notes to remove at the end, the lock's first; `undefined`: somebody holds it. */
  #tryAcquire(path: string): string[] | undefined {
    if (this.#create(path)) return [path];
    const chain: { path: string; text: string }[] = [];
    for (let last = path; ;) {
      const text = this.#notes.read(last);
      if (text === undefined) return undefined;
      chain.push({ path: last, text });
      const owner = parseOwner(text);
      // Tasks of this process come one after the other, so this is a lock that could not be released.
      if (owner?.nonce === this.nonce) return chain.map((note) => note.path);
      if (owner && !this.#hasLost(owner, last)) return undefined;
      last = `${path}.${owner?.nonce ?? this.#nonceOfUnreadable(last)}`;
      if (!this.#create(last)) continue;
      if (chain.every((note) => this.#notes.read(note.path) === note.text)) return [...chain.map((n) => n.path), last];
      this.#fs.unlink(last);
      return undefined;
    }
  }

  #release(chain: readonly string[]): void {
    for (const path of chain) {
      // What can't be removed stays this owner's: the next task here has it again, other processes when this one has ended.
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
    const self = this.#self();
    const create = (): boolean => this.#notes.create(path, formatOwner(self), this.#master(self.nonce));
    try {
      return create();
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      this.#makeFolder();
      return create();
    }
  }

  #self(): Owner {
    this.#owner ??= newOwner();
    return this.#owner;
  }

  #master(nonce: string): string {
    return join(this.#folder, `${MARK}${nonce}`);
  }

  /** A note has its text from the start, unless the machine lost its power: then its owner is gone, and only the note itself tells it from others. */
  #nonceOfUnreadable(path: string): string {
    return `unreadable-${this.#fs.stat(path)?.ino ?? 0}`;
  }

  /** Whether an owner has lost the lock of this note. */
  #hasLost(owner: Owner, path: string): boolean {
    const liveness = livenessOf(owner);
    return liveness === 'dead' || (liveness === 'remote' && this.#ageOf(path) > REMOTE_LOCK_EXPIRES_MS);
  }

  /** Whether nobody will ask for what an owner left behind. Makes no files. */
  #isForgotten(owner: Owner, path: string): boolean {
    const liveness = livenessOf(owner);
    if (liveness !== 'remote') return liveness === 'dead';
    return Date.now() - (this.#fs.stat(path)?.ctimeMs ?? Infinity) > REMOTE_OWNER_FORGOTTEN_MS;
  }

  /** Time since the owner of a note made its last one, by the clock of the file system, so that no other clock plays a part. */
  #ageOf(path: string): number {
    const note = this.#fs.stat(path);
    const probe = join(this.#folder, `probe-${this.nonce}-${probes++}`);
    if (!note || !this.#create(probe)) return 0;
    try {
      // The probe may be one more link to this process's mark, which was last touched by making it.
      return (this.#fs.stat(probe)?.ctimeMs ?? 0) - note.ctimeMs;
    } finally {
      this.#fs.unlink(probe);
    }
  }
}

/** How the names of owners' marks begin. */
const MARK = 'owner-';

/** The names of marks, of locks and probes, and of claims on these. Nothing else in the folder is the store's to remove. */
const OWN_NAME =
  /^(?:owner-[0-9a-f]{12}|(?:[0-9a-f]{64}|probe-[0-9a-f]{12}-\d+)(?:\.(?:[0-9a-f]{12}|unreadable-\d+))?)$/;

let probes = 0;

function assertRecent(since: number, what: string): void {
  if (Date.now() - since < LONGEST_HOLD_MS) return;
  throw new GenkitError({
    status: 'ABORTED',
    message: `${what} was locked for longer than ${LONGEST_HOLD_MS} ms by this call, which gave up and saved nothing. Try again.`,
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
