import type { SessionSnapshot } from '../client/types.ts';

/** What has to be known of a snapshot to find the way through its session. */
export interface SnapshotNode extends Pick<SessionSnapshot, 'snapshotId' | 'parentId' | 'status'> {
  /** How many messages of the user the conversation has there. Default: the snapshot is read when the number is needed. */
  turns?: number;
}

/** A snapshot on the way to another, and all that go on from the same snapshot as it, the oldest first. */
export interface Fork<Node> {
  node: Node;
  ways: readonly Node[];
}

/** Whether a conversation can go on from the snapshot: a turn that was stopped kept its message and the words so far. */
export function isGood({ status }: Pick<SnapshotNode, 'status'>): boolean {
  return status === undefined || status === 'completed' || status === 'aborted';
}

/** The snapshots of a session. Turns that failed are in it, and are no branches. */
export class SnapshotTree<Node extends SnapshotNode> {
  /** The oldest first. */
  readonly nodes: readonly Node[];
  readonly #byId: ReadonlyMap<string, Node>;
  readonly #children = new Map<string | undefined, Node[]>();

  constructor(nodes: readonly Node[]) {
    this.nodes = nodes;
    this.#byId = new Map(nodes.map((node) => [node.snapshotId, node]));
    for (const node of nodes.filter(isGood)) {
      const siblings = this.#children.get(node.parentId);
      if (siblings) siblings.push(node);
      else this.#children.set(node.parentId, [node]);
    }
  }

  get(snapshotId: string | undefined): Node | undefined {
    return snapshotId === undefined ? undefined : this.#byId.get(snapshotId);
  }

  /** The snapshots that go on from this one; of none, those that begin the session. */
  childrenOf(snapshotId: string | undefined): readonly Node[] {
    return this.#children.get(snapshotId) ?? [];
  }

  /** The newest snapshot that a conversation can go on from. */
  get latest(): string | undefined {
    return this.nodes.findLast(isGood)?.snapshotId;
  }

  /** The newest leaf that goes on from the snapshot, which may be the snapshot itself. */
  newestLeafFrom(snapshotId: string): string {
    let leaf = snapshotId;
    for (let next = this.childrenOf(leaf).at(-1); next; next = this.childrenOf(leaf).at(-1)) leaf = next.snapshotId;
    return leaf;
  }

  /** The places, on the way to the snapshot, at which the conversation went several ways. */
  forksOn(snapshotId: string | undefined): Fork<Node>[] {
    const forks: Fork<Node>[] = [];
    for (let node = this.get(snapshotId); node; node = this.get(node.parentId)) {
      const ways = this.childrenOf(node.parentId);
      if (ways.length > 1) forks.unshift({ node, ways });
    }
    return forks;
  }
}
