import { AgentError } from '../client/errors.ts';
import type { AgentAPI, AgentSnapshot, SnapshotLookup } from '../client/types.ts';
import { indexOfTurn, turnsIn, type Point } from './point.ts';
import { SnapshotTree, type SnapshotNode } from './snapshot-tree.ts';
import type { AgentBranch } from './types.ts';

/** Maximum snapshots to read from the latest one back to a known one. */
const MAX_ANCESTORS = 100;

/** How the snapshots of a session are read. */
export interface SnapshotSource<State, Node> {
  agent: AgentAPI<State>;
  listSnapshots?: (sessionId: string) => Promise<readonly Node[]>;
}

/** The known snapshots of a session: all of them if they can be listed, else those that this page has read. */
export class KnownSnapshots<State, Node extends SnapshotNode> {
  readonly #source: () => SnapshotSource<State, Node>;
  #tree = new SnapshotTree<Node>([]);
  /** The last list, if the snapshots can be listed. */
  #listed: readonly Node[] = [];
  /** The tree is the last list. */
  isListed = false;
  /** The number of user messages by snapshot. */
  readonly #turns = new Map<string, number>();
  /** The branches of this tree and point, cached because a view is created for each chunk. */
  #branches: { tree?: SnapshotTree<Node>; point?: Point<State>; found: readonly AgentBranch[] } = { found: [] };

  /** @param source Returns the current source. */
  constructor(source: () => SnapshotSource<State, Node>) {
    this.#source = source;
  }

  get tree(): SnapshotTree<Node> {
    return this.#tree;
  }

  /** The snapshots of the tree. If they can be listed, only those that were: they have all members. */
  get nodes(): readonly Node[] {
    return this.#source().listSnapshots ? this.#listed : this.#tree.nodes;
  }

  /** Removes all, for another session. */
  clear(): void {
    this.#tree = new SnapshotTree((this.#listed = []));
  }

  /** Reads new snapshots. Reads nothing for a session without an id. If they can't be listed, continues without those of other pages. */
  async refresh(sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined) return;
    const { listSnapshots } = this.#source();
    try {
      if (listSnapshots) {
        this.#tree = new SnapshotTree(await listSnapshots(sessionId));
        this.#listed = this.#tree.nodes;
      }
      this.isListed = listSnapshots !== undefined;
    } catch {
      this.isListed = false;
    }
    if (!this.isListed) await this.#readAncestors(sessionId);
  }

  /** Reads the session's latest snapshot and its ancestors, up to a known one. */
  async #readAncestors(sessionId: string): Promise<void> {
    const { agent } = this.#source();
    const found: SnapshotNode[] = [];
    let lookup: SnapshotLookup | undefined = { sessionId };
    while (lookup && found.length < MAX_ANCESTORS) {
      const at: SnapshotNode | undefined = await agent.getSnapshot(lookup, { metadataOnly: true });
      if (at) found.unshift(at);
      const isAtEnd = at?.parentId === undefined || this.#tree.nodes.length === 0 || this.#tree.get(at.snapshotId);
      lookup = isAtEnd ? undefined : { snapshotId: at.parentId! };
    }
    for (const node of found) this.remember(node);
  }

  /** Reads a snapshot, or the latest of a session. */
  async read(lookup: SnapshotLookup): Promise<AgentSnapshot<State> | undefined> {
    const snapshot = await this.#source().agent.getSnapshot(lookup);
    if (snapshot) this.remember(snapshot, snapshot.state?.messages);
    return snapshot;
  }

  /** @param messages The conversation at the snapshot. Default: unknown. */
  remember({ snapshotId, parentId, status }: SnapshotNode, messages?: Point<State>['messages']): void {
    if (messages) this.#turns.set(snapshotId, turnsIn(messages));
    const { nodes } = this.#tree;
    const place = nodes.findIndex((node) => node.snapshotId === snapshotId);
    if (this.isListed || (place >= 0 && nodes[place]!.status === status)) return;
    const node = { snapshotId, parentId, status } as Node;
    this.#tree = new SnapshotTree(place < 0 ? [...nodes, node] : nodes.with(place, node));
  }

  /** The turns up to a point that have alternatives on other branches. The same list until the tree or the point changes. */
  branchesOf(point: Point<State>): readonly AgentBranch[] {
    const tree = this.#tree;
    if (this.#branches.tree === tree && this.#branches.point === point) return this.#branches.found;
    const forks = tree.forksOn(point.snapshotId);
    const counts = forks.map(({ node }) => this.#turnsAt(node.snapshotId));
    const found = forks.flatMap(({ node, siblings }, at): AgentBranch[] => {
      const index = counts[at] === undefined ? -1 : indexOfTurn(point.messages, counts[at]);
      const snapshotIds = siblings.map((sibling) => tree.newestLeafFrom(sibling.snapshotId));
      return index < 0 ? [] : [{ index, snapshotIds, shown: siblings.indexOf(node) }];
    });
    // Not cached while the turn of a fork is unknown.
    if (!counts.includes(undefined)) this.#branches = { tree, point, found };
    return found;
  }

  /** The number of user messages at the snapshot, if it is known. */
  #turnsAt(snapshotId: string): number | undefined {
    return this.#turns.get(snapshotId) ?? this.#tree.get(snapshotId)?.turns;
  }

  /** Reads the snapshots of the forks up to this one whose turns are unknown. */
  async readForks(snapshotId: string | undefined): Promise<void> {
    for (const { node } of this.#tree.forksOn(snapshotId)) await this.#mustFind(node.snapshotId);
  }

  /** The last snapshot up to a point with this number of user messages. */
  async before({ snapshotId, parentId, messages }: Point<State>, turns: number): Promise<string | undefined> {
    let [at, above] = [snapshotId, parentId];
    let count = turnsIn(messages);
    while (at !== undefined && count > turns) {
      at = above;
      if (at === undefined) return undefined;
      const known = await this.#mustFind(at);
      [above, count] = [known.parentId, known.turns];
    }
    return at;
  }

  async #mustFind(snapshotId: string): Promise<{ parentId?: string; turns: number }> {
    const turns = this.#turnsAt(snapshotId);
    const node = this.#tree.get(snapshotId);
    if (node && turns !== undefined) return { parentId: node.parentId, turns };
    const snapshot = await this.read({ snapshotId });
    if (snapshot) return { parentId: snapshot.parentId, turns: turnsIn(snapshot.state?.messages) };
    throw noSuchSnapshot(snapshotId);
  }
}

export const NO_SNAPSHOT_BEFORE = {
  status: 'FAILED_PRECONDITION',
  message: 'There is no snapshot before this message, so it cannot be replaced.',
} as const;

export function noSuchSnapshot(snapshotId: string): AgentError {
  return new AgentError({ status: 'NOT_FOUND', message: `Snapshot ${snapshotId} no longer exists.` });
}
