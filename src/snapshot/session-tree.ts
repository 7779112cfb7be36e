import { failedPrecondition, quote } from '../errors.ts';
import type { SnapshotMetadata, SnapshotStatus } from './snapshot.ts';

/** What lineage needs to know of a snapshot. */
export interface SnapshotNode {
  readonly snapshotId: string;
  readonly parentId?: string;
  readonly createdAt: string;
  readonly updatedAt?: string;
  readonly status?: SnapshotStatus;
}

/**
 * The snapshots of one session, in the order in which they were first saved, and its leaves. Adding a snapshot costs the same however long
 * the session is.
 *
 * Invariant: `#leaves` holds exactly the snapshots that no other of the session names as parent, in commit order.
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

  /** The snapshot that was written last, as new or as a rewrite. It may have been removed since: a removal is not a write. */
  lastWritten(): N | undefined {
    return this.#lastWritten;
  }

  /** The snapshots that name `snapshotId` as parent, even if that snapshot does not exist. */
  children(snapshotId: string): string[] {
    return [...(this.#children.get(snapshotId) ?? [])];
  }

  hasChildren(snapshotId: string): boolean {
    return this.#children.has(snapshotId);
  }

  /** Adds a new snapshot, or replaces what is known of one; a rewrite keeps its place and its parent. */
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
    // A child may be saved before its parent; the parent is then no leaf.
    if (this.#children.has(node.snapshotId)) return;
    this.#leaves.add(node.snapshotId);
    this.#latestLeaf = node.snapshotId;
  }

  /** Forgets a snapshot. Its children stay and keep naming it; its parent becomes a leaf again when no other names it. */
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

  /** Whether a new snapshot with this parent would become its own ancestor. Walks only when another snapshot names it as parent. */
  wouldCycle(snapshotId: string, parentId: string | undefined): boolean {
    if (parentId === snapshotId) return true;
    if (parentId === undefined || !this.#children.has(snapshotId)) return false;
    for (const ancestor of this.ancestors(parentId)) {
      if (ancestor === snapshotId) return true;
    }
    return false;
  }

  /** The id itself, then its parent, and so on; ends with the first id that is not there, or where foreign data runs in a circle. */
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

  /** Adds a leaf at its place: leaves are kept in commit order. */
  #restoreLeaf(snapshotId: string): void {
    const leaves = new Set([...this.#leaves, snapshotId]);
    this.#leaves.clear();
    this.#latestLeaf = undefined;
    for (const id of this.#nodes.keys()) {
      if (leaves.has(id)) this.#leaves.add(id);
    }
  }
}

/** @throws `FAILED_PRECONDITION`: the parent is the snapshot itself, or comes after it. */
export function refuseCycle(snapshotId: string, parentId: string): never {
  throw failedPrecondition(
    `Snapshot ${quote(snapshotId)} can't have the parent ${quote(parentId)}: it would become its own ancestor.`,
  );
}

/**
 * The order for snapshots that carry no commit order of this package, those that another implementation wrote: by `createdAt`, then by id.
 */
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
