import { GenkitError, type StatusName } from 'genkit';
import { quote } from '../../../src/errors.ts';
import { codeOf } from './file-system.ts';
import { unusableDirectoryError, type StoreDirectory } from './usable-directory.ts';

/** Wraps an error of the caller's own function, which the caller gets unchanged. */
export class CallerFailure {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** The status and reason for codes of failed system calls; other codes are `UNAVAILABLE`. */
const MEANINGS: Readonly<Record<string, { status: StatusName; reason: string }>> = {
  ENOSPC: { status: 'RESOURCE_EXHAUSTED', reason: 'there is no space left on the disk' },
  EDQUOT: { status: 'RESOURCE_EXHAUSTED', reason: 'the disk quota is used up' },
  EMFILE: { status: 'RESOURCE_EXHAUSTED', reason: 'the process has too many files open' },
  ENFILE: { status: 'RESOURCE_EXHAUSTED', reason: 'the system has too many files open' },
  ENOMEM: { status: 'RESOURCE_EXHAUSTED', reason: 'the system is out of memory' },
  EROFS: { status: 'UNAVAILABLE', reason: 'the file system is read-only' },
  EACCES: { status: 'UNAVAILABLE', reason: 'the process may not access the files of the store' },
  EPERM: {
    status: 'UNAVAILABLE',
    reason: 'the process may not access the files of the store',
  },
  EIO: { status: 'UNAVAILABLE', reason: 'the disk failed' },
};

/** A call of the store, for the message of its failure. */
export interface Call {
  /** `Saving a snapshot`. */
  readonly what: string;
  /** The state of the data after a failure. Default: nothing was changed. */
  readonly consequence?: string;
}

/** Runs a call of the store; failures of the system become `GenkitError`s that name no path but the one that the store was given. */
export async function reportingFailures<T>(call: Call, directory: StoreDirectory, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw reported(call, directory, error);
  }
}

/** The consequence of a failed removal. */
export const REMOVED_OR_NOT = 'Each session is as it was before or as it was to be';

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
  const { status, reason } = meaningOf(error);
  const place = `${codeOf(error)} in the directory ${quote(directory.given)}`;
  return new GenkitError({
    status,
    message: `${what} failed: ${reason} (${place}). ${consequence}; try again when that is mended.`,
  });
}

/** For a save that failed after its commit point. */
export function outcomeUnknown(what: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const { status, reason } = meaningOf(error);
  return new GenkitError({
    status,
    message: `${what} failed at its very end: ${reason}. It is not known whether it was saved: read it before saving again.`,
  });
}

/** Whether a system call failed with this. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && codeOf(error) !== undefined && 'syscall' in error;
}

/** Whether an error is about one file alone: a newer version wrote it, a link is in its place, or the process may not open it. */
export function isRefused(error: unknown): boolean {
  if (error instanceof GenkitError) return error.status === 'FAILED_PRECONDITION';
  return isSystemError(error) && ['EACCES', 'EPERM'].includes(codeOf(error)!);
}

/** `undefined`: it was refused. What is about other files goes on. */
export async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (!isRefused(error)) throw error;
    return undefined;
  }
}

function meaningOf(error: unknown): { status: StatusName; reason: string } {
  return (
    MEANINGS[codeOf(error) ?? ''] ?? { status: 'UNAVAILABLE', reason: 'the file system did not do what it was asked' }
  );
}
