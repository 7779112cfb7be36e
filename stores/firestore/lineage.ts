import type { SnapshotStatus } from '../../src/store/contract.ts';

/** A leaf of a session, as its pointer knows it. */
export interface Leaf {
  readonly id: string;
  /** Its place in the session's order of first saves. */
  readonly seq: number;
  readonly status?: SnapshotStatus;
  /** When it counts as gone, in ms; absent: never. */
  readonly until?: number;
}

/** What a session's pointer knows of the session's tree: enough for the next save, whatever the size of the tree. */
export interface Lineage {
  /** The place of the next new snapshot. */
  readonly nextSeq: number;
  readonly count: number;
  /** In the order of their first saves; the oldest may be left out. */
  readonly leaves: readonly Leaf[];
  /** Leaves that are left out. */
  readonly moreLeaves: number;
  /** Ids that are named as parents and are not there; some may be left out. */
  readonly missing: readonly string[];
  readonly moreMissing: boolean;
}

export const EMPTY_LINEAGE: Lineage = {
  nextSeq: 0,
  count: 0,
  leaves: [],
  moreLeaves: 0,
  missing: [],
  moreMissing: false,
};

/** What has to be found out before a snapshot is first saved. */
export interface Arrival {
  readonly leaf: Leaf;
  readonly parentId: string | undefined;
  /** `leaf`: the parent is one until now, listed or left out; `inner`: it has children; `missing`: the session does not have it. */
  readonly parent: 'leaf' | 'inner' | 'missing' | 'none';
  /** Somebody names the new snapshot as parent already. */
  readonly hasChildren: boolean;
}

/** The pointer lists at most so many leaves, and so many missing parents, ... */
const MOST_LISTED = 256;
/** ... of at most so many characters. */
const MOST_CHARACTERS = 64 * 1024;

/** The lineage once a new snapshot is saved. */
export function withArrival(before: Lineage, { leaf, parentId, parent, hasChildren }: Arrival): Lineage {
  let { leaves, moreLeaves, missing, moreMissing } = before;
  if (parent === 'leaf') {
    const others = leaves.filter((other) => other.id !== parentId);
    if (others.length === leaves.length) moreLeaves--;
    leaves = others;
  }
  if (parent === 'missing') missing = missing.includes(parentId!) ? missing : [...missing, parentId!];
  if (hasChildren) missing = missing.filter((id) => id !== leaf.id);
  else leaves = [...leaves, leaf];
  const listed = newest(leaves, (one) => one.id);
  const named = newest(missing, (id) => id);
  return {
    nextSeq: before.nextSeq + 1,
    count: before.count + 1,
    leaves: listed,
    moreLeaves: moreLeaves + leaves.length - listed.length,
    missing: named,
    moreMissing: moreMissing || named.length < missing.length,
  };
}

/** As many of the newest as a pointer lists; at least one. */
export function newest<T>(items: readonly T[], idOf: (item: T) => string): readonly T[] {
  let characters = 0;
  let first = items.length;
  while (first > 0 && items.length - first < MOST_LISTED) {
    characters += idOf(items[first - 1]!).length;
    if (characters > MOST_CHARACTERS && first < items.length) break;
    first--;
  }
  return first === 0 ? items : items.slice(first);
}

/** The session's latest leaf that does not count as gone. */
export function latestLeaf({ leaves }: Lineage, now: number): Leaf | undefined {
  return leaves.findLast((leaf) => isAlive(leaf, now));
}

export function leafCount({ leaves, moreLeaves }: Lineage, now: number): number {
  return moreLeaves + leaves.filter((leaf) => isAlive(leaf, now)).length;
}

/** Whether a listed leaf counts as gone: then the pointer does not know which snapshots are leaves. */
export function hasExpiredLeaf({ leaves }: Lineage, now: number): boolean {
  return leaves.some((leaf) => !isAlive(leaf, now));
}

export function isAlive({ until }: { readonly until?: number }, now: number): boolean {
  return until === undefined || until > now;
}
