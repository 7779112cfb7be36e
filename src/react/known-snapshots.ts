import { AgentError } from '../client/errors.ts';
import type { AgentAPI, AgentSnapshot, SnapshotLookup } from '../client/types.ts';
import { indexOfTurn, turnsIn, type Point } from './point.ts';
import { SnapshotTree, type SnapshotNode } from './snapshot-tree.ts';
import type { AgentBranch } from './types.ts';

/** How far the tree is read upwards from the latest snapshot to those that are known. */
const MAX_CLIMB = 100;

/** How the snapshots of a session are read. */
export interface SnapshotSource<State, Node> {
  agent: AgentAPI<State>;
  listSnapshots?: (sessionId: string) => Promise<readonly Node[]>;
}

/** What is known of a session's snapshots: all of them where they can be listed, else those that were seen. */
export class KnownSnapshots<State, Node extends SnapshotNode> {
  readonly #source: () => SnapshotSource<State, Node>;
  #tree = new SnapshotTree<Node>([]);
  /** How many messages of the user there are at a snapshot. */
  readonly #turns = new Map<string, number>();
  /** The branches, of this tree and point: a view is made for each chunk. */
  #branches: { tree?: SnapshotTree<Node>; point?: Point<State>; found: readonly AgentBranch[] } = { found: [] };

  /** @param source The newest one. */
  constructor(source: () => SnapshotSource<State, Node>) {
    this.#source = source;
  }

  get tree(): SnapshotTree<Node> {
    return this.#tree;
  }

  /** Forgets all: they were of another session. */
  clear(): void {
    this.#tree = new SnapshotTree([]);
  }

  /** Reads what is new. Nothing is read of a session without an id. */
  async refresh(sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined) return;
    const { listSnapshots } = this.#source();
    if (listSnapshots) this.#tree = new SnapshotTree(await listSnapshots(sessionId));
    else await this.#climb(sessionId);
  }

  /** Finds the way from the session's latest snapshot to those that are known. */
  async #climb(sessionId: string): Promise<void> {
    const { agent } = this.#source();
    const found: SnapshotNode[] = [];
    let lookup: SnapshotLookup | undefined = { sessionId };
    while (lookup && found.length < MAX_CLIMB) {
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

  /** @param messages Of the conversation there. Default: they are not known. */
  remember({ snapshotId, parentId, status }: SnapshotNode, messages?: Point<State>['messages']): void {
    if (messages) this.#turns.set(snapshotId, turnsIn(messages));
    const { nodes } = this.#tree;
    const place = nodes.findIndex((node) => node.snapshotId === snapshotId);
    const isListed = this.#source().listSnapshots !== undefined;
    if (isListed || (place >= 0 && nodes[place]!.status === status)) return;
    const node = { snapshotId, parentId, status } as Node;
    this.#tree = new SnapshotTree(place < 0 ? [...nodes, node] : nodes.with(place, node));
  }

  /** The turns on the way to a point at which the conversation also went other ways. The same list until the tree or the point is another. */
  branchesOf(point: Point<State>): readonly AgentBranch[] {
    const tree = this.#tree;
    if (this.#branches.tree === tree && this.#branches.point === point) return this.#branches.found;
    const forks = tree.forksOn(point.snapshotId);
    const counts = forks.map(({ node }) => this.#turnsAt(node.snapshotId));
    const found = forks.flatMap(({ node, ways }, at): AgentBranch[] => {
      const index = counts[at] === undefined ? -1 : indexOfTurn(point.messages, counts[at]);
      const snapshotIds = ways.map((way) => tree.newestLeafFrom(way.snapshotId));
      return index < 0 ? [] : [{ index, snapshotIds, shown: ways.indexOf(node) }];
    });
    // Those of which the turn is not known yet are looked for again.
    if (!counts.includes(undefined)) this.#branches = { tree, point, found };
    return found;
  }

  /** How many messages of the user there are at the snapshot, if that is known. */
  #turnsAt(snapshotId: string): number | undefined {
    return this.#turns.get(snapshotId) ?? this.#tree.get(snapshotId)?.turns;
  }

  /** Afterwards it is known at which turn each fork on the way to the snapshot is. */
  async readForks(snapshotId: string | undefined): Promise<void> {
    for (const { node } of this.#tree.forksOn(snapshotId)) await this.#mustKnow(node.snapshotId);
  }

  /** The last snapshot on the way to a point at which the user had sent so many messages. */
  async before({ snapshotId, parentId, messages }: Point<State>, turns: number): Promise<string | undefined> {
    let [at, above] = [snapshotId, parentId];
    let count = turnsIn(messages);
    while (at !== undefined && count > turns) {
      at = above;
      if (at === undefined) return undefined;
      const known = await this.#mustKnow(at);
      [above, count] = [known.parentId, known.turns];
    }
    return at;
  }

  async #mustKnow(snapshotId: string): Promise<{ parentId?: string; turns: number }> {
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
  message: 'There is no snapshot before this message, so nothing else can be said in its place.',
} as const;

export function noSuchSnapshot(snapshotId: string): AgentError {
  return new AgentError({ status: 'NOT_FOUND', message: `There is no snapshot ${snapshotId} any more.` });
}
