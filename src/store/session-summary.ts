import type { SessionTree, SnapshotNode } from '../snapshot/lineage.ts';
import type { SessionSummary } from './contract.ts';

/** The line that `listSessions` answers about a session; `undefined` when it has no snapshot or, in foreign data, no leaf. */
export function summarize(sessionId: string, tree: SessionTree<SnapshotNode>): SessionSummary | undefined {
  const [first] = tree.nodes();
  const leaf = tree.latestLeaf();
  const last = tree.lastWritten();
  if (!first || !leaf || !last) return undefined;
  return {
    sessionId,
    leafId: leaf.snapshotId,
    leafCount: tree.leafCount,
    snapshotCount: tree.size,
    createdAt: first.createdAt,
    updatedAt: last.updatedAt ?? last.createdAt,
    ...(leaf.status !== undefined && { status: leaf.status }),
  };
}
