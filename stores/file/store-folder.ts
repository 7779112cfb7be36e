import { dirname, join } from 'node:path';
import { closeQuietly, codeOf, CREATE, isRefusal, READ_FOLDER, type FileSystem } from './file-system.ts';
import { LockFolder } from './lock.ts';
import { LruCache } from '../chain/lru-cache.ts';
import { readWhole } from './read-file.ts';

/** How much is on the disk when a save is acknowledged. */
export type Durability = 'full' | 'fast';

const MOST_CHECKED_SHARDS = 20_000;

/** The store's whole folder: locks, temporary files, and below it a folder for each tenant. */
export class StoreFolder {
  readonly fs: FileSystem;
  readonly path: string;
  readonly durability: Durability;
  readonly locks: LockFolder;
  /** Paths of shards that this store has written, or read and found to be whole. */
  readonly checkedShards = new LruCache<true>(MOST_CHECKED_SHARDS);
  readonly #temporary: string;
  #made = 0;
  #tidied = false;

  constructor(fs: FileSystem, path: string, options: { durability: Durability; lockTimeoutMs: number }) {
    this.fs = fs;
    this.path = path;
    this.durability = options.durability;
    this.#temporary = join(path, '.tmp');
    const locks = join(path, '.locks');
    const makeFolder = (): void => void this.makeFolder(locks);
    this.locks = new LockFolder(fs, locks, { timeoutMs: options.lockTimeoutMs, makeFolder });
  }

  /** Removes, once, the temporary files of processes that died. Never fails: where nothing may be written, nothing has to be. */
  tidy(): void {
    if (this.#tidied) return;
    this.#tidied = true;
    attempt(() => {
      for (const name of this.fs.readdir(this.#temporary)) {
        const [nonce] = name.split('-') as [string];
        if (this.locks.isLeftBehind(nonce)) attempt(() => this.removeTemporary(join(this.#temporary, name)));
      }
    });
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

  /** Makes a folder, and those above it, where they are missing; answers the folders that got a new entry. */
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
      if (codeOf(error) === 'EEXIST') return [];
      throw error;
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

  /** Removes what was made at a temporary path, a file or a folder of files. */
  removeTemporary(path: string): void {
    if (this.fs.stat(path)?.isDirectory()) {
      for (const name of this.fs.readdir(path)) this.remove(join(path, name));
      this.fs.rmdir(path);
    } else this.remove(path);
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
