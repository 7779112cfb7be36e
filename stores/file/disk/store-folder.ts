import { dirname, join, relative } from 'node:path';
import { failedPrecondition, quote } from '../../../src/errors.ts';
import { attempt, closeQuietly, codeOf, CREATE, READ_FOLDER, type FileSystem } from './file-system.ts';
import { FolderCommits } from './folder-commits.ts';
import { reportingFailures, type Call } from './io-error.ts';
import { LockFolder } from './lock-folder.ts';
import type { StoreDirectory } from './usable-directory.ts';

/** Whether a save is on the disk when it is acknowledged. */
export type Durability = 'full' | 'fast';

/** The store's whole folder: locks, temporary files, and below it a folder for each tenant. */
export class StoreFolder {
  readonly fs: FileSystem;
  readonly path: string;
  readonly durability: Durability;
  readonly locks: LockFolder;
  readonly #directory: StoreDirectory;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #commits = new FolderCommits((path) => this.#flushEntries(path));
  readonly #temporary: string;
  #isTidied = false;

  constructor(directory: StoreDirectory, options: { durability: Durability; lockTimeoutMs: number }) {
    const { fs, path } = directory;
    this.#directory = directory;
    this.fs = fs;
    this.path = path;
    this.durability = options.durability;
    this.#temporary = join(path, '.tmp');
    const locks = join(path, '.locks');
    const makeFolder = (): void => void this.makeFolder(locks);
    const flush = (fd: number): Promise<void> => this.flush(fd);
    this.locks = new LockFolder(fs, locks, { timeoutMs: options.lockTimeoutMs, makeFolder, flush });
  }

  /**
   * Call it before a change. The first call removes the temporary files of dead processes.
   *
   * @throws as {@link hasFolder} does.
   */
  prepare(): void {
    this.hasFolder(this.locks.path);
    const hasTemporary = this.hasFolder(this.#temporary);
    if (this.#isTidied) return;
    this.#isTidied = true;
    if (hasTemporary) attempt(() => this.#tidyTemporary());
  }

  /** Runs a call of the store, for which `close` waits. Failures of the system become errors that name only the given path. */
  async run<T>(call: Call, work: () => Promise<T>): Promise<T> {
    const running = reportingFailures(call, this.#directory, work);
    this.#calls.add(running);
    try {
      return await running;
    } finally {
      this.#calls.delete(running);
    }
  }

  /** Waits for the running calls, and removes this process's mark. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#calls);
    // Something else in the folder's place does not belong to the store.
    attempt(() => this.hasFolder(this.locks.path) && this.locks.close());
  }

  /** Writes a new file under a temporary name. Returns it open and not flushed. */
  writeTemporary(bytes: Uint8Array): { readonly path: string; readonly fd: number } {
    const path = join(this.#temporary, this.locks.newOwnName());
    const fd = this.#create(path);
    try {
      this.fs.write(fd, bytes);
      return { path, fd };
    } catch (error) {
      closeQuietly(this.fs, fd);
      this.removeQuietly(path);
      throw error;
    }
  }

  /** A new folder under a temporary name. */
  newTemporaryFolder(): string {
    const path = join(this.#temporary, this.locks.newOwnName());
    this.makeFolder(path);
    return path;
  }

  /**
   * Writes a file and moves it into its place, flushed if the durability requires it. Does not flush the folder's entries.
   *
   * @param before Called right before the move. If it throws, the file is not moved.
   */
  async replace(path: string, bytes: Uint8Array, before = () => {}): Promise<void> {
    const made = this.writeTemporary(bytes);
    try {
      await this.flush(made.fd);
      before();
      this.fs.rename(made.path, path);
    } catch (error) {
      this.removeQuietly(made.path);
      throw error;
    } finally {
      closeQuietly(this.fs, made.fd);
    }
  }

  /**
   * Moves a file into its place.
   *
   * @param options.replaces Whether an existing file is replaced; otherwise the call fails with `EEXIST`.
   */
  move(from: string, to: string, { replaces }: { replaces: boolean }): void {
    if (replaces) return this.fs.rename(from, to);
    // Unlike a rename, a link does not replace a file.
    this.fs.link(from, to);
    this.removeQuietly(from);
  }

  /** Flushes an open file if the durability requires it. */
  async flush(fd: number): Promise<void> {
    if (this.durability === 'full') await this.fs.flush(fd);
  }

  /** Flushes the entries of a folder if the durability requires it. */
  flushFolder(path: string): Promise<void> {
    return this.changeFolder(path, () => {});
  }

  /** Makes a change of a folder's entries, and flushes them if the durability requires it. */
  async changeFolder(path: string, change: () => void): Promise<void> {
    if (this.durability === 'full') await this.#commits.run(path, change);
    else change();
  }

  /**
   * Whether the store has this folder. Refuses anything else in its place: a link may lead anywhere. The check is not
   * a guarantee: a link that is created later is followed until the next check.
   *
   * @throws `FAILED_PRECONDITION` for a symbolic link, and for anything else that is not a folder.
   */
  hasFolder(path: string): boolean {
    const found = this.fs.stat(path);
    if (!found) return false;
    if (found.isDirectory()) return true;
    throw failedPrecondition(
      `${quote(relative(this.path, path))} in the store's directory is not a folder, for example a symbolic link. The store ` +
        'does not follow links inside its directory: replace it by the folder itself.',
    );
  }

  /**
   * Creates a folder and its missing parents. Returns the folders that got a new entry.
   *
   * @throws as {@link hasFolder} does.
   */
  makeFolder(path: string): string[] {
    try {
      return this.#makeLast(path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
    }
    // Some existing folders, such as those of /proc, fail with ENOENT for a new entry; then the second attempt throws it.
    return [...this.makeFolder(dirname(path)), ...this.#makeLast(path)];
  }

  /** The names in a folder; none if it does not exist. */
  namesIn(path: string): string[] {
    try {
      return this.fs.readdir(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** Removes a file, if it exists. */
  remove(path: string): void {
    try {
      this.fs.unlink(path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }

  /** Removes a file whose rest would do no harm. Does not throw. */
  removeQuietly(path: string): void {
    // Twice, because a failure may be temporary.
    for (let tries = 0; tries < 2; tries++) attempt(() => this.remove(path));
  }

  #makeLast(path: string): string[] {
    try {
      this.fs.mkdir(path);
      return [dirname(path)];
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      // The caller chose the store's folder and those above it, so they may be links.
      if (path.length > this.path.length) this.hasFolder(path);
      return [];
    }
  }

  #create(path: string): number {
    try {
      return this.fs.open(path, CREATE);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      this.makeFolder(this.#temporary);
      return this.fs.open(path, CREATE);
    }
  }

  async #flushEntries(path: string): Promise<void> {
    // Windows can't flush a folder, and need not.
    if (process.platform === 'win32') return;
    const fd = this.fs.open(path, READ_FOLDER);
    try {
      await this.fs.flush(fd);
    } finally {
      closeQuietly(this.fs, fd);
    }
  }

  removeFolderQuietly(path: string): void {
    attempt(() => this.#removeAll(path));
  }

  #removeAll(path: string): void {
    if (!this.fs.stat(path)?.isDirectory()) return this.remove(path);
    for (const name of this.fs.readdir(path)) this.#removeAll(join(path, name));
    this.fs.rmdir(path);
  }

  /** Removes the temporary files of dead owners. A file whose name contains no owner is not the store's. */
  #tidyTemporary(): void {
    for (const name of this.fs.readdir(this.#temporary)) {
      const path = join(this.#temporary, name);
      attempt(() => {
        if (this.locks.isAbandoned(name, path)) this.#removeAll(path);
      });
    }
  }
}
