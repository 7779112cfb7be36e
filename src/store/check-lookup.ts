import { invalidArgument } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { SnapshotLookup } from './contract.ts';

/** A checked {@link SnapshotLookup}. */
export interface Lookup {
  readonly by: 'snapshot' | 'session';
  readonly id: string;
  /** Whether the state may be frozen; see {@link SnapshotLookup}. */
  readonly frozen?: boolean | undefined;
}

/** @throws `INVALID_ARGUMENT` unless the lookup has exactly one of `snapshotId` and `sessionId`, and it is an id. */
export function checkLookup(lookup: SnapshotLookup): Lookup {
  const { snapshotId, sessionId, frozen } = lookup ?? {};
  if ((snapshotId === undefined) === (sessionId === undefined)) {
    const got = snapshotId === undefined ? 'neither' : 'both';
    throw invalidArgument(`A lookup needs exactly one of snapshotId and sessionId, but has ${got}.`);
  }
  if (snapshotId !== undefined) {
    assertId(snapshotId, 'snapshotId');
    return { by: 'snapshot', id: snapshotId, frozen };
  }
  assertId(sessionId, 'sessionId');
  return { by: 'session', id: sessionId, frozen };
}

/**
 * Returns the `sessionId` of a call on one session.
 *
 * @throws `INVALID_ARGUMENT` unless it is an id.
 */
export function checkSession(options: { readonly sessionId: string } | undefined): string {
  const sessionId = options?.sessionId;
  assertId(sessionId, 'sessionId');
  return sessionId;
}

/**
 * Returns the `sessionIds` of a call on many sessions.
 *
 * @throws `INVALID_ARGUMENT` unless it is a list of ids.
 */
export function checkSessions(options: { readonly sessionIds: readonly string[] } | undefined): readonly string[] {
  const sessionIds: unknown = options?.sessionIds;
  if (!Array.isArray(sessionIds)) throw invalidArgument('sessionIds must be a list of session ids.');
  for (const sessionId of sessionIds as readonly unknown[]) assertId(sessionId, 'sessionId');
  return sessionIds as readonly string[];
}

/** @throws `INVALID_ARGUMENT` unless `value` is a function. `what` names the argument. */
export function assertFunction(value: unknown, what: 'mutator' | 'callback'): void {
  if (typeof value !== 'function') throw invalidArgument(`The ${what} must be a function, not ${typeof value}.`);
}
