import { failedPrecondition, quote } from '../../errors.ts';
import type { SessionSnapshot } from '../../snapshot/snapshot.ts';

/**
 * The snapshot that a session continues from: the leaf, or its nearest completed ancestor. `undefined` when no turn of the session ever completed.
 *
 * @param read Reads an ancestor.
 * @throws `FAILED_PRECONDITION` for a cycle of parents, which only foreign data can contain, and the errors of `read`.
 */
export async function lastCompleted<State>(
  leaf: SessionSnapshot<State> | undefined,
  sessionId: string,
  read: (snapshotId: string) => Promise<SessionSnapshot<State> | undefined>,
): Promise<SessionSnapshot<State> | undefined> {
  const seen = new Set<string>();
  let snapshot = leaf;
  while (snapshot && snapshot.status !== 'completed') {
    const { parentId }: SessionSnapshot<State> = snapshot;
    if (parentId === undefined) return undefined;
    if (seen.has(parentId)) {
      throw failedPrecondition(
        `The snapshots of session ${quote(sessionId)} form a cycle of parents (at ${quote(parentId)}). ` +
          `Resume it by a snapshotId.`,
      );
    }
    seen.add(parentId);
    snapshot = await read(parentId);
  }
  return snapshot;
}
