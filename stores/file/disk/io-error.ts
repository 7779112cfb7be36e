import { GenkitError, type StatusName } from 'genkit';
import { quote } from '../../../src/errors.ts';
import { codeOf } from './file-system.ts';
import { directoryError, statIfReachable, type StoreDirectory } from './usable-directory.ts';

/** Wraps an error of the caller's own function, which the caller gets unchanged. */
export class CallerFailure {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

interface Meaning {
  readonly reason: string;
  /** Default: `UNAVAILABLE`. */
  readonly status?: StatusName;
  /** Whether it lasts until the store's directory or its path is changed. */
  readonly isLasting?: boolean;
}

const NO_ACCESS: Meaning = { reason: 'the process has no access to a file or a folder', isLasting: true };

/** The meanings of the codes of failed system calls. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: { reason: 'the disk is full', status: 'RESOURCE_EXHAUSTED' },
  EDQUOT: { reason: 'the disk quota is used up', status: 'RESOURCE_EXHAUSTED' },
  EMFILE: { reason: 'the process has too many files open', status: 'RESOURCE_EXHAUSTED' },
  ENFILE: { reason: 'the system has too many files open', status: 'RESOURCE_EXHAUSTED' },
  ENOMEM: { reason: 'the system is out of memory', status: 'RESOURCE_EXHAUSTED' },
  EIO: { reason: 'the disk failed' },
  EACCES: NO_ACCESS,
  EPERM: NO_ACCESS,
  EROFS: { reason: 'the file system is read-only', isLasting: true },
  ENOENT: { reason: 'a file or a folder does not exist', isLasting: true },
  ENOTDIR: { reason: 'a part of the path is not a directory', isLasting: true },
  ELOOP: { reason: 'the path has a loop of symbolic links', isLasting: true },
  ENAMETOOLONG: { reason: 'the path is too long', isLasting: true },
};

function meaningOf(error: unknown): Meaning {
  return MEANINGS[codeOf(error) ?? ''] ?? { reason: 'a call of the file system failed' };
}

/** A call of the store, for the message of its failure. */
export interface Call {
  /** `Saving a snapshot`. */
  readonly what: string;
  /** The state of the data after a failure. Default: nothing was changed. */
  readonly consequence?: string;
}

/** Runs a call of the store. Failures of the system become `GenkitError`s that name only the path that the store was given. */
export async function reportingFailures<T>(call: Call, directory: StoreDirectory, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw reported(call, directory, error);
  }
}

/** The consequence of a failed removal. */
export const REMOVED_OR_NOT = 'Each session was either changed completely or not at all';

/** The error that a caller gets for `error`. */
function reported(
  { what, consequence = 'Nothing was changed' }: Call,
  directory: StoreDirectory,
  error: unknown,
): unknown {
  if (error instanceof CallerFailure) return error.cause;
  if (error instanceof GenkitError || !isSystemError(error)) return error;
  const missing = unusableDirectoryError(directory, error);
  if (missing) return missing;
  const { status = 'UNAVAILABLE', reason } = meaningOf(error);
  const place = `${codeOf(error)} in the directory ${quote(directory.given)}`;
  return new GenkitError({
    status,
    message: `${what} failed: ${reason} (${place}). ${consequence}. Fix the cause and try again.`,
  });
}

/** Codes of a failed hard link on file systems without hard links. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'UNKNOWN']);

/** The error of a call that failed because the store's directory can't be created or opened; `undefined` for other failures. */
function unusableDirectoryError({ given, path, fs, owner }: StoreDirectory, error: unknown): GenkitError | undefined {
  const code = codeOf(error) ?? '';
  if (NO_LINKS.has(code) && (error as NodeJS.ErrnoException).syscall === 'link') {
    return directoryError(
      `${owner} can't use ${quote(given)}: its file system has no hard links (${code}). Choose a directory on another file system.`,
    );
  }
  const { reason, isLasting } = meaningOf(error);
  // Any other call fails with ENOENT if the directory was just removed; the next save creates it again.
  const isRemoved = code === 'ENOENT' && (error as NodeJS.ErrnoException).syscall !== 'mkdir';
  if (!isLasting || isRemoved || statIfReachable(fs, path)?.isDirectory()) return undefined;
  return directoryError(
    `${owner} can't make or open its directory ${quote(given)}: ${reason} (${code}). ` +
      'Make the directory, with write access for this process, or give the store another one.',
  );
}

/** For a save that failed after its commit point. */
export function outcomeUnknown(what: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const { status = 'UNAVAILABLE', reason } = meaningOf(error);
  return new GenkitError({
    status,
    message: `${what} failed in its last step: ${reason}. It may have been saved: read it before saving again.`,
  });
}

/** Whether the error is of a system call. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && codeOf(error) !== undefined && 'syscall' in error;
}

/** Whether an error concerns only one file: a newer version wrote it, a link is in its place, or the process may not open it. */
export function isRefused(error: unknown): boolean {
  if (error instanceof GenkitError) return error.status === 'FAILED_PRECONDITION';
  return isSystemError(error) && ['EACCES', 'EPERM'].includes(codeOf(error)!);
}

/** Returns `undefined` for an error that concerns only one file, so that work on other files can continue. */
export async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!isRefused(error)) throw error;
    return undefined;
  }
}
