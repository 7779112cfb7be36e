import { invalidArgument } from '../errors.ts';
import type { SessionTree, SnapshotNode } from './session-tree.ts';

/** The members of a retention policy that select snapshots within a session; see `PrunePolicy`. */
export interface SessionRetention {
  maxAgeMs?: number;
  idleMs?: number;
  maxChainLength?: number;
}

/** What to remove of a session: the whole session, or these snapshots, in commit order. */
export type RetentionPlan = { readonly whole: true } | { readonly whole: false; readonly remove: readonly string[] };

/** @throws `INVALID_ARGUMENT` for an unknown member, an invalid value, or a policy without members. */
export function assertPolicy(policy: SessionRetention): void {
  if (typeof policy !== 'object' || policy === null) throw invalidArgument('prune needs a policy object.');
  const known = ['maxAgeMs', 'idleMs', 'maxChainLength'] as const;
  const unknown = Object.keys(policy).find((key) => !(known as readonly string[]).includes(key));
  if (unknown !== undefined) {
    throw invalidArgument(`prune: '${unknown}' is not a policy. Policies: ${known.join(', ')}.`);
  }
  if (known.every((key) => policy[key] === undefined)) {
    throw invalidArgument(`prune needs a policy. Set at least one of ${known.join(', ')}.`);
  }
  for (const key of known) {
    const value = policy[key];
    const least = key === 'maxChainLength' ? 1 : 0;
    if (value !== undefined && !(Number.isFinite(value) && value >= least)) {
      throw invalidArgument(`prune: ${key} must be a number of at least ${least}.`);
    }
  }
  if (policy.maxChainLength !== undefined && !Number.isInteger(policy.maxChainLength)) {
    throw invalidArgument('prune: maxChainLength must be a whole number.');
  }
}

/**
 * Plans the removal by `policy` in one session. `nowMs` is compared with the snapshots' own times; a snapshot whose time can't be read is
 * never too old.
 */
export function planRetention(tree: SessionTree<SnapshotNode>, policy: SessionRetention, nowMs: number): RetentionPlan {
  if (policy.idleMs !== undefined && isIdle(tree, nowMs - policy.idleMs)) return { whole: true };
  const remove = new Set<string>();
  if (policy.maxAgeMs !== undefined) addOld(tree, nowMs - policy.maxAgeMs, remove);
  if (policy.maxChainLength !== undefined) addBeyond(tree, policy.maxChainLength, remove);
  for (const id of neededByUnfinished(tree.leaves(), (id) => tree.get(id))) remove.delete(id);
  keepLeavesAsTheyAre(tree, remove);
  const ordered = [...tree.nodes()].map((node) => node.snapshotId).filter((id) => remove.has(id));
  return { whole: false, remove: ordered };
}

/**
 * The snapshots that sessions with an unfinished leaf continue from. Such a leaf is pending, failed, aborted or expired; its session
 * continues from the nearest completed ancestor. The snapshots between are also needed, because readers follow the parents' ids to find the
 * ancestor. If no ancestor is completed, the whole path is needed: if a parent is missing, a reader can't know that there is no completed
 * one.
 *
 * @param leaves All leaves of the tree. Leaves without a status, which only foreign data has, need nothing.
 */
function neededByUnfinished(
  leaves: readonly SnapshotNode[],
  nodeOf: (id: string) => SnapshotNode | undefined,
): ReadonlySet<string> {
  const needed = new Set<string>();
  for (const leaf of leaves) {
    if (leaf.status === undefined || leaf.status === 'completed') continue;
    for (let node: SnapshotNode | undefined = leaf; node && !needed.has(node.snapshotId);) {
      needed.add(node.snapshotId);
      const { parentId, status }: SnapshotNode = node;
      node = status === 'completed' || parentId === undefined ? undefined : nodeOf(parentId);
    }
  }
  return needed;
}

/**
 * If a snapshot stays and all its children would be removed, keeps the child that was first saved last. Otherwise the snapshot would become
 * a leaf, and the session would look branched or get another latest leaf.
 */
function keepLeavesAsTheyAre(tree: SessionTree<SnapshotNode>, remove: Set<string>): void {
  for (const node of tree.nodes()) {
    for (let id: string | undefined = node.snapshotId; id !== undefined && !remove.has(id);) {
      const children = tree.children(id);
      const last: string | undefined = children.every((child) => remove.has(child)) ? children.at(-1) : undefined;
      if (last !== undefined) remove.delete(last);
      id = last;
    }
  }
}

/** The snapshots further than `length` from every leaf, except running ones. */
function addBeyond(tree: SessionTree<SnapshotNode>, length: number, remove: Set<string>): void {
  const kept = new Set<string>();
  for (const leaf of tree.leaves()) {
    let count = 0;
    for (const id of tree.ancestors(leaf.snapshotId)) {
      if (count++ >= length) break;
      kept.add(id);
    }
  }
  for (const node of tree.nodes()) {
    if (!kept.has(node.snapshotId) && node.status !== 'pending') remove.add(node.snapshotId);
  }
}

function addOld(tree: SessionTree<SnapshotNode>, beforeMs: number, remove: Set<string>): void {
  const leaves = new Set(tree.leaves().map((leaf) => leaf.snapshotId));
  for (const node of tree.nodes()) {
    const isOld = Date.parse(node.createdAt) < beforeMs;
    if (isOld && node.status !== 'pending' && !leaves.has(node.snapshotId)) remove.add(node.snapshotId);
  }
}

function isIdle(tree: SessionTree<SnapshotNode>, beforeMs: number): boolean {
  for (const node of tree.nodes()) {
    if (node.status === 'pending') return false;
    if (!(Date.parse(node.updatedAt ?? node.createdAt) < beforeMs)) return false;
  }
  return true;
}

/**
 * Returns the ancestors of `added` that {@link planRetention} would remove by `maxChainLength` when `added` is saved. The save does not
 * affect other snapshots, so this searches only the path, the branches near it and the leaves, never the whole session.
 *
 * @param added A new snapshot, not yet in the tree.
 * @returns Snapshot ids, nearest to the new snapshot first.
 */
export function overflow(tree: SessionTree<SnapshotNode>, added: SnapshotNode, length: number): string[] {
  if (added.parentId === undefined) return [];
  const leaves = tree.leaves().filter((leaf) => leaf.snapshotId !== added.parentId);
  if (!tree.hasChildren(added.snapshotId)) leaves.push(added);
  const needed = neededByUnfinished(leaves, (id) => (id === added.snapshotId ? added : tree.get(id)));
  const beyond: string[] = [];
  let child = added.snapshotId;
  let distance = distanceToLeaf(tree, child, length);
  for (const id of tree.ancestors(added.parentId)) {
    if (!tree.has(id)) break;
    distance++;
    for (const other of tree.children(id)) {
      if (other !== child) distance = Math.min(distance, 1 + distanceToLeaf(tree, other, distance - 2));
    }
    if (distance >= length && !needed.has(id)) beyond.push(id);
    child = id;
  }
  return removable(tree, beyond);
}

/** Counts the steps from a snapshot to its nearest leaf. Returns a number above `limit` if there are more than `limit`. */
function distanceToLeaf(tree: SessionTree<SnapshotNode>, snapshotId: string, limit: number): number {
  let layer = [snapshotId];
  for (let steps = 0; steps <= limit; steps++) {
    if (layer.some((id) => !tree.hasChildren(id))) return steps;
    layer = layer.flatMap((id) => tree.children(id));
  }
  return limit + 1;
}

/**
 * Returns the snapshots of a path that can be removed: not running, and not the only child of a snapshot that stays (see {@link
 * keepLeavesAsTheyAre}).
 */
function removable(tree: SessionTree<SnapshotNode>, path: readonly string[]): string[] {
  const removed = new Set<string>();
  for (const id of path.toReversed()) {
    const node = tree.mustGet(id);
    const { parentId } = node;
    const parentStays = parentId !== undefined && tree.has(parentId) && !removed.has(parentId);
    const hidesLeaf = parentStays && tree.children(parentId).length === 1;
    if (node.status !== 'pending' && !hidesLeaf) removed.add(id);
  }
  return path.filter((id) => removed.has(id));
}
