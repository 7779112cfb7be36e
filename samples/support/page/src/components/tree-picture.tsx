import {
  Background,
  Controls,
  Position,
  ReactFlow,
  useReactFlow,
  useStore,
  type BuiltInEdge,
  type NodeHandle,
} from '@xyflow/react';
import { useEffect, useMemo } from 'react';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { draw, NODE_SIZE, type Picture } from '../logic/tree.ts';
import { TreeNode, type TurnNode } from './tree-node.tsx';

interface Props {
  nodes: readonly SnapshotNode[];
  path: readonly SnapshotNode[];
  onSelect: (snapshotId: string) => void;
}

const NODE_TYPES = { turn: TreeNode };
/** Below this the boxes can't be read. */
const READABLE_ZOOM = 0.78;
const MARGIN_PX = 20;
/** At this zoom a thousand turns in a row fit on a screen. */
const MIN_ZOOM = 0.01;
/** Where edges begin and end. Passed, not measured, because a box is drawn again whenever its data change. */
const HANDLES: NodeHandle[] = [
  { type: 'target', position: Position.Top, x: NODE_SIZE.width / 2, y: 0, width: 1, height: 1 },
  { type: 'source', position: Position.Bottom, x: NODE_SIZE.width / 2, y: NODE_SIZE.height, width: 1, height: 1 },
];
const EDGE = { borderRadius: 8, offset: 10 };

export function TreePicture({ nodes, path, onSelect }: Props) {
  const picture = useMemo(() => draw(nodes), [nodes]);
  const onPath = useMemo(() => new Set(path.map(({ snapshotId }) => snapshotId)), [path]);
  const current = path.at(-1)?.snapshotId;
  useView(picture, current);

  const boxes: TurnNode[] = picture.nodes.map(({ node, x, y }) => ({
    id: node.snapshotId,
    type: 'turn',
    position: { x, y },
    width: NODE_SIZE.width,
    height: NODE_SIZE.height,
    // Passed as well: otherwise the whole tree can be shown only after the boxes were drawn twice.
    measured: NODE_SIZE,
    handles: HANDLES,
    data: { node, onPath: onPath.has(node.snapshotId), current: node.snapshotId === current, onSelect },
  }));

  return (
    <ReactFlow
      nodes={boxes}
      edges={edgesOf(nodes, onPath)}
      nodeTypes={NODE_TYPES}
      minZoom={MIN_ZOOM}
      maxZoom={1.25}
      nodesDraggable={false}
      nodesConnectable={false}
      nodesFocusable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      panOnScroll
      zoomOnDoubleClick={false}
      aria-label="Tree of the conversation"
    >
      <Background gap={18} />
      <Controls showInteractive={false} position="bottom-right" fitViewOptions={{ minZoom: MIN_ZOOM, padding: 0.05 }} />
    </ReactFlow>
  );
}

function edgesOf(nodes: readonly SnapshotNode[], onPath: ReadonlySet<string>): BuiltInEdge[] {
  return nodes.flatMap(({ snapshotId, parentId }) => {
    if (parentId === undefined) return [];
    const className = onPath.has(snapshotId) ? 'on-path' : undefined;
    return [{ id: snapshotId, source: parentId, target: snapshotId, type: 'smoothstep', pathOptions: EDGE, className }];
  });
}

/** Shows the whole tree if it is readable, else the area around the current turn. */
function useView({ nodes, width, height }: Picture, current: string | undefined): void {
  const { setViewport } = useReactFlow();
  const [paneWidth, paneHeight] = [useStore((store) => store.width), useStore((store) => store.height)];

  useEffect(() => {
    if (!paneWidth || !paneHeight || !width) return;
    const fit = Math.min((paneWidth - 2 * MARGIN_PX) / width, (paneHeight - 2 * MARGIN_PX) / height);
    const zoom = Math.min(1, Math.max(fit, READABLE_ZOOM));
    const box = nodes.find(({ node }) => node.snapshotId === current) ?? { x: 0, y: 0 };
    const focus = { x: box.x + NODE_SIZE.width / 2, y: box.y + NODE_SIZE.height / 2 };
    void setViewport({
      x: place(focus.x * zoom, width * zoom, paneWidth),
      y: Math.min(MARGIN_PX, place(focus.y * zoom, height * zoom, paneHeight)),
      zoom,
    });
  }, [nodes, width, height, current, paneWidth, paneHeight, setViewport]);
}

/** Where the picture begins on one axis. Centred if it fits, else with `focus` in the middle, without empty space at the ends. */
function place(focus: number, size: number, pane: number): number {
  if (size + 2 * MARGIN_PX <= pane) return (pane - size) / 2;
  return Math.min(MARGIN_PX, Math.max(pane - size - MARGIN_PX, pane / 2 - focus));
}
