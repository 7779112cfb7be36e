import { failedPrecondition, invalidArgument, quote, SessionConflictError } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { SessionTree, SnapshotNode } from '../snapshot/session-tree.ts';
import { snapshotGone } from './records/session-records.ts';

/**
 * Returns the snapshot for a lookup by `sessionId`; `undefined` if the session has no snapshot.
 *
 * @throws `FAILED_PRECONDITION` if `rejectBranching` is on and the session has more than one leaf, or if foreign data has a cycle.
 */
export function chooseLeaf<N extends SnapshotNode>(
  tree: SessionTree<N>,
  sessionId: string,
  rejectBranching: boolean,
): N | undefined {
  if (tree.size === 0) return undefined;
  if (rejectBranching) assertNotBranched(sessionId, tree.leafCount);
  const leaf = tree.latestLeaf();
  if (!leaf) {
    throw failedPrecondition(
      `The snapshots of session ${quote(sessionId)} name each other as parents in a circle, so it has no leaf. Look it up by snapshotId.`,
    );
  }
  return leaf;
}

/** @throws `FAILED_PRECONDITION` when the session has more than one leaf. */
export function assertNotBranched(sessionId: string, leafCount: number): void {
  if (leafCount <= 1) return;
  throw failedPrecondition(
    `Session ${quote(sessionId)} has ${leafCount} leaves, so it has no single latest snapshot. Look it up by snapshotId.`,
  );
}

/**
 * Refuses a save if the session's latest leaf is not `SaveSnapshotOptions.expectedLeafId`. Call it in the atomic part of the save.
 *
 * @param sessionId The session of the snapshot being saved.
 * @param actual The session's latest leaf; `null` if the session has no snapshot.
 * @throws `SessionConflictError` if the session has another leaf, `INVALID_ARGUMENT` if the snapshot has no session.
 */
export function assertExpectedLeaf(
  expected: string | null | undefined,
  sessionId: string | undefined,
  actual: string | null,
): void {
  if (expected === undefined) return;
  if (expected !== null) assertId(expected, 'expectedLeafId');
  if (sessionId === undefined) throw invalidArgument('expectedLeafId needs a snapshot that has a sessionId.');
  if (expected !== actual)
    throw new SessionConflictError({ sessionId, expectedLeafId: expected, actualLeafId: actual });
}

/**
 * Refuses a save if the session does not have the snapshot `SaveSnapshotOptions.ifSnapshot`. Call it in the atomic part of the save.
 *
 * @param hasSnapshot Whether the session has the snapshot. Called only if `ifSnapshot` is set.
 * @throws `ABORTED` if the snapshot was removed, `INVALID_ARGUMENT` if the saved snapshot has no session.
 */
export function assertRequiredSnapshot(
  ifSnapshot: string | undefined,
  sessionId: string | undefined,
  hasSnapshot: (snapshotId: string) => boolean,
): void {
  if (ifSnapshot === undefined) return;
  if (sessionId === undefined) throw invalidArgument('ifSnapshot needs a snapshot that has a sessionId.');
  if (!hasSnapshot(ifSnapshot)) throw snapshotGone({ sessionId, ifSnapshot });
}
