import { dirname, resolve } from 'node:path';
import { GenkitError } from 'genkit';
import { addressTo, invalidArgument, quote } from '../../../src/errors.ts';
import { codeOf, type FileSystem } from './file-system.ts';

/** Why a directory can't be made or opened, by the system's code. These last until the developer changes the directory or its path. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'the process has no access to it or to a folder above it',
  EPERM: 'the process has no access to it or to a folder above it',
  ENOENT: 'its path leads to a place where no folder can be made',
  ENOTDIR: 'a part of its path is no directory',
  EROFS: 'the file system is read-only',
  ELOOP: 'its path has a loop of symbolic links',
  ENAMETOOLONG: 'its path is too long',
};

/** The directory of a store. */
export interface StoreDirectory {
  /** As the developer gave it, for messages. */
  readonly given: string;
  /** Absolute. */
  readonly path: string;
  readonly fs: FileSystem;
  /** The class of the store, for messages. Default: `FileSessionStore`. */
  readonly owner?: string;
}

/**
 * The absolute path of a directory that is there, or can be made.
 *
 * @throws `INVALID_ARGUMENT` for what is no path, `FAILED_PRECONDITION` when something else is in its place.
 */
export function usableDirectory(directory: unknown, fs: FileSystem, owner = 'FileSessionStore'): string {
  if (typeof directory !== 'string' || directory.trim() === '' || directory.includes('\0')) {
    throw invalidArgument(`${owner} needs the path of a directory as its first argument.`);
  }
  let path: string;
  try {
    path = resolve(directory);
  } catch {
    throw directoryError(
      `${owner} can't use ${quote(directory)}: the working directory of the process was removed. Give an absolute path.`,
    );
  }
  for (let at = path; ; at = dirname(at)) {
    const found = statIfReachable(fs, at);
    if (found?.isDirectory()) return path;
    if (found) {
      const place = at === path ? 'it' : 'a part of its path';
      throw directoryError(`${owner} can't use ${quote(directory)}: ${place} is no directory.`);
    }
    if (at === dirname(at)) return path;
  }
}

/** What a file system without hard links answers when one is to be made. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'UNKNOWN']);

/** The error of a call that failed because the store's directory is of no use, or can't be made; `undefined` when the call failed otherwise. */
export function unusableDirectoryError(
  { given, path, fs, owner = 'FileSessionStore' }: StoreDirectory,
  error: unknown,
): GenkitError | undefined {
  const code = codeOf(error) ?? '';
  if (NO_LINKS.has(code) && (error as NodeJS.ErrnoException).syscall === 'link') {
    return directoryError(
      `${owner} can't use ${quote(given)}: its file system has no hard links (${code}). Give the store a directory on one that has.`,
    );
  }
  const reason = REASONS[code];
  // Any other call says ENOENT when the directory was removed a moment ago; the next save makes it anew.
  const isLasting = code !== 'ENOENT' || (error as NodeJS.ErrnoException).syscall === 'mkdir';
  if (!reason || !isLasting || statIfReachable(fs, path)?.isDirectory()) return undefined;
  return directoryError(
    `${owner} can't make or open its directory ${quote(given)}: ${reason} (${code}). ` +
      'Make the directory, with write access for this process, or give the store another one.',
  );
}

/** Names a path of the server, so a client gets neither the message nor the status. */
function directoryError(message: string): GenkitError {
  return addressTo('operator', new GenkitError({ status: 'FAILED_PRECONDITION', message }));
}

/** `undefined`: nothing is there, or the process can't look. */
function statIfReachable(fs: FileSystem, path: string): ReturnType<FileSystem['statTarget']> {
  try {
    return fs.statTarget(path);
  } catch {
    return undefined;
  }
}
