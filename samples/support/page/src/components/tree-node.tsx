import { Handle, Position, type Node, type NodeProps } from '@xyflow/react';
import type { SnapshotNode } from '../../../server/api-types.ts';

export type TurnNode = Node<{
  node: SnapshotNode;
  /** Whether it is on the path to the shown turn. */
  onPath: boolean;
  current: boolean;
  onSelect: (snapshotId: string) => void;
}>;

/** One turn in the picture. A button, for keyboard access. */
export function TreeNode({ data: { node, onPath, current, onSelect } }: NodeProps<TurnNode>) {
  const { asked, tools, turn } = node.preview;
  const settled = node.status === undefined || node.status === 'completed';
  return (
    <>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <button
        type="button"
        className="box"
        data-on-path={onPath}
        data-status={node.status}
        aria-current={current ? 'true' : undefined}
        aria-label={`Turn ${turn}: ${asked}`}
        title={asked}
        onClick={() => onSelect(node.snapshotId)}
      >
        <span className="what">{asked || 'No message'}</span>
        <span className="how">
          turn {turn}
          {tools.length > 0 && ` · ${tools.join(', ')}`}
          {!settled && ` · ${node.status}`}
        </span>
      </button>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </>
  );
}
