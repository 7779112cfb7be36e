import { invalidArgument, quote } from '../errors.ts';
import { JsonValueError } from '../json/value.ts';

/**
 * Runs `copy`, which makes the store's own copy of a part of a snapshot.
 *
 * @param pointer Where in the snapshot the part is, as a JSON Pointer: `''` or `/state`.
 * @throws `INVALID_ARGUMENT` with the path when the part holds what JSON cannot hold.
 */
export function guarded<T>(snapshotId: string, pointer: string, copy: () => T): T {
  try {
    return copy();
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    throw invalidArgument(
      `Snapshot ${quote(snapshotId)} can't be saved because of its member ${quote(pointer + error.path)}: ${error.reason}.`,
    );
  }
}
