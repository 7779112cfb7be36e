import { useCallback, useEffect, useRef, useState } from 'react';
import type { SnapshotView } from '../../../../src/inspector/api.ts';
import { write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { Heading } from '../components/heading.tsx';
import { counted } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { TreePane } from '../tree/tree-pane.tsx';
import { useTree } from '../tree/use-tree.ts';
import { SnapshotPane } from './snapshot-pane.tsx';

/** Moving through the tree reads a snapshot only after this pause. */
const PAUSE_MS = 150;
/** The most snapshots that are cached. */
const MOST_KNOWN = 30;

/** A session: its tree, and the snapshot that is selected, or the latest one. */
export function SessionView({ sessionId }: { sessionId: string }) {
  const { info, place, tenant, href, set } = usePage();
  const { layout, isLoading, isGone, error, again: readTree, latest, follow } = useTree(sessionId, tenant);
  const { snapshot: wanted, from } = place.query;
  const selected = (wanted && layout.byId.get(wanted)) || layout.leaf;
  const compared = from ? layout.byId.get(from) : undefined;
  const node = selected?.node;
  const detail = useRef<HTMLElement>(null);

  const { view, failure, isReading, again } = useSnapshot(node?.snapshotId, node?.updatedAt, latest, tenant);
  const isAtLeaf = selected !== undefined && selected === layout.leaf && !wanted;
  const followed = isAtLeaf && view?.node.snapshotId === node?.snapshotId ? view : undefined;
  const isFollowed = followed !== undefined;
  useEffect(() => {
    if (isAtLeaf && isFollowed) follow(followed);
    if (!isAtLeaf && selected) follow(null);
    // Follows from the first shown leaf on: then the server sends the next ones.
  }, [isAtLeaf, isFollowed, selected === undefined, follow]);

  const remove = async () => {
    await write('delete-session', { tenant, sessionId, confirm: sessionId });
    location.hash = href(['sessions']);
  };

  if (error && layout.byId.size === 0)
    return <Failure facts={error} title="The session can’t be read." onRetry={readTree} />;
  if (isGone || (!isLoading && !selected))
    return (
      <div className="nothing">
        <p>
          There is no session <code>{sessionId}</code>
          {isGone && ' any more'}. <a href={href(['sessions'])}>All sessions</a>
        </p>
      </div>
    );
  return (
    <div className="session-view">
      <div className="session-head">
        <a href={href(['sessions'])}>Sessions</a>
        <Heading className="id">{sessionId}</Heading>
        {wanted && (
          <button type="button" className="quiet" title="Follow the latest turn" onClick={() => set({ snapshot: '' })}>
            Latest
          </button>
        )}
        {!info.readOnly && (
          <Confirmed action="Delete session" className="quiet" onYes={remove}>
            <p>
              <code>{sessionId}</code> with its {counted(layout.byId.size, 'snapshot')} is removed from the store. This
              can’t be undone.
            </p>
          </Confirmed>
        )}
      </div>
      <TreePane
        layout={layout}
        isLoading={isLoading}
        selected={selected}
        compared={compared}
        onSelect={({ node: { snapshotId } }) => set({ snapshot: snapshotId })}
        onOpen={() => detail.current?.focus()}
      />
      <section className="detail" ref={detail} tabIndex={-1} aria-label="Snapshot" aria-busy={isReading}>
        {wanted && selected && !isLoading && !layout.byId.has(wanted) && (
          <p className="hint" role="status">
            There is no snapshot <code>{wanted}</code> in this session: this is the latest turn.
          </p>
        )}
        {failure && <Failure facts={failure} title="The snapshot can’t be read." onRetry={again} />}
        {selected && view && <SnapshotPane placed={selected} layout={layout} view={view} isStale={isReading} />}
        {!view && !failure && <p className="loading">Loading…</p>}
      </section>
    </div>
  );
}

interface Shown {
  view?: SnapshotView;
  failure?: Parameters<typeof Failure>[0]['facts'];
  isReading: boolean;
  again: () => void;
}

/** The snapshot with all its data: from a live event, from the cache, or read now. */
function useSnapshot(
  snapshotId: string | undefined,
  updatedAt: string | undefined,
  latest: SnapshotView | undefined,
  tenant: string | undefined,
): Shown {
  const [known] = useState(() => new Map<string, SnapshotView>());
  const keep = useCallback(
    (view: SnapshotView) => {
      const { snapshotId: id } = view.node;
      known.delete(id);
      known.set(id, view);
      if (known.size > MOST_KNOWN) known.delete(known.keys().next().value!);
    },
    [known],
  );
  if (latest) keep(latest);
  const before = snapshotId === undefined ? undefined : known.get(snapshotId);
  const isCurrent = before && before.node.updatedAt === updatedAt;
  const isFirst = known.size === 0;
  const asks = snapshotId === undefined || isCurrent ? undefined : { snapshotId, tenant };
  const { data, error, isLoading, again } = useRead('snapshot', asks, isFirst ? 0 : PAUSE_MS);
  if (data && asks && data.node.snapshotId === snapshotId) keep(data);
  return {
    view: (snapshotId === undefined ? undefined : known.get(snapshotId)) ?? data ?? [...known.values()].at(-1),
    failure: asks && error,
    isReading: isLoading,
    again,
  };
}
