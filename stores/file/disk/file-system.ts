import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  watch,
  writeSync,
  type Stats,
} from 'node:fs';
import { promisify } from 'node:util';

/** A running watch on a folder. */
export interface Watch {
  close(): void;
}

/**
 * The system calls of the file store; tests replace them to record them or to let them fail. Calls on metadata are synchronous, because a
 * round trip to the thread pool costs more than the call. Flushes and large reads are asynchronous, because they wait for the disk.
 */
export interface FileSystem {
  open(path: string, flags: number): number;
  close(fd: number): void;
  statOpen(fd: number): Stats;
  /** Returns the number of bytes read: at the file's end fewer than `into` takes. */
  read(fd: number, into: Uint8Array, position: number): number;
  readLater(fd: number, into: Uint8Array, position: number): Promise<number>;
  /** Writes all of `bytes`, at the position given by the flags of `open`. */
  write(fd: number, bytes: Uint8Array): void;
  truncate(fd: number, size: number): void;
  /** Returns when the file's content, or the folder's entries, are on the disk. */
  flush(fd: number): Promise<void>;
  /** `undefined` if nothing exists at the path. Does not follow a symbolic link. */
  stat(path: string): Stats | undefined;
  /** As `stat`, but follows symbolic links. */
  statTarget(path: string): Stats | undefined;
  rename(from: string, to: string): void;
  link(from: string, to: string): void;
  unlink(path: string): void;
  mkdir(path: string): void;
  rmdir(path: string): void;
  readdir(path: string): string[];
  /** Calls `onEvent` with the name of an entry of the folder that changed, or with `undefined`; `onEnd` when it can't watch any more. */
  watch(path: string, onEvent: (name: string | undefined) => void, onEnd: () => void): Watch;
}

/** Refuses a symbolic link in place of a file. Windows has no such flag; there, links need a privilege. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;

/** Does not wait for a writer if a FIFO is in place of the file. */
export const READ = constants.O_RDONLY | NO_FOLLOW | (constants.O_NONBLOCK ?? 0);
export const READ_FOLDER = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0);
export const READ_APPEND = constants.O_RDWR | constants.O_APPEND | NO_FOLLOW;
export const CREATE = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | NO_FOLLOW;

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

const readAsync = promisify(read);
const fsyncAsync = promisify(fsync);

export const nodeFileSystem: FileSystem = {
  open(path, flags) {
    const fd = openSync(path, flags, FILE_MODE);
    // The process's umask may have removed the owner's rights.
    if (flags === CREATE) fchmodSync(fd, FILE_MODE);
    return fd;
  },
  close: closeSync,
  statOpen: (fd) => fstatSync(fd),
  read: (fd, into, position) => readSync(fd, into, 0, into.length, position),
  readLater: async (fd, into, position) => (await readAsync(fd, into, 0, into.length, position)).bytesRead,
  write(fd, bytes) {
    for (let written = 0; written < bytes.length;) written += writeSync(fd, bytes, written);
  },
  truncate: ftruncateSync,
  flush: fsyncAsync,
  stat: (path) => lstatSync(path, { throwIfNoEntry: false }),
  statTarget: (path) => statSync(path, { throwIfNoEntry: false }),
  rename: renameSync,
  link: linkSync,
  unlink: unlinkSync,
  mkdir(path) {
    mkdirSync(path, FOLDER_MODE);
    chmodSync(path, FOLDER_MODE);
  },
  rmdir: rmdirSync,
  readdir: readdirSync,
  watch(path, onEvent, onEnd) {
    const watcher = watch(path, { persistent: false }, (_type, name) => onEvent(name ?? undefined));
    watcher.on('error', onEnd);
    return watcher;
  },
};

/** Changes whenever a file is replaced or written to. The inode alone is not enough: a later file may get the same one. */
export function stampOf({ ino, size, mtimeMs, ctimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
}

/** The `code` of a failed system call, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** Runs work that may fail, such as removing old files. */
export function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // Leftover files are harmless.
  }
}

/** Closes a file that was flushed or only read. A failure is ignored: the descriptor is closed even then. */
export function closeQuietly(fs: FileSystem, fd: number): void {
  attempt(() => fs.close(fd));
}
