import { ReactFlowProvider } from '@xyflow/react';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { TreePicture } from './tree-picture.tsx';

interface Props {
  nodes: SnapshotNode[];
  /** The snapshots that lead to the one that is shown. */
  path: SnapshotNode[];
  disabled: boolean;
  onSelect: (snapshotId: string) => void;
}

/** The conversation as a tree: one box a turn. */
export function TreePanel(props: Props) {
  const parents = new Set(props.nodes.map(({ parentId }) => parentId));
  const branches = props.nodes.filter(({ snapshotId }) => !parents.has(snapshotId)).length;
  return (
    <section className="panel tree" aria-labelledby="tree">
      <h2 id="tree">Branches {branches > 0 && <span className="count">{branches === 1 ? 'one' : branches}</span>}</h2>
      {props.nodes.length === 0 ? (
        <p className="empty">Each turn becomes a box here. Click a box to go there.</p>
      ) : (
        <ReactFlowProvider>
          <TreePicture {...props} />
        </ReactFlowProvider>
      )}
    </section>
  );
}
