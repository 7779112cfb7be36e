/** The tree of a conversation's snapshots. Pure. */
import { Graph, layout, type OrderConstraint } from '@dagrejs/dagre';
import type { SnapshotNode } from '../../server/api-types.ts';

export const NODE_SIZE = { width: 160, height: 46 };

export interface PlacedNode {
  node: SnapshotNode;
  /** Top left corner. */
  x: number;
  y: number;
  /** 1 for the first message of the conversation. */
  turn: number;
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

/** How many snapshots go on from this one. */
export function countChildren(nodes: readonly SnapshotNode[], snapshotId: string): number {
  return nodes.filter(({ parentId }) => parentId === snapshotId).length;
}

/** A turn that failed or was stopped can be looked at, but not continued: the next message goes on from the last good one before it. */
export function continueFrom(path: readonly SnapshotNode[]): SnapshotNode | undefined {
  return path.findLast(({ status }) => status === undefined || status === 'completed');
}

/** Where each snapshot goes in the picture: parents above, branches side by side. */
export function draw(nodes: readonly SnapshotNode[]): Picture {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 14, ranksep: 26 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { snapshotId } of nodes) graph.setNode(snapshotId, { ...NODE_SIZE });
  for (const { snapshotId, parentId } of nodes)
    if (parentId && graph.hasNode(parentId)) graph.setEdge(parentId, snapshotId);
  layout(graph, { constraints: olderFirst(nodes) });

  const turns = new Map<string, number>();
  const placed = nodes.map((node) => {
    // Parents are listed before their children.
    const turn = (turns.get(node.parentId ?? '') ?? 0) + 1;
    turns.set(node.snapshotId, turn);
    const { x, y } = graph.node(node.snapshotId) as { x: number; y: number };
    return { node, x: x - NODE_SIZE.width / 2, y: y - NODE_SIZE.height / 2, turn };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { nodes: placed, width, height };
}

/** Branches keep their places when another is added: the older is left of the younger. */
function olderFirst(nodes: readonly SnapshotNode[]): OrderConstraint[] {
  const youngest = new Map<string | undefined, string>();
  return nodes.flatMap(({ snapshotId, parentId }) => {
    const left = youngest.get(parentId);
    youngest.set(parentId, snapshotId);
    return left === undefined ? [] : [{ left, right: snapshotId }];
  });
}
