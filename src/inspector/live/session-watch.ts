import { statusOf } from '../../agent/runtime-error.ts';
import { countEqual } from '../../json/count-same.ts';
import { listAllSnapshots } from '../../store/list/items-of.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { TreeNode } from '../api.ts';
import { nodeOf } from '../read/node.ts';
import { viewOf } from '../read/snapshot-view.ts';
import type { ReadSnapshot, Source } from '../source.ts';
import type { SendLive } from './live.ts';

/** The most turns between two polls that are read, one by one. Of more turns only the last ones are shown. */
const MOST_MISSED = 100;

/** Sends the changes of a session. A poll with at most one new turn takes one request, and one for each pending snapshot. */
export class SessionWatch {
  readonly #source: Source;
  readonly #sessionId: string;
  readonly #follow: boolean;
  /** Snapshots that may still change, besides the leaf. */
  readonly #pending: Set<string>;
  #leafId: string | undefined;
  /** The leaf's node as JSON, at the poll before. */
  #leafText: string | undefined;
  #leaf: ReadSnapshot | undefined;
  #leafCreatedAt = '';
  #isLookupByIdOnly = false;

  constructor(
    source: Source,
    options: { sessionId: string; leafId: string | undefined; follow: boolean; pending: readonly string[] },
  ) {
    this.#source = source;
    this.#sessionId = options.sessionId;
    this.#leafId = options.leafId;
    this.#follow = options.follow;
    this.#pending = new Set(options.pending);
  }

  async poll(send: SendLive): Promise<void> {
    const leaf = await this.#readLeaf();
    if (!leaf) {
      if (this.#leafText !== undefined) send('gone', {});
      this.#leafText = undefined;
      return;
    }
    const nodes = [...(await this.#endedNodes(leaf.snapshotId)), ...(await this.#missedNodes(leaf)), nodeOf(leaf)];
    const text = JSON.stringify(nodes.at(-1));
    const isChanged = text !== this.#leafText;
    // The first poll does not send a terminal leaf that the page has.
    const isKnown = this.#leafText === undefined && this.#leafId === leaf.snapshotId && isTerminal(leaf.status);
    const news = isChanged && !isKnown ? nodes : nodes.slice(0, -1);
    if (news.length > 0) send('nodes', { nodes: news });
    if (this.#follow && isChanged && !isKnown) send('snapshot', viewOf(leaf, this.#sharedMessages(leaf)));
    if (
      this.#leafId !== undefined &&
      this.#leafId !== leaf.snapshotId &&
      this.#leaf &&
      !isTerminal(this.#leaf.status)
    ) {
      this.#pending.add(this.#leafId);
    }
    this.#leafText = text;
    this.#leafId = leaf.snapshotId;
    this.#leafCreatedAt = leaf.createdAt;
    this.#leaf = leaf;
    this.#pending.delete(leaf.snapshotId);
  }

  async #readLeaf(): Promise<ReadSnapshot | undefined> {
    const sessionId = this.#sessionId;
    if (this.#isLookupByIdOnly) return this.#readNewest();
    try {
      return await (this.#follow ? this.#source.read({ sessionId }) : this.#source.readMetadata({ sessionId }));
    } catch (error) {
      // A store with rejectBranchingSessions refuses to read the leaf of a session with branches.
      if (statusOf(error) !== 'FAILED_PRECONDITION' || !this.#source.can.list) throw error;
      this.#isLookupByIdOnly = true;
      return this.#readNewest();
    }
  }

  async #readNewest(): Promise<ReadSnapshot | undefined> {
    const { caller } = this.#source;
    const all = await listAllSnapshots(this.#source.having('list'), { ...caller, sessionId: this.#sessionId });
    const newest = all.at(-1);
    return newest && this.#follow ? this.#source.read({ snapshotId: newest.snapshotId }) : newest;
  }

  /** The nodes of the pending snapshots that have ended. */
  async #endedNodes(leafId: string): Promise<TreeNode[]> {
    const ids = [...this.#pending].filter((id) => id !== leafId);
    const read = await Promise.all(ids.map((snapshotId) => this.#source.readMetadata({ snapshotId })));
    return read.flatMap((snapshot, i) => {
      if (snapshot && !isTerminal(snapshot.status)) return [];
      this.#pending.delete(ids[i]!);
      return snapshot ? [nodeOf(snapshot)] : [];
    });
  }

  /** The turns between the leaf of the poll before and this one. */
  async #missedNodes(leaf: ReadSnapshot): Promise<TreeNode[]> {
    const missed: SnapshotMetadata[] = [];
    if (this.#leafId === undefined || this.#leafId === leaf.snapshotId) return [];
    let { parentId } = leaf;
    if (this.#leafCreatedAt === '' && parentId !== this.#leafId) {
      // First poll: the page may have been disconnected for a while, since the leaf that it named.
      const known = await this.#source.readMetadata({ snapshotId: this.#leafId });
      this.#leafCreatedAt = known?.createdAt ?? leaf.createdAt;
    }
    while (parentId !== undefined && parentId !== this.#leafId && missed.length < MOST_MISSED) {
      const parent = await this.#source.readMetadata({ snapshotId: parentId });
      // The new leaf is on another branch, which starts at a turn that the page has.
      if (!parent || parent.createdAt < this.#leafCreatedAt) break;
      missed.unshift(parent);
      if (!isTerminal(parent.status)) this.#pending.add(parent.snapshotId);
      ({ parentId } = parent);
    }
    return missed.map(nodeOf);
  }

  /** How many first messages of the leaf the page has. */
  #sharedMessages(leaf: ReadSnapshot): number {
    return countEqual(this.#leaf?.state?.messages ?? [], leaf.state?.messages ?? []);
  }
}
