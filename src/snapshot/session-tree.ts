import { failedPrecondition, quote } from '../errors.ts';
import type { SnapshotMetadata, SnapshotStatus } from './snapshot.ts';

/** The members of a snapshot that the tree uses. */
export interface SnapshotNode {
  readonly snapshotId: string;
  readonly parentId?: string;
  readonly createdAt: string;
  readonly updatedAt?: string;
  readonly status?: SnapshotStatus;
}

/**
 * The snapshots of one session in the order in which they were first saved, and its leaves. The cost of adding a snapshot does not depend
 * on the length of the session.
 *
 * Invariant: `#leaves` contains exactly the snapshots that no other snapshot of the session names as parent, in commit order.
 */
export class SessionTree<N extends SnapshotNode = SnapshotMetadata> {
  readonly #nodes = new Map<string, N>();
  readonly #children = new Map<string, Set<string>>();
  readonly #leaves = new Set<string>();
  #latestLeaf: string | undefined;
  #lastWritten: N | undefined;

  get size(): number {
    return this.#nodes.size;
  }

  get leafCount(): number {
    return this.#leaves.size;
  }

  has(snapshotId: string): boolean {
    return this.#nodes.has(snapshotId);
  }

  get(snapshotId: string): N | undefined {
    return this.#nodes.get(snapshotId);
  }

  /** In the order of the first saves. */
  nodes(): IterableIterator<N> {
    return this.#nodes.values();
  }

  /** In the order of the first saves. */
  leaves(): N[] {
    return [...this.#leaves].map((id) => this.mustGet(id));
  }

  /** The leaf that was first saved last. */
  latestLeaf(): N | undefined {
    this.#latestLeaf ??= lastOf(this.#leaves);
    return this.#latestLeaf === undefined ? undefined : this.mustGet(this.#latestLeaf);
  }

  /** The snapshot that was last written, new or as a rewrite. It may have been removed since, because a removal is not a write. */
  lastWritten(): N | undefined {
    return this.#lastWritten;
  }

  /** The ids of the snapshots that name `snapshotId` as parent. That snapshot does not have to exist. */
  children(snapshotId: string): string[] {
    return [...(this.#children.get(snapshotId) ?? [])];
  }

  hasChildren(snapshotId: string): boolean {
    return this.#children.has(snapshotId);
  }

  /** Adds a new snapshot, or replaces a rewritten one, which keeps its place and its parent. */
  put(node: N): void {
    const known = this.#nodes.has(node.snapshotId);
    this.#nodes.set(node.snapshotId, node);
    this.#lastWritten = node;
    if (known) return;
    if (node.parentId !== undefined) {
      const siblings = this.#children.get(node.parentId);
      if (siblings) siblings.add(node.snapshotId);
      else this.#children.set(node.parentId, new Set([node.snapshotId]));
      this.#dropLeaf(node.parentId);
    }
    // A child may be saved before its parent. Then the parent is not a leaf.
    if (this.#children.has(node.snapshotId)) return;
    this.#leaves.add(node.snapshotId);
    this.#latestLeaf = node.snapshotId;
  }

  /** Removes a snapshot. Its children stay and still name it as parent. Its parent becomes a leaf if no other snapshot names it. */
  remove(snapshotId: string): void {
    const node = this.#nodes.get(snapshotId);
    if (!node) return;
    this.#nodes.delete(snapshotId);
    this.#dropLeaf(snapshotId);
    if (node.parentId === undefined) return;
    const siblings = this.#children.get(node.parentId);
    siblings?.delete(snapshotId);
    if (siblings?.size === 0) {
      this.#children.delete(node.parentId);
      if (this.#nodes.has(node.parentId)) this.#restoreLeaf(node.parentId);
    }
  }

  /**
   * Whether a new snapshot with this parent would become its own ancestor. Searches the ancestors only if another snapshot names it as
   * parent.
   */
  wouldCycle(snapshotId: string, parentId: string | undefined): boolean {
    if (parentId === snapshotId) return true;
    if (parentId === undefined || !this.#children.has(snapshotId)) return false;
    for (const ancestor of this.ancestors(parentId)) {
      if (ancestor === snapshotId) return true;
    }
    return false;
  }

  /** The id itself, then its parent, and so on. Ends with the first id that is not in the tree, or where foreign data has a cycle. */
  *ancestors(snapshotId: string): Generator<string> {
    const seen = new Set<string>();
    for (let id: string | undefined = snapshotId; id !== undefined && !seen.has(id);) {
      seen.add(id);
      yield id;
      id = this.#nodes.get(id)?.parentId;
    }
  }

  mustGet(snapshotId: string): N {
    const node = this.#nodes.get(snapshotId);
    if (!node) throw new Error(`invariant: snapshot ${JSON.stringify(snapshotId)} is not in the tree`);
    return node;
  }

  #dropLeaf(snapshotId: string): void {
    this.#leaves.delete(snapshotId);
    if (this.#latestLeaf === snapshotId) this.#latestLeaf = undefined;
  }

  /** Adds a leaf at its place in commit order. */
  #restoreLeaf(snapshotId: string): void {
    const leaves = new Set([...this.#leaves, snapshotId]);
    this.#leaves.clear();
    this.#latestLeaf = undefined;
    for (const id of this.#nodes.keys()) {
      if (leaves.has(id)) this.#leaves.add(id);
    }
  }
}

/** @throws `FAILED_PRECONDITION`, because the parent is the snapshot itself or one of its descendants. */
export function refuseCycle(snapshotId: string, parentId: string): never {
  throw failedPrecondition(
    `Snapshot ${quote(snapshotId)} can't have the parent ${quote(parentId)}: it would become its own ancestor.`,
  );
}

/** Compares foreign snapshots, which have no commit order of this package: by `createdAt`, then by id. */
export function byCreation(a: SnapshotNode, b: SnapshotNode): number {
  return compare(a.createdAt, b.createdAt) || compare(a.snapshotId, b.snapshotId);
}

function lastOf<T>(items: Iterable<T>): T | undefined {
  let last: T | undefined;
  for (const item of items) last = item;
  return last;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
