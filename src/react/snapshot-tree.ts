import type { SessionSnapshot } from '../client/types.ts';

/** A snapshot in the tree of its session. */
export interface SnapshotNode extends Pick<SessionSnapshot, 'snapshotId' | 'parentId' | 'status'> {
  /** The number of user messages in the conversation there. Default: the snapshot is read when the number is needed. */
  turns?: number;
}

/** A snapshot, and all children of its parent, the oldest first. */
export interface Fork<Node> {
  node: Node;
  siblings: readonly Node[];
}

/** Whether a conversation can continue from the snapshot. A stopped turn has its message and the reply so far. */
export function isResumable({ status }: Pick<SnapshotNode, 'status'>): boolean {
  return status === undefined || status === 'completed' || status === 'aborted';
}

/** The snapshots of a session. Includes failed turns, which are not branches. */
export class SnapshotTree<Node extends SnapshotNode> {
  /** The oldest first. */
  readonly nodes: readonly Node[];
  readonly #byId: ReadonlyMap<string, Node>;
  readonly #children = new Map<string | undefined, Node[]>();

  constructor(nodes: readonly Node[]) {
    this.nodes = nodes;
    this.#byId = new Map(nodes.map((node) => [node.snapshotId, node]));
    for (const node of nodes.filter(isResumable)) {
      const siblings = this.#children.get(node.parentId);
      if (siblings) siblings.push(node);
      else this.#children.set(node.parentId, [node]);
    }
  }

  get(snapshotId: string | undefined): Node | undefined {
    return snapshotId === undefined ? undefined : this.#byId.get(snapshotId);
  }

  /** The snapshots that continue from this one; without an id, those that begin the session. */
  childrenOf(snapshotId: string | undefined): readonly Node[] {
    return this.#children.get(snapshotId) ?? [];
  }

  /** The newest snapshot that a conversation can continue from, or whose turn runs in the background. */
  get latest(): string | undefined {
    return this.nodes.findLast((node) => isResumable(node) || node.status === 'pending')?.snapshotId;
  }

  /** The turn that runs in the background after a leaf. */
  runningAfter(snapshotId: string | undefined): string | undefined {
    if (snapshotId === undefined || this.childrenOf(snapshotId).length > 0) return undefined;
    return this.nodes.findLast(({ status, parentId }) => status === 'pending' && parentId === snapshotId)?.snapshotId;
  }

  /** The newest leaf among the snapshot and its descendants. */
  newestLeafFrom(snapshotId: string): string {
    let leaf = snapshotId;
    for (let next = this.childrenOf(leaf).at(-1); next; next = this.childrenOf(leaf).at(-1)) leaf = next.snapshotId;
    return leaf;
  }

  /** The snapshots up to this one, from the oldest, that have siblings. */
  forksOn(snapshotId: string | undefined): Fork<Node>[] {
    const forks: Fork<Node>[] = [];
    for (let node = this.get(snapshotId); node; node = this.get(node.parentId)) {
      const siblings = this.childrenOf(node.parentId);
      if (siblings.length > 1) forks.unshift({ node, siblings });
    }
    return forks;
  }
}
