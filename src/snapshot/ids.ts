import { invalidArgument, quote } from '../errors.ts';

/** The longest id, in UTF-16 code units. */
export const MAX_ID_LENGTH = 1024;

/** The kind of an id, as error messages name it. */
export type IdKind =
  | 'snapshotId'
  | 'sessionId'
  | 'parentId'
  | 'expectedLeafId'
  | 'tenant prefix'
  | 'appName'
  | 'userId'
  | 'ownerId'
  | 'agent'
  | 'title'
  | 'kind'
  | 'key'
  | 'ifSnapshot'
  | 'memory id'
  | 'job id'
  | 'source id'
  | 'worker name';

/**
 * Refuses values that are not strings, blank strings, and strings longer than {@link MAX_ID_LENGTH}. Every other string is an id: stores
 * encode it before they use it in a path.
 */
export function assertId(id: unknown, kind: IdKind): asserts id is string {
  const one = () => `${/^[aeio]/.test(kind) ? 'An' : 'A'} ${kind}`;
  if (typeof id !== 'string')
    throw invalidArgument(`${one()} must be a string, not ${id === null ? 'null' : typeof id}.`);
  if (id.trim() === '') throw invalidArgument(`${one()} must not be blank.`);
  if (id.length > MAX_ID_LENGTH) {
    throw invalidArgument(
      `The ${kind} ${quote(id)} has ${id.length} characters; at most ${MAX_ID_LENGTH} are allowed.`,
    );
  }
}

/**
 * Returns a new snapshot id, a random UUID. For callers that must know the id of a turn's snapshot before it is saved, for example to name
 * a branch or a file after it.
 *
 * @example
 * const snapshotId = reserveSnapshotId();
 * await store.saveSnapshot(snapshotId, () => next);
 */
export function reserveSnapshotId(): string {
  return globalThis.crypto.randomUUID();
}
