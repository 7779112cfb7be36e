import { failedPrecondition, invalidArgument, quote, SessionConflictError } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { SessionTree, SnapshotNode } from '../snapshot/session-tree.ts';
import { snapshotGone } from './records/session-records.ts';

/**
 * The snapshot that a `sessionId` lookup means; `undefined` when the session has none.
 *
 * @throws `FAILED_PRECONDITION` when `rejectBranching` is on and the session has more than one leaf, or when foreign data runs in a circle.
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
 * Refuses a save when the session's leaf is not the one of `SaveSnapshotOptions.expectedLeafId`. Call it inside the save's atomic part.
 *
 * @param sessionId The session of the snapshot being saved.
 * @param actual The session's latest leaf, `null` when it has no snapshot.
 * @throws `SessionConflictError` when the session has another leaf, `INVALID_ARGUMENT` when there is no session to compare with.
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
 * Refuses a save when the snapshot of `SaveSnapshotOptions.ifSnapshot` is not in its session. Call it inside the save's atomic part.
 *
 * @param hasSnapshot Whether the session has the snapshot. Asked only when the save requires one.
 * @throws `ABORTED` when it is gone, `INVALID_ARGUMENT` when there is no session to look into.
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
