import { ReactFlowProvider } from '@xyflow/react';
import { useMemo } from 'react';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { isGood, turnTree } from '../logic/tree.ts';
import { TreePicture } from './tree-picture.tsx';

interface Props {
  nodes: readonly SnapshotNode[];
  /** The snapshots on the path to the shown one. */
  path: readonly SnapshotNode[];
  onSelect: (snapshotId: string) => void;
}

/** The conversation as a tree: one box a turn. */
export function TreePanel({ nodes, path, onSelect }: Props) {
  const drawn = useMemo(() => turnTree(nodes, path.at(-1)?.snapshotId), [nodes, path]);
  const parents = new Set(drawn.map(({ parentId }) => parentId));
  const branches = drawn.filter((node) => isGood(node) && !parents.has(node.snapshotId)).length;
  return (
    <section className="panel tree" aria-labelledby="tree">
      <h2 id="tree">Branches {branches > 0 && <span className="count">{branches}</span>}</h2>
      {drawn.length === 0 ? (
        <p className="empty">Each turn becomes a box here. Click a box to go there.</p>
      ) : (
        <ReactFlowProvider>
          <TreePicture nodes={drawn} path={path} onSelect={onSelect} />
        </ReactFlowProvider>
      )}
    </section>
  );
}
