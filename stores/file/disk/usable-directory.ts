import { dirname, resolve } from 'node:path';
import { failedPrecondition, invalidArgument, quote } from '../../../src/errors.ts';
import type { FileSystem } from './file-system.ts';

/**
 * The absolute path of a directory that is there, or can be made.
 *
 * @throws `INVALID_ARGUMENT` for what is no path, `FAILED_PRECONDITION` when something else is in its place.
 */
export function usableDirectory(directory: unknown, fs: FileSystem): string {
  if (typeof directory !== 'string' || directory.trim() === '' || directory.includes('\0')) {
    throw invalidArgument('FileSessionStore needs the path of a directory as its first argument.');
  }
  const path = resolve(directory);
  for (let at = path; ; at = dirname(at)) {
    const found = statOrThrow(fs, at);
    if (found?.isDirectory()) return path;
    if (found)
      throw failedPrecondition(
        `FileSessionStore can't use ${quote(directory)}: ${at === path ? 'it' : 'a part of its path'} is no directory.`,
      );
    if (at === dirname(at)) return path;
  }
}

function statOrThrow(fs: FileSystem, path: string): ReturnType<FileSystem['statTarget']> {
  try {
    return fs.statTarget(path);
  } catch {
    // A file is a part of the path: it is found on the way up.
    return undefined;
  }
}
