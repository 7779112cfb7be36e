/**
 * The position of each snapshot in the picture: a row for each step from the root, and a lane for each branch. The longest branch stays in the
 * lane of its parent; each other branch gets a lane further right that is free for its whole length. Pure.
 */
import type { TreeNode } from '../../../../src/inspector/api.ts';
import { markOf } from './status.ts';

export interface PlacedNode {
  node: TreeNode;
  parent?: PlacedNode;
  /** First the child in the same lane, then the others, oldest first. */
  children: PlacedNode[];
  row: number;
  /** The last row of its descendants. */
  bottom: number;
  lane: number;
  /** 1 for the first turn; 0 for a snapshot that was saved before the first message. */
  turn: number;
}

export interface TreeLayout {
  byId: ReadonlyMap<string, PlacedNode>;
  rows: readonly (readonly PlacedNode[])[];
  lanes: number;
  /** The latest snapshot without children. */
  leaf?: PlacedNode;
  leafCount: number;
}

export function layOut(nodes: readonly TreeNode[]): TreeLayout {
  const byId = new Map<string, PlacedNode>();
  for (const node of nodes) byId.set(node.snapshotId, { node, children: [], row: -1, bottom: -1, lane: 0, turn: 0 });
  const roots: PlacedNode[] = [];
  for (const placed of byId.values()) {
    const parent = byId.get(placed.node.parentId ?? '');
    if (parent) {
      placed.parent = parent;
      parent.children.push(placed);
    } else roots.push(placed);
  }

  const rows: PlacedNode[][] = [];
  for (let row = roots, depth = 0; row.length > 0; depth++) {
    for (const placed of row) {
      placed.row = depth;
      placed.turn = turnOf(placed);
    }
    rows.push(row);
    row = row.flatMap(({ children }) => children);
  }

  for (const row of rows.toReversed()) {
    for (const placed of row) {
      const { children } = placed;
      placed.bottom = children.reduce((bottom, child) => Math.max(bottom, child.bottom), placed.row);
      const main = children.findIndex(({ bottom }) => bottom === placed.bottom);
      if (main > 0) children.unshift(...children.splice(main, 1));
    }
  }

  /** The last used row of each lane. */
  const lastRows: number[] = [];
  for (const row of rows) {
    for (const placed of row) {
      const { parent } = placed;
      if (parent?.children[0] === placed) {
        placed.lane = parent.lane;
        continue;
      }
      let lane = parent ? parent.lane + 1 : 0;
      // A row stays empty between two branches of a lane, so that they don't look like one.
      while ((lastRows[lane] ?? -2) >= placed.row - 1) lane++;
      placed.lane = lane;
      lastRows[lane] = placed.bottom;
    }
  }
  for (const row of rows) row.sort((a, b) => a.lane - b.lane);

  const leaves = [...byId.values()].filter(({ children, row }) => children.length === 0 && row >= 0);
  return { byId, rows, lanes: lastRows.length, leaf: leaves.at(-1), leafCount: leaves.length };
}

function turnOf({ node, parent, children }: PlacedNode): number {
  if (!parent) return isBeforeMessages(node, children) ? 0 : 1;
  // The answer that a turn waited for belongs to the same turn.
  return markOf(parent.node) === 'waiting' ? parent.turn : parent.turn + 1;
}

/** Whether all messages came after it: no model answered in it, but in the turns that continue it. */
function isBeforeMessages({ messages, tokens, model, status }: TreeNode, children: readonly PlacedNode[]): boolean {
  if (messages) return messages.count === 0;
  const hasModel = (one: Pick<TreeNode, 'tokens' | 'model'>) => one.tokens !== undefined || one.model !== undefined;
  return status === 'completed' && !hasModel({ tokens, model }) && children.some((child) => hasModel(child.node));
}

export type Direction = 'up' | 'down' | 'left' | 'right' | 'first' | 'last' | 'page-up' | 'page-down';

const PAGE_ROWS = 10;

/** The next snapshot for an arrow key. `down` follows the path to `towards`, if that is below. */
export function step(
  layout: TreeLayout,
  from: PlacedNode,
  direction: Direction,
  towards: PlacedNode | undefined,
): PlacedNode {
  const path = pathTo(towards);
  const down = (placed: PlacedNode) => placed.children.find((child) => path.has(child)) ?? placed.children[0];
  switch (direction) {
    case 'up':
      return from.parent ?? from;
    case 'down':
      return down(from) ?? from;
    case 'left':
    case 'right':
      return beside(layout, from, direction);
    case 'first':
      return far(from, ({ parent }) => parent, Infinity);
    case 'last':
      return far(from, down, Infinity);
    case 'page-up':
      return far(from, ({ parent }) => parent, PAGE_ROWS);
    case 'page-down':
      return far(from, down, PAGE_ROWS);
  }
}

function far(from: PlacedNode, next: (placed: PlacedNode) => PlacedNode | undefined, steps: number): PlacedNode {
  let placed = from;
  for (let index = 0; index < steps; index++) {
    const following = next(placed);
    if (!following) break;
    placed = following;
  }
  return placed;
}

/** The neighbor in the row; without one, a snapshot of the nearest row that has one in that direction. */
function beside({ rows }: TreeLayout, from: PlacedNode, direction: 'left' | 'right'): PlacedNode {
  const row = rows[from.row]!;
  const neighbor = row[row.indexOf(from) + (direction === 'left' ? -1 : 1)];
  if (neighbor) return neighbor;
  const side = direction === 'left' ? -1 : 1;
  for (let distance = 1; distance < rows.length; distance++) {
    for (const near of [from.row - distance, from.row + distance]) {
      const found = (rows[near] ?? []).filter(({ lane }) => Math.sign(lane - from.lane) === side);
      if (found.length > 0) return side < 0 ? found.at(-1)! : found[0]!;
    }
  }
  return from;
}

/** A snapshot and all its ancestors. */
export function pathTo(placed: PlacedNode | undefined): ReadonlySet<PlacedNode> {
  const path = new Set<PlacedNode>();
  for (let one = placed; one && !path.has(one); one = one.parent) path.add(one);
  return path;
}
