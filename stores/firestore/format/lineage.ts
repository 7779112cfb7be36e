import { failedPrecondition, quote } from '../../../src/errors.ts';
import type { SnapshotStatus } from '../../../src/store/contract.ts';

/** A leaf of a session, in its pointer. */
export interface Leaf {
  readonly id: string;
  /** Its place in the session's order of first saves. */
  readonly seq: number;
  readonly status?: SnapshotStatus;
}

/** The part of the session's tree that the pointer keeps. It is enough for the next save, however long the session is. */
export interface Lineage {
  /** The place of the next new snapshot. */
  readonly nextSeq: number;
  readonly count: number;
  /** In the order of their first saves. */
  readonly leaves: readonly Leaf[];
  /** Ids of parents that do not exist. */
  readonly missing: readonly string[];
}

export const EMPTY_LINEAGE: Lineage = { nextSeq: 0, count: 0, leaves: [], missing: [] };

/** The lineage once a new snapshot is saved. */
export function withNewSnapshot(before: Lineage, leaf: Leaf, parentId: string | undefined, isInTree: boolean): Lineage {
  const { nextSeq, count, missing } = before;
  const wasMissing = missing.includes(leaf.id);
  const isNewlyMissing = parentId !== undefined && !isInTree && !missing.includes(parentId);
  const others = before.leaves.filter(({ id }) => id !== parentId);
  const rest = wasMissing ? missing.filter((id) => id !== leaf.id) : missing;
  return {
    nextSeq: nextSeq + 1,
    count: count + 1,
    // A parent that is saved after its children is not a leaf.
    leaves: wasMissing ? others : [...others, leaf],
    missing: isNewlyMissing ? [...rest, parentId] : rest,
  };
}

/** The lineage once a snapshot has another status. */
export function withStatus(before: Lineage, changed: Leaf): Lineage {
  return { ...before, leaves: before.leaves.map((leaf) => (leaf.id === changed.id ? changed : leaf)) };
}

/** Maximum size of a packed lineage: about 15,000 branches whose ids are UUIDs. */
const MOST_BYTES = 400 * 1024;

/** @throws `FAILED_PRECONDITION` when a session has more branches than its pointer can hold. */
export function assertFitsPointer(sessionId: string, packed: Buffer): void {
  if (packed.length <= MOST_BYTES) return;
  throw failedPrecondition(
    `Session ${quote(sessionId)} has the maximum number of branches. Begin another session, or prune this one.`,
  );
}
