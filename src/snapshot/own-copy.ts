import { invalidArgument, quote } from '../errors.ts';
import { shareJson } from '../json/share.ts';
import { copyJson, JsonValueError, type Json } from '../json/value.ts';
import { metadataOf, type SessionSnapshot, type SnapshotMetadata } from './snapshot.ts';

/**
 * Makes the store's own copy of everything except the state.
 *
 * @throws `INVALID_ARGUMENT` with the path when it holds what JSON cannot hold.
 */
export function copyMetadata<S>(snapshot: SessionSnapshot<S>): SnapshotMetadata {
  return guarded(snapshot.snapshotId, '', () => copyJson(metadataOf(snapshot as SessionSnapshot)));
}

/**
 * Makes the store's own copy of the state; `undefined` if the snapshot has no state. Shares equal parts with `known`.
 *
 * @throws `INVALID_ARGUMENT` with the path when it holds what JSON cannot hold.
 */
export function copyState<S>({ snapshotId, state }: SessionSnapshot<S>, known: Json | undefined): Json | undefined {
  if (state === undefined) return undefined;
  return guarded(snapshotId, '/state', () => shareJson<unknown>(known, state) as Json);
}

/**
 * Runs `copy`, which makes the store's own copy of a part of a snapshot.
 *
 * @param pointer The JSON Pointer of the part in the snapshot: `''` or `/state`.
 * @throws `INVALID_ARGUMENT` with the path of a value that JSON can't represent.
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
