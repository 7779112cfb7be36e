/** The geometry of the picture: boxes, lines and, when zoomed out, marks. All lines, and all marks of a status, are one SVG path. Pure. */
import { markOf, type Mark } from './status.ts';
import type { PlacedNode } from './tree-layout.ts';

export const BOX = { width: 176, height: 44 };
export const GRID = { width: 200, height: 68 };

const RADIUS = 10;

/** Top left corner of a box. */
export function cornerOf({ lane, row }: PlacedNode): { x: number; y: number } {
  return { x: lane * GRID.width, y: row * GRID.height };
}

/** The line from the parent's box to the box. */
export function lineTo({ parent, lane, row }: PlacedNode): string {
  if (!parent) return '';
  const x = lane * GRID.width + BOX.width / 2;
  const fromX = parent.lane * GRID.width + BOX.width / 2;
  const fromY = parent.row * GRID.height + BOX.height;
  const y = row * GRID.height;
  if (x === fromX) return `M${x} ${fromY}V${y}`;
  const turnY = y - (GRID.height - BOX.height) / 2;
  const side = Math.sign(x - fromX);
  return `M${fromX} ${fromY}V${turnY - RADIUS}Q${fromX} ${turnY} ${fromX + side * RADIUS} ${turnY}H${x - side * RADIUS}Q${x} ${turnY} ${x} ${turnY + RADIUS}V${y}`;
}

/** The mark of a snapshot when zoomed out, in the shape of its status. */
function markAt(mark: Mark, x: number, y: number, r: number): string {
  switch (mark) {
    case 'failed':
      return `M${x} ${y - r}L${x + r} ${y + r}H${x - r}Z`;
    case 'expired':
      return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
    case 'aborted':
      return `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`;
    case 'pending':
      return `M${x - r} ${y - r}L${x + r} ${y}L${x - r} ${y + r}Z`;
    default:
      return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }
}

/** All marks of a status as one path. */
export function marksOf(nodes: readonly PlacedNode[], zoom: number): Map<Mark, string> {
  const paths = new Map<Mark, string[]>();
  for (const placed of nodes) {
    const mark = markOf(placed.node);
    const { x, y } = cornerOf(placed);
    // Marks of other statuses are larger, because people look for them.
    const r = mark === 'completed' ? Math.min(GRID.height / 2, Math.max(6, 4 / zoom)) : Math.max(8, 4.5 / zoom);
    const path = markAt(mark, x + BOX.width / 2, y + BOX.height / 2, r);
    const before = paths.get(mark);
    if (before) before.push(path);
    else paths.set(mark, [path]);
  }
  return new Map([...paths].map(([mark, parts]) => [mark, parts.join('')]));
}

/** The visible rows and lanes. */
export interface Window {
  rows: readonly [first: number, last: number];
  lanes: readonly [first: number, last: number];
}

/** The part of the picture that a pane shows, with a margin. */
export function windowOf(x: number, y: number, zoom: number, width: number, height: number): Window {
  return {
    rows: [Math.floor(-y / zoom / GRID.height) - 1, Math.ceil((height - y) / zoom / GRID.height)],
    lanes: [Math.floor(-x / zoom / GRID.width) - 1, Math.ceil((width - x) / zoom / GRID.width)],
  };
}

/** The visible snapshots, and the snapshots of which only the line is visible. */
export function visibleNodes(
  rows: readonly (readonly PlacedNode[])[],
  { rows: [firstRow, lastRow], lanes: [firstLane, lastLane] }: Window,
): { boxes: PlacedNode[]; lines: PlacedNode[] } {
  const boxes: PlacedNode[] = [];
  const lines: PlacedNode[] = [];
  for (const row of rows.slice(Math.max(0, firstRow), Math.max(0, lastRow + 2))) {
    for (const placed of row) {
      const from = placed.parent?.lane ?? placed.lane;
      if (Math.max(from, placed.lane) < firstLane || Math.min(from, placed.lane) > lastLane) continue;
      lines.push(placed);
      if (placed.lane >= firstLane && placed.lane <= lastLane) boxes.push(placed);
    }
  }
  return { boxes, lines };
}
