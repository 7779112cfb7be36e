/** The tree of a conversation's snapshots. Pure. */
import { Graph, layout, type OrderConstraint } from '@dagrejs/dagre';
import type { SnapshotNode } from '../../../server/api-types.ts';

export const NODE_SIZE = { width: 160, height: 46 };

export interface PlacedNode {
  node: SnapshotNode;
  /** Top left corner. */
  x: number;
  y: number;
}

export interface Picture {
  nodes: PlacedNode[];
  width: number;
  height: number;
}

/** The snapshots from the conversation's first to `snapshotId`. */
export function pathTo(nodes: readonly SnapshotNode[], snapshotId: string | undefined): SnapshotNode[] {
  const byId = new Map(nodes.map((node) => [node.snapshotId, node]));
  const path: SnapshotNode[] = [];
  let node = byId.get(snapshotId ?? '');
  while (node && !path.includes(node)) {
    path.unshift(node);
    node = byId.get(node.parentId ?? '');
  }
  return path;
}

/** Whether a conversation can continue from the snapshot. A stopped turn has its question and the reply so far. */
export function isGood({ status }: SnapshotNode): boolean {
  return status === undefined || status === 'completed' || status === 'aborted';
}

/** The snapshots that continue from this one, without failed turns. */
export function childrenOf(nodes: readonly SnapshotNode[], snapshotId: string | undefined): SnapshotNode[] {
  return nodes.filter((node) => node.parentId === snapshotId && snapshotId !== undefined && isGood(node));
}

/** The newest leaf below the snapshot, or the snapshot itself. */
export function newestLeafFrom(nodes: readonly SnapshotNode[], snapshotId: string): string {
  const newest = childrenOf(nodes, snapshotId).at(-1);
  return newest ? newestLeafFrom(nodes, newest.snapshotId) : snapshotId;
}

/** The snapshots of one turn on the path to the shown one: several if the turn waited for an answer, or was run again. */
export interface TurnSnapshots {
  first: SnapshotNode;
  last: SnapshotNode;
}

/** Grouped by the number of the turn, 1 for the first. */
export function byTurn(path: readonly SnapshotNode[]): Map<number, TurnSnapshots> {
  const turns = new Map<number, TurnSnapshots>();
  for (const node of path) {
    const { turn } = node.preview;
    if (turn > 0) turns.set(turn, { first: turns.get(turn)?.first ?? node, last: node });
  }
  return turns;
}

/**
 * The tree for the user, with one node a turn. It leaves out the first, empty snapshot, snapshots that a later one of the same turn replaced,
 * and failed turns except the shown one.
 */
export function turnTree(nodes: readonly SnapshotNode[], shownId: string | undefined): SnapshotNode[] {
  const byId = new Map(nodes.map((node) => [node.snapshotId, node]));
  const isPassed = ({ snapshotId, preview }: SnapshotNode) =>
    childrenOf(nodes, snapshotId).some((child) => child.preview.turn === preview.turn);
  const isDrawn = (node: SnapshotNode) => {
    if (node.preview.turn === 0 && node.parentId === undefined) return false;
    if (node.snapshotId === shownId) return true;
    return node.status === 'pending' || (isGood(node) && !isPassed(node));
  };
  const drawnParent = ({ parentId }: SnapshotNode): string | undefined => {
    const parent = byId.get(parentId ?? '');
    return parent && !isDrawn(parent) ? drawnParent(parent) : parentId;
  };
  return nodes.filter(isDrawn).map((node) => ({ ...node, parentId: drawnParent(node) }));
}

/** The position of each snapshot in the picture: parents above, branches side by side. */
export function draw(nodes: readonly SnapshotNode[]): Picture {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 14, ranksep: 26 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { snapshotId } of nodes) graph.setNode(snapshotId, { ...NODE_SIZE });
  for (const { snapshotId, parentId } of nodes)
    if (parentId && graph.hasNode(parentId)) graph.setEdge(parentId, snapshotId);
  layout(graph, { constraints: olderFirst(nodes) });

  const placed = nodes.map((node) => {
    const { x, y } = graph.node(node.snapshotId) as { x: number; y: number };
    return { node, x: x - NODE_SIZE.width / 2, y: y - NODE_SIZE.height / 2 };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { nodes: placed, width, height };
}

/** Older branches are left of younger ones, so that they keep their places when another is added. */
function olderFirst(nodes: readonly SnapshotNode[]): OrderConstraint[] {
  const youngest = new Map<string | undefined, string>();
  return nodes.flatMap(({ snapshotId, parentId }) => {
    const left = youngest.get(parentId);
    youngest.set(parentId, snapshotId);
    return left === undefined ? [] : [{ left, right: snapshotId }];
  });
}
