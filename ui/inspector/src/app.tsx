import { lazy, Suspense, useEffect, useMemo, useState } from 'react';
import type { InspectorStart } from '../../../src/inspector/api.ts';
import { useRead } from './api/use-read.ts';
import { ConnectionNotice } from './components/connection-notice.tsx';
import { Failure } from './components/failure.tsx';
import { Guard } from './components/guard.tsx';
import { TopBar } from './components/top-bar.tsx';
import { readPlace } from './logic/place.ts';
import { pageOf, PageProvider, useHash } from './page.ts';
import { RunsView } from './runs/runs-view.tsx';
import { queryOf } from './sessions/sessions-query.ts';
import { OpenById } from './sessions/open-by-id.tsx';
import { SessionsView } from './sessions/sessions-view.tsx';

// Loaded when a session is opened, so that the list of sessions appears sooner.
const SessionView = lazy(async () => ({ default: (await import('./snapshot/session-view.tsx')).SessionView }));
const SingleView = lazy(async () => ({ default: (await import('./snapshot/single-view.tsx')).SingleView }));
const MemoryView = lazy(async () => ({ default: (await import('./memory/memory-view.tsx')).MemoryView }));

export function App() {
  const hash = useHash();
  // The first view needs one request: the inspector's facts come with the first sessions.
  const [first] = useState(() => {
    const { path, query } = readPlace(location.hash);
    const isList = path[0] === 'sessions' || path[0] === '';
    return { asks: isList ? queryOf(query) : { tenant: query['tenant'], limit: 1 }, isList };
  });
  const { data, error, again } = useRead('start', first.asks);
  return (
    <>
      {data ? (
        <Opened start={data} hash={hash} hasList={first.isList} />
      ) : error ? (
        <Failure facts={error} onRetry={again} />
      ) : (
        <p className="loading">Loading…</p>
      )}
      <ConnectionNotice />
    </>
  );
}

function Opened({ start, hash, hasList }: { start: InspectorStart; hash: string; hasList: boolean }) {
  const page = useMemo(() => pageOf(start.info, hash), [start.info, hash]);
  const [view, id] = page.place.path;
  // Only for the first view: later ones would show old data.
  const [first, setFirst] = useState<InspectorStart | undefined>(hasList ? start : undefined);
  useEffect(() => setFirst(undefined), []);
  // A view of another tenant, or of another session, starts fresh.
  const key = `${page.tenant} ${view} ${id}`;
  return (
    <PageProvider value={page}>
      <TopBar />
      <main key={key}>
        <Guard of={hash}>
          <Suspense fallback={<p className="loading">Loading…</p>}>
            {view === 'session' && id ? (
              <SessionView sessionId={id} />
            ) : view === 'snapshot' && id ? (
              <SingleView snapshotId={id} />
            ) : !start.info.capabilities.list && view !== 'memory' ? (
              <OpenById />
            ) : view === 'runs' ? (
              <RunsView />
            ) : view === 'memory' ? (
              <MemoryView />
            ) : (
              <SessionsView first={first} />
            )}
          </Suspense>
        </Guard>
      </main>
    </PageProvider>
  );
}
