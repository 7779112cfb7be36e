import type { Node, NodeProps } from '@xyflow/react';
import { MARK_NAMES, markOf } from '../logic/status.ts';
import type { PlacedNode } from '../logic/tree-layout.ts';
import { count, counted, line } from '../logic/words.ts';

export type TurnBoxNode = Node<{
  placed: PlacedNode;
  /** Whether it is the selected snapshot or one of its ancestors. */
  isOnPath: boolean;
  isSelected: boolean;
  isCompared: boolean;
}>;

/** One snapshot in the picture. */
export function TurnBox({ data: { placed, isOnPath, isSelected, isCompared } }: NodeProps<TurnBoxNode>) {
  const { node, turn } = placed;
  const mark = markOf(node);
  return (
    <div
      id={`node-${node.snapshotId}`}
      className="box"
      role="treeitem"
      aria-level={placed.row + 1}
      aria-selected={isSelected}
      aria-label={`${branchTurnName(placed)}, ${MARK_NAMES[mark]}`}
      data-turn={turn}
      data-on-way={isOnPath}
      data-compared={isCompared}
      title={node.error}
    >
      <i className={`mark ${mark}`} />
      <b>{turnName(placed)}</b>
      <small>{factsOf(placed)}</small>
    </div>
  );
}

export function turnName(placed: PlacedNode | undefined): string {
  if (!placed) return 'another turn';
  const { turn } = placed;
  return turn === 0 ? 'Start' : `Turn ${turn}`;
}

/** Turns of different branches have different names. */
export function branchTurnName(placed: PlacedNode | undefined): string {
  return `${turnName(placed)}${placed && placed.lane > 0 ? ` of branch ${placed.lane + 1}` : ''}`;
}

function factsOf({ node }: PlacedNode): string {
  const mark = markOf(node);
  if (node.error) return line(node.error, 60);
  if (mark !== 'completed') return MARK_NAMES[mark];
  if (node.tokens !== undefined) return `${count(node.tokens)} tokens`;
  return node.messages ? counted(node.messages.added, 'message') : MARK_NAMES[mark];
}
