import type { SessionSnapshot, SessionSnapshotInput } from 'genkit/beta';
import { failedPrecondition, invalidArgument, quote } from '../errors.ts';
import { isPlain } from '../json/fault.ts';
import { assertId } from './ids.ts';
import { canBecome, SNAPSHOT_STATUSES, type SnapshotStatus } from './status.ts';

export type { SessionSnapshot, SessionSnapshotInput, SnapshotStatus };

/** A snapshot without its state. */
export type SnapshotMetadata = Omit<SessionSnapshot, 'state'>;

/** Returns the session of a snapshot: its `sessionId`, else the `sessionId` of its state; `undefined` if it has neither. */
export function sessionOf(snapshot: {
  readonly sessionId?: string;
  readonly state?: { readonly sessionId?: string };
}): string | undefined {
  return snapshot.sessionId ?? snapshot.state?.sessionId;
}

/** Returns the snapshot without its state. */
export function metadataOf(snapshot: SessionSnapshot): SnapshotMetadata {
  const { state: _state, ...metadata } = snapshot;
  return metadata;
}

/** A stored snapshot for {@link revise}: its metadata, and the state's `sessionId` if only that names the session. */
export type StoredSnapshot = SnapshotMetadata & { readonly state?: { readonly sessionId?: string } };

/** Returns a stored snapshot whose session may be named only by its state. */
export function storedOf(meta: SnapshotMetadata, sessionId: string | null | undefined): StoredSnapshot {
  return typeof sessionId !== 'string' || meta.sessionId !== undefined ? meta : { ...meta, state: { sessionId } };
}

/**
 * Returns the snapshot to store for a mutator's result `input`: a new snapshot, or a rewrite of `current`. Applies the rules that need no
 * other snapshot: ids, allowed changes of the status, and fields that never change (`parentId`, `createdAt`, the session). A pure function;
 * the returned snapshot shares its state with `input`.
 *
 * @throws `INVALID_ARGUMENT` if the result is not a snapshot, `FAILED_PRECONDITION` if it would change a field that never changes.
 */
export function revise<S>(
  snapshotId: string,
  current: StoredSnapshot | undefined,
  input: SessionSnapshotInput<S>,
  now: () => string,
): SessionSnapshot<S> {
  assertShape(snapshotId, input);
  const next: SessionSnapshot<S> = { ...input, snapshotId };
  if (!current) {
    if (next.createdAt === undefined) next.createdAt = now();
    next.updatedAt ??= next.createdAt;
    return next;
  }
  assertTransition(snapshotId, current, next);
  keep(next, 'createdAt', current.createdAt);
  next.updatedAt ??= next.createdAt;
  keep(next, 'parentId', current.parentId);
  assertSameSession(snapshotId, sessionOf(current), sessionOf(next));
  // A rewrite without a session stays in its session.
  const session = current.sessionId ?? (sessionOf(next) === undefined ? sessionOf(current) : undefined);
  if (session !== undefined) next.sessionId = session;
  return next;
}

/**
 * Refuses to change the state of a completed snapshot that has children, because their states are stored as diffs from it. A store calls
 * this for each rewrite.
 *
 * @param isSame Compares the states. Called only for a completed snapshot with children.
 * @throws `FAILED_PRECONDITION` if the rewrite would change the state.
 */
export function assertStateMayChange(
  current: SnapshotMetadata,
  hasChildren: () => boolean,
  isSame: () => boolean,
): void {
  if (current.status !== 'completed' || !hasChildren() || isSame()) return;
  throw failedPrecondition(
    `Snapshot ${quote(current.snapshotId)} is completed and has children, so its state can't be changed. ` +
      `Save the new state as a new snapshot; use the same parentId to create a branch.`,
  );
}

function assertShape(snapshotId: string, input: unknown): asserts input is SessionSnapshotInput {
  const where = () => `The mutator for snapshot ${quote(snapshotId)}`;
  if (input instanceof Promise) {
    input.catch(() => {});
    throw invalidArgument(`${where()} must return a snapshot, not a promise. Await before you call saveSnapshot.`);
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input) || !isPlain(input)) {
    throw invalidArgument(`${where()} must return a snapshot, a plain object, or null to skip the write.`);
  }
  const { sessionId, parentId, createdAt, status, state } = input as Record<string, unknown>;
  if (sessionId !== undefined) assertId(sessionId, 'sessionId');
  if (parentId !== undefined) assertId(parentId, 'parentId');
  if (createdAt !== undefined && typeof createdAt !== 'string') {
    throw invalidArgument(`${where()} returned a createdAt that is not a string. Use new Date().toISOString().`);
  }
  if (status !== undefined && !(SNAPSHOT_STATUSES as readonly unknown[]).includes(status)) {
    throw invalidArgument(`${where()} returned an unknown status. Use one of ${SNAPSHOT_STATUSES.join(', ')}.`);
  }
  if (state === undefined) return;
  if (typeof state !== 'object' || state === null || Array.isArray(state)) {
    throw invalidArgument(`${where()} returned a state that is not an object.`);
  }
  const stateSessionId = (state as Record<string, unknown>)['sessionId'];
  if (sessionId === undefined && stateSessionId !== undefined) assertId(stateSessionId, 'sessionId');
}

function assertTransition(snapshotId: string, current: SnapshotMetadata, next: SessionSnapshot): void {
  if (!canBecome(current.status, next.status)) {
    throw failedPrecondition(
      `Snapshot ${quote(snapshotId)} is ${current.status ?? 'without a status'} and can't become ${next.status ?? 'without a status'}. ` +
        `A terminal snapshot never changes its status. Save a new snapshot with this one as its parentId.`,
    );
  }
}

function keep<K extends 'createdAt' | 'parentId'>(
  next: SessionSnapshot,
  field: K,
  value: SessionSnapshot[K] | undefined,
): void {
  if (value === undefined) delete next[field];
  else next[field] = value;
}

/**
 * Refuses a rewrite that would move a snapshot to another session. {@link revise} calls it; a store that knows the session of `current`
 * from other data calls it too.
 *
 * @throws `FAILED_PRECONDITION`
 */
export function assertSameSession(snapshotId: string, current: string | undefined, next: string | undefined): void {
  if (current !== next && next !== undefined) {
    throw failedPrecondition(
      `Snapshot ${quote(snapshotId)} belongs to ${current === undefined ? 'no session' : `session ${quote(current)}`} and can't move to ` +
        `session ${quote(next)}. Save a new snapshot in that session instead.`,
    );
  }
}
