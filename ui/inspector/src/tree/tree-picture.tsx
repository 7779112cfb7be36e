import {
  Background,
  Controls,
  ReactFlow,
  useReactFlow,
  useStore,
  ViewportPortal,
  type ReactFlowState,
} from '@xyflow/react';
import { useCallback, useEffect, useMemo, useRef, type KeyboardEvent, type MouseEvent } from 'react';
import { pathTo, type PlacedNode, type TreeLayout } from '../logic/tree-layout.ts';
import { BOX, cornerOf, GRID, visibleNodes, lineTo, marksOf, windowOf } from '../logic/tree-paths.ts';
import { TurnBox, type TurnBoxNode } from './turn-box.tsx';

interface Props {
  layout: TreeLayout;
  selected: PlacedNode | undefined;
  compared: PlacedNode | undefined;
  onSelect: (placed: PlacedNode) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

const NODE_TYPES = { turn: TurnBox };
/** Below this zoom the text in the boxes can't be read, so marks are drawn instead. */
const READABLE_ZOOM = 0.55;
/** 10,000 turns in a row fit on a screen. */
const MIN_ZOOM = 0.001;
const MARGIN_PX = 24;
/** The width of the zoom buttons. */
const CONTROLS_PX = 30;
/** More boxes than this are drawn as marks, so that the page stays small. */
const MOST_BOXES = 44;

const windowKeyOf = ({ transform: [x, y, zoom], width, height }: ReactFlowState): string => {
  const { rows, lanes } = windowOf(x, y, zoom, width, height);
  // When zoomed out, marks change their size with the zoom, in steps.
  return JSON.stringify([...rows, ...lanes, zoom < READABLE_ZOOM ? 2 ** Math.round(Math.log2(zoom)) : 1]);
};

/** Draws the visible part: boxes, or marks when zoomed out. All lines are one element. */
export function TreePicture({ layout, selected, compared, onSelect, onKeyDown }: Props) {
  const [firstRow, lastRow, firstLane, lastLane, zoom] = JSON.parse(useStore(windowKeyOf)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const { screenToFlowPosition } = useReactFlow();
  const { fitAll } = useView(layout, selected);
  const ancestors = useMemo(() => pathTo(selected), [selected]);

  const { boxes, lines } = useMemo(
    () => visibleNodes(layout.rows, { rows: [firstRow, lastRow], lanes: [firstLane, lastLane] }),
    [layout, firstRow, lastRow, firstLane, lastLane],
  );
  const isNear = zoom === 1 && boxes.length <= MOST_BOXES;

  const nodes = useMemo(
    () =>
      (isNear ? boxes : boxes.filter((placed) => placed === selected)).map((placed): TurnBoxNode => {
        const { snapshotId } = placed.node;
        return {
          id: snapshotId,
          type: 'turn',
          position: cornerOf(placed),
          width: BOX.width,
          height: BOX.height,
          handles: [],
          ariaRole: 'presentation',
          data: {
            placed,
            isOnPath: ancestors.has(placed),
            isSelected: placed === selected,
            isCompared: placed === compared,
          },
        };
      }),
    [boxes, isNear, ancestors, selected, compared],
  );
  const [linesPath, wayPath] = useMemo(() => {
    const pathOf = (placed: readonly PlacedNode[]) => placed.map(lineTo).join('');
    return [pathOf(lines.filter((one) => !ancestors.has(one))), pathOf(lines.filter((one) => ancestors.has(one)))];
  }, [lines, ancestors]);
  const marks = useMemo(() => (isNear ? [] : [...marksOf(boxes, zoom)]), [boxes, isNear, zoom]);

  const keys = useRef<HTMLDivElement>(null);
  const select = (placed: PlacedNode) => {
    keys.current?.focus({ preventScroll: true });
    onSelect(placed);
  };
  const onPaneClick = (event: MouseEvent) => {
    const { x, y } = screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const [lane, row] = [(x - BOX.width / 2) / GRID.width, (y - BOX.height / 2) / GRID.height];
    const distance = (placed: PlacedNode) => Math.hypot(placed.lane - lane, placed.row - row);
    const [near] = boxes.toSorted((a, b) => distance(a) - distance(b));
    if (near && distance(near) < Math.max(0.5, 0.1 / zoom)) select(near);
  };

  return (
    <>
      {/* Next to the picture, whose buttons and layers are not part of a tree. */}
      <div
        ref={keys}
        className="keys"
        role="tree"
        tabIndex={0}
        aria-label="Snapshots. Arrow keys move, Enter opens."
        aria-activedescendant={selected && `node-${selected.node.snapshotId}`}
        aria-owns={nodes.map(({ id }) => `node-${id}`).join(' ')}
        onKeyDown={onKeyDown}
      />
      <ReactFlow
        nodes={nodes}
        edges={[]}
        nodeTypes={NODE_TYPES}
        minZoom={MIN_ZOOM}
        maxZoom={1.25}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        panActivationKeyCode={null}
        zoomActivationKeyCode={null}
        panOnScroll
        zoomOnDoubleClick={false}
        onNodeClick={(_event, { data }) => select(data.placed)}
        onPaneClick={onPaneClick}
      >
        <ViewportPortal>
          <svg className="lines" aria-hidden="true">
            <path className="line" d={linesPath} />
            <path className="line on-way" d={wayPath} />
            {marks.map(([mark, path]) => (
              <path key={mark} className={`far ${mark}`} d={path} />
            ))}
          </svg>
        </ViewportPortal>
        <Background gap={20} />
        <Controls showInteractive={false} showFitView={false} position="bottom-right">
          <button
            type="button"
            className="react-flow__controls-button"
            aria-label="Show all"
            title="Show all"
            onClick={fitAll}
          >
            ⤢
          </button>
        </Controls>
      </ReactFlow>
    </>
  );
}

/** Shows the whole tree at first, if it is readable; then keeps the selected box visible. */
function useView({ rows, lanes }: TreeLayout, selected: PlacedNode | undefined): { fitAll: () => void } {
  const { setViewport, getViewport } = useReactFlow();
  // Keeps the boxes clear of the buttons.
  const paneWidth = useStore(({ width: whole }) => Math.max(0, whole - CONTROLS_PX));
  const paneHeight = useStore(({ height: whole }) => whole);
  const [width, height] = [lanes * GRID.width, rows.length * GRID.height];
  const isPlaced = useRef(false);

  const fitAll = useCallback(() => {
    const fit = Math.min((paneWidth - 2 * MARGIN_PX) / width, (paneHeight - 2 * MARGIN_PX) / height);
    const zoom = Math.min(1, Math.max(MIN_ZOOM, fit));
    void setViewport({ x: (paneWidth - width * zoom) / 2, y: MARGIN_PX, zoom });
  }, [paneWidth, paneHeight, width, height, setViewport]);

  useEffect(() => {
    if (!paneWidth || !paneHeight || !selected) return;
    const corner = cornerOf(selected);
    if (!isPlaced.current) {
      isPlaced.current = true;
      const zoom = Math.min(1, Math.max(0.75, (paneHeight - 2 * MARGIN_PX) / height));
      const isWhole = height * zoom + 2 * MARGIN_PX <= paneHeight;
      const y = isWhole ? MARGIN_PX : Math.min(MARGIN_PX, paneHeight * 0.8 - corner.y * zoom);
      const x = width * zoom < paneWidth ? (paneWidth - width * zoom + GRID.width - BOX.width) / 2 : MARGIN_PX;
      void setViewport({ x: Math.min(x, paneWidth - MARGIN_PX - (corner.x + BOX.width) * zoom), y, zoom });
      return;
    }
    const { x, y, zoom } = getViewport();
    const next = {
      x: kept(x, corner.x * zoom, BOX.width * zoom, paneWidth),
      y: kept(y, corner.y * zoom, BOX.height * zoom, paneHeight),
      zoom,
    };
    if (next.x !== x || next.y !== y) void setViewport(next);
    // The pane follows the selection, not each new turn elsewhere.
  }, [selected?.lane, selected?.row, paneWidth, paneHeight, setViewport, getViewport]);

  return { fitAll };
}

/** The offset of the pane, changed as little as possible to show `at` to `at + size`. */
function kept(offset: number, at: number, size: number, pane: number): number {
  return Math.max(MARGIN_PX - at, Math.min(offset, pane - MARGIN_PX - at - size));
}
