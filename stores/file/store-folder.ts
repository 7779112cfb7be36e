import { dirname, join } from 'node:path';
import { failedPrecondition } from '../../src/errors.ts';
import { closeQuietly, codeOf, CREATE, isRefusal, READ_FOLDER, type FileSystem } from './file-system.ts';
import { LockFolder } from './lock.ts';
import { LruCache } from '../chain/lru-cache.ts';
import { isLogName } from './names.ts';
import { readWhole } from './read-file.ts';

/** How much is on the disk when a save is acknowledged. */
export type Durability = 'full' | 'fast';

const MOST_CHECKED_SHARDS = 20_000;

/** What is made under a temporary name: the nonce of its maker, and a number. Nothing else in the folder is the store's to remove. */
const TEMPORARY = /^([0-9a-f]{12})-\d+$/;

/** The store's whole folder: locks, temporary files, and below it a folder for each tenant. */
export class StoreFolder {
  readonly fs: FileSystem;
  readonly path: string;
  readonly durability: Durability;
  readonly locks: LockFolder;
  /** Paths of shards that this store has written, or read and found to be whole. */
  readonly checkedShards = new LruCache<true>(MOST_CHECKED_SHARDS);
  readonly #temporary: string;
  readonly #locks: string;
  #made = 0;
  #tidied = false;

  constructor(fs: FileSystem, path: string, options: { durability: Durability; lockTimeoutMs: number }) {
    this.fs = fs;
    this.path = path;
    this.durability = options.durability;
    this.#temporary = join(path, '.tmp');
    this.#locks = join(path, '.locks');
    const makeFolder = (): void => void this.makeFolder(this.#locks);
    this.locks = new LockFolder(fs, this.#locks, { timeoutMs: options.lockTimeoutMs, makeFolder });
  }

  /**
   * To be called before something is changed. The first time it removes the temporary files of processes that died; who only reads changes
   * nothing.
   *
   * @throws as {@link hasFolder} does.
   */
  prepare(): void {
    const areThere = [this.#locks, this.#temporary].map((path) => this.hasFolder(path));
    // Where there are no locks, nothing tells whose maker is gone.
    if (this.#tidied || areThere.includes(false)) return;
    this.#tidied = true;
    attempt(() => {
      for (const name of this.fs.readdir(this.#temporary)) attempt(() => this.#tidyTemporary(name));
    });
  }

  /** Leaves no mark of this process behind. */
  close(): void {
    // What has come into the folder's place is not the store's.
    attempt(() => this.hasFolder(this.#locks) && this.locks.close());
  }

  #tidyTemporary(name: string): void {
    const nonce = TEMPORARY.exec(name)?.[1];
    if (nonce !== undefined && this.locks.isLeftBehind(nonce)) this.removeTemporary(join(this.#temporary, name));
  }

  /** A path for what is made before it is moved into place; to be used while holding a lock. */
  newTemporary(): string {
    return join(this.#temporary, `${this.locks.nonce}-${this.#made++}`);
  }

  /** Writes a file to a temporary path and answers both; the file is open, and is not flushed. */
  writeTemporary(bytes: Uint8Array): { path: string; fd: number } {
    const path = this.newTemporary();
    try {
      return { path, fd: this.writeNew(path, bytes) };
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      this.makeFolder(this.#temporary);
      return { path, fd: this.writeNew(path, bytes) };
    }
  }

  /** Writes a file that must not be there yet, and answers it open and not flushed. */
  writeNew(path: string, bytes: Uint8Array): number {
    const fd = this.fs.open(path, CREATE);
    try {
      this.fs.write(fd, bytes);
      return fd;
    } catch (error) {
      closeQuietly(this.fs, fd);
      attempt(() => this.remove(path));
      throw error;
    }
  }

  /** Writes a file and moves it into its place, whole and flushed as the durability says. */
  async replace(path: string, bytes: Uint8Array): Promise<void> {
    const made = this.writeTemporary(bytes);
    try {
      await this.flush(made.fd);
      this.fs.rename(made.path, path);
    } catch (error) {
      attempt(() => this.remove(made.path));
      throw error;
    } finally {
      closeQuietly(this.fs, made.fd);
    }
  }

  /** Gives a file a second name; where there are no hard links, or no more of them, a copy has it. */
  async linkOrCopy(from: string, to: string): Promise<void> {
    try {
      this.fs.link(from, to);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const content = await readWhole(this.fs, from);
      if (typeof content === 'string') throw error;
      await this.replace(to, content);
    }
  }

  /** Flushes an open file, or not, as the durability says. */
  async flush(fd: number): Promise<void> {
    if (this.durability === 'full') await this.fs.flush(fd);
  }

  /** Flushes the entries of a folder, or not, as the durability says. */
  async flushFolder(path: string): Promise<void> {
    if (this.durability !== 'full' || process.platform === 'win32') return;
    const fd = this.fs.open(path, READ_FOLDER);
    try {
      await this.fs.flush(fd);
    } finally {
      closeQuietly(this.fs, fd);
    }
  }

  /**
   * Whether there is such a folder inside the store's. What stands in its place is refused: a link may lead anywhere, and others may have
   * put it there. That tells how it is now; what comes there later is followed until somebody looks again.
   *
   * @throws `FAILED_PRECONDITION` for a symbolic link, and for all else that is no folder.
   */
  hasFolder(path: string): boolean {
    const found = this.fs.stat(path);
    if (!found) return false;
    if (found.isDirectory()) return true;
    throw failedPrecondition(
      'Something that is no folder, a symbolic link perhaps, is where the store keeps a folder of its own. The store does not follow ' +
        'links inside its directory: put the folder itself there.',
    );
  }

  /**
   * Makes a folder, and those above it, where they are missing; answers the folders that got a new entry.
   *
   * @throws as {@link hasFolder} does.
   */
  makeFolder(path: string): string[] {
    try {
      return this.#makeLast(path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    }
    // Some folders say ENOENT of a new entry although they are there, those of /proc say: then the second answer stands.
    return [...this.makeFolder(dirname(path)), ...this.#makeLast(path)];
  }

  #makeLast(path: string): string[] {
    try {
      this.fs.mkdir(path);
      return [dirname(path)];
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      // The store's own folder, and those above it, the caller chose: they may be links.
      if (path.length > this.path.length) this.hasFolder(path);
      return [];
    }
  }

  /** Removes a file; it may be gone already. */
  remove(path: string): void {
    try {
      this.fs.unlink(path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }

  /** Removes what was made at a temporary path, a file or a folder of logs. Where there is more in it than the store makes, that stays. */
  removeTemporary(path: string): void {
    const found = this.fs.stat(path);
    if (found?.isFile()) this.remove(path);
    if (!found?.isDirectory()) return;
    for (const name of this.fs.readdir(path)) {
      const file = join(path, name);
      if (isLogName(name) && this.fs.stat(file)?.isFile()) this.remove(file);
    }
    this.fs.rmdir(path);
  }
}

/** For what is only a service: a failure is no reason to fail. */
export function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The next process that opens the folder tries again.
  }
}
