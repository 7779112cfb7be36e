import { useState } from 'react';
import { Failure } from '../components/failure.tsx';
import { useRead } from '../api/use-read.ts';
import { jsonLine, time } from '../logic/words.ts';
import type { TreeLayout } from '../logic/tree-layout.ts';
import { usePage } from '../page.ts';
import { turnName } from '../tree/turn-box.tsx';

/** Which turns of the branch changed a value, the last one first. */
export function ValueHistory({ path, snapshotId, layout }: { path: string; snapshotId: string; layout: TreeLayout }) {
  const { tenant, set } = usePage();
  // Selecting one of the turns must not restart the list.
  const [begin] = useState(snapshotId);
  const [from, setFrom] = useState(begin);
  const { data, error, isLoading, again } = useRead('changes', { snapshotId: from, path, tenant });
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Searching for the turns that changed it…</p>;
  return (
    <section className="value-history" aria-label={`Turns that changed ${path}`} aria-busy={isLoading}>
      <h3>
        Turns that changed <code>{path}</code>
        <button type="button" className="quiet" aria-label="Close" onClick={() => set({ value: '' })}>
          ×
        </button>
      </h3>
      {data.items.length === 0 && <p className="empty">No turn found yet.</p>}
      <ol>
        {data.items.map(({ node, before, after }) => (
          <li key={node.snapshotId}>
            <button type="button" className="quiet" onClick={() => set({ snapshot: node.snapshotId, from: '' })}>
              {turnName(layout.byId.get(node.snapshotId))}
            </button>
            <Change before={before} after={after} />
            <small>{time(node.createdAt)}</small>
          </li>
        ))}
      </ol>
      {data.nextSnapshotId && (
        <button type="button" onClick={() => setFrom(data.nextSnapshotId!)}>
          Search further back
        </button>
      )}
    </section>
  );
}

/** A value before and after a change. */
export function Change({ before, after }: { before?: unknown; after?: unknown }) {
  return (
    <span className="change">
      {before !== undefined && <del>{jsonLine(before)}</del>}
      {before !== undefined && after !== undefined && ' '}
      {after !== undefined && <ins>{jsonLine(after)}</ins>}
    </span>
  );
}
