import { useMemo } from 'react';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { Heading } from '../components/heading.tsx';
import { layOut } from '../logic/tree-layout.ts';
import { usePage } from '../page.ts';
import { SnapshotPane } from './snapshot-pane.tsx';

/** One snapshot without its tree, of a store that can't list. */
export function SingleView({ snapshotId }: { snapshotId: string }) {
  const { tenant, href } = usePage();
  const { data, error, again } = useRead('snapshot', { snapshotId, tenant });
  const layout = useMemo(() => layOut(data ? [data.node] : []), [data]);
  if (error) return <Failure facts={error} title="The snapshot can’t be read." onRetry={again} />;
  if (!data || !layout.leaf) return <p className="loading">Loading…</p>;
  const { parentId } = data.node;
  return (
    <section className="detail single" aria-label="Snapshot">
      <Heading className="unseen">{snapshotId}</Heading>
      {parentId && (
        <p>
          It continues <a href={href(['snapshot', parentId])}>{parentId}</a>.
        </p>
      )}
      <SnapshotPane placed={layout.leaf} layout={layout} view={data} isStale={false} />
    </section>
  );
}
