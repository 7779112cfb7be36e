import { dirname, resolve } from 'node:path';
import { GenkitError } from 'genkit';
import { addressTo, invalidArgument, quote } from '../../../src/errors.ts';
import type { FileSystem } from './file-system.ts';

/** The directory of a store. */
export interface StoreDirectory {
  /** The developer's argument, for messages. */
  readonly given: string;
  /** Absolute. */
  readonly path: string;
  readonly fs: FileSystem;
  /** The class of the store, for messages. */
  readonly owner: string;
}

/**
 * A directory that exists or can be created.
 *
 * @throws `INVALID_ARGUMENT` if `given` is not a path, `FAILED_PRECONDITION` if a file is in its place.
 */
export function usableDirectory(given: unknown, fs: FileSystem, owner: string): StoreDirectory {
  if (typeof given !== 'string' || given.trim() === '' || given.includes('\0')) {
    throw invalidArgument(`${owner} needs the path of a directory as its first argument.`);
  }
  const path = absolute(given, owner);
  for (let at = path; ; at = dirname(at)) {
    const found = statIfReachable(fs, at);
    if (found && !found.isDirectory()) {
      const place = at === path ? 'it' : 'a part of its path';
      throw directoryError(`${owner} can't use ${quote(given)}: ${place} is not a directory.`);
    }
    if (found || at === dirname(at)) return { given, path, fs, owner };
  }
}

function absolute(given: string, owner: string): string {
  try {
    return resolve(given);
  } catch {
    throw directoryError(
      `${owner} can't use ${quote(given)}: the working directory of the process was removed. Pass an absolute path.`,
    );
  }
}

/** An error that names a path of the server: clients get neither its message nor its status. */
export function directoryError(message: string): GenkitError {
  return addressTo('operator', new GenkitError({ status: 'FAILED_PRECONDITION', message }));
}

/** `undefined` if nothing exists at the path, or the process may not look. */
export function statIfReachable(fs: FileSystem, path: string): ReturnType<FileSystem['statTarget']> {
  try {
    return fs.statTarget(path);
  } catch {
    return undefined;
  }
}
