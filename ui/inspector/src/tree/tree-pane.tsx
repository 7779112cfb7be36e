import { ReactFlowProvider, useReactFlow } from '@xyflow/react';
import { useEffect, useMemo, useState, type FormEvent, type KeyboardEvent } from 'react';
import { MARK_NAMES, MARKS, markOf, type Mark } from '../logic/status.ts';
import { step, type Direction, type PlacedNode, type TreeLayout } from '../logic/tree-layout.ts';
import { count, counted } from '../logic/words.ts';
import { TreePicture } from './tree-picture.tsx';

interface Props {
  layout: TreeLayout;
  isLoading: boolean;
  selected: PlacedNode | undefined;
  /** The snapshot that the others are compared with. */
  compared: PlacedNode | undefined;
  onSelect: (placed: PlacedNode) => void;
  onOpen: () => void;
}

const DIRECTIONS: Readonly<Record<string, Direction>> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  Home: 'first',
  End: 'last',
  PageUp: 'page-up',
  PageDown: 'page-down',
};

/** The session as a tree. It has the focus as a whole, and arrow keys move in it. */
export function TreePane(props: Props) {
  return (
    <ReactFlowProvider>
      <Pane {...props} />
    </ReactFlowProvider>
  );
}

function Pane({ layout, isLoading, selected, compared, onSelect, onOpen }: Props) {
  const { zoomIn, zoomOut } = useReactFlow();
  const [towards, setTowards] = useState<PlacedNode>();
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = DIRECTIONS[event.key];
    if (event.key === 'Enter') onOpen();
    else if (event.key === '+') void zoomIn();
    else if (event.key === '-') void zoomOut();
    else if (!direction || !selected) return;
    event.preventDefault();
    if (!direction || !selected) return;
    const next = step(layout, selected, direction, towards && layout.byId.get(towards.node.snapshotId));
    // Down after up returns along the same branch.
    if (direction !== 'up' && direction !== 'page-up' && direction !== 'first') setTowards(next);
    else setTowards((before) => before ?? selected);
    if (next !== selected) onSelect(next);
  };
  return (
    <section className="tree-pane" aria-label="Tree">
      <Legend layout={layout} isLoading={isLoading} selected={selected} onSelect={onSelect} />
      <div className="tree">
        <TreePicture
          layout={layout}
          selected={selected}
          compared={compared}
          onSelect={onSelect}
          onKeyDown={onKeyDown}
        />
      </div>
    </section>
  );
}

/** The number of snapshots by status. A click selects the next one with this status. */
function Legend({ layout, isLoading, selected, onSelect }: Omit<Props, 'compared' | 'onOpen'>) {
  const byMark = useMemo(() => {
    const found = new Map<Mark, PlacedNode[]>();
    for (const placed of layout.byId.values()) {
      const mark = markOf(placed.node);
      const before = found.get(mark);
      if (before) before.push(placed);
      else found.set(mark, [placed]);
    }
    return found;
  }, [layout]);
  const selectNext = (nodes: readonly PlacedNode[]) => {
    const at = selected ? nodes.indexOf(selected) : -1;
    onSelect(nodes[(at + 1) % nodes.length]!);
  };
  return (
    <div className="legend">
      <span>
        {counted(layout.byId.size, 'snapshot')}
        {layout.leafCount > 1 && `, ${counted(layout.leafCount, 'branch', 'branches')}`}
      </span>
      {MARKS.flatMap((mark) => {
        const nodes = byMark.get(mark);
        if (!nodes || (mark === 'completed' && byMark.size === 1)) return [];
        return [
          <button
            key={mark}
            type="button"
            className="quiet"
            title={`Next: ${MARK_NAMES[mark]}`}
            onClick={() => selectNext(nodes)}
          >
            <i className={`mark ${mark}`} aria-hidden="true" /> {count(nodes.length)} {MARK_NAMES[mark]}
          </button>,
        ];
      })}
      <GoTo layout={layout} isLoading={isLoading} selected={selected} onSelect={onSelect} />
    </div>
  );
}

/** Selects a turn of the selected branch by its number, or a snapshot by its id. While the tree is loading, waits for it. */
function GoTo({ layout, isLoading, selected, onSelect }: Omit<Props, 'compared' | 'onOpen'>) {
  const [draft, setDraft] = useState('');
  const [wanted, setWanted] = useState('');
  const turn = Number(wanted);
  const branch = wanted === '' || Number.isNaN(turn) ? [] : branchOf(selected ?? layout.leaf);
  const found = layout.byId.get(wanted) ?? branch.find((placed) => placed.turn === turn);
  const notFound = Number.isNaN(turn) ? 'No such snapshot in this session' : `No turn ${turn} on this branch`;
  const go = (event: FormEvent) => {
    event.preventDefault();
    setWanted(draft.trim());
  };
  useEffect(() => {
    if (!found) return;
    onSelect(found);
    setDraft('');
    setWanted('');
  }, [found]);
  return (
    <form className="go-to" onSubmit={go}>
      <span role="status">{wanted && !found && (isLoading ? 'Loading…' : notFound)}</span>
      <input
        aria-label="Go to turn"
        placeholder="Go to turn"
        value={draft}
        onChange={(event) => {
          setDraft(event.target.value);
          setWanted('');
        }}
      />
    </form>
  );
}

function branchOf(placed: PlacedNode | undefined): PlacedNode[] {
  const branch: PlacedNode[] = [];
  for (let one = placed; one; one = one.parent) branch.push(one);
  for (let one = placed?.children[0]; one; one = one.children[0]) branch.push(one);
  return branch;
}
