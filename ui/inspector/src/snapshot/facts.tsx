import type { ReactNode } from 'react';
import type { SnapshotView } from '../../../../src/inspector/api.ts';
import { CopyButton } from '../../../components/copy-button.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import type { PlacedNode } from '../logic/tree-layout.ts';
import { bytes, count, duration, time } from '../logic/words.ts';
import { LeaseText } from '../runs/lease.tsx';

/** All other data of a snapshot. */
export function Facts({ view, placed }: { view: SnapshotView; placed: PlacedNode }) {
  const { usage = {}, stateBytes, more } = view;
  const { snapshotId, parentId, createdAt, updatedAt, finishReason, run } = placed.node;
  const took = updatedAt && Date.parse(updatedAt) - Date.parse(createdAt);
  const rows: [name: string, value: ReactNode][] = [
    ['Snapshot', <Id key="id" id={snapshotId} />],
    ['Continues', parentId ? <Id key="parent" id={parentId} /> : '–'],
    ['Saved first', time(createdAt)],
    ['Saved last', updatedAt ? `${time(updatedAt)}${took ? `, ${duration(took)} later` : ''}` : '–'],
    ['Ended', finishReason ?? '–'],
    ['State', bytes(stateBytes)],
    ...Object.entries(usage).map(([name, value]): [string, ReactNode] => [name, count(value)]),
  ];
  return (
    <>
      <dl className="fact-list">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        {run && (
          <div>
            <dt>Run</dt>
            <dd>
              {[run.agent, run.owner && `worker ${run.owner}`, run.generation && `attempt ${run.generation}`]
                .filter(Boolean)
                .join(', ')}
              . <LeaseText run={run} />
            </dd>
          </div>
        )}
      </dl>
      {Object.keys(more).length > 0 && (
        <>
          <h3>Other fields</h3>
          <JsonTree value={more} />
        </>
      )}
    </>
  );
}

function Id({ id }: { id: string }) {
  return (
    <>
      <code>{id}</code> <CopyButton text={id} label={`Copy ${id}`} />
    </>
  );
}
