import { useEffect, useState } from 'react';
import type { RunLine } from '../../../../src/inspector/api.ts';
import { write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { Heading } from '../components/heading.tsx';
import { StatusMark } from '../components/status-mark.tsx';
import type { Mark } from '../logic/status.ts';
import { counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { LeaseText } from './lease.tsx';

const STATES: readonly (readonly [state: RunLine['state'], title: string, mark: Mark, meaning: string])[] = [
  ['running', 'Running', 'pending', 'The worker is alive.'],
  ['waiting', 'Waiting', 'waiting', 'Not started yet.'],
  ['expired', 'Expired', 'expired', 'The worker is dead. Another worker takes over if recovery is on.'],
  ['released', 'Handed over', 'expired', 'The process ended. Another worker takes over if recovery is on.'],
  ['given-up', 'Given up', 'failed', 'Not tried again.'],
];

const REFRESH_MS = 5000;
/** The most runs of a state that are shown. */
const SHOWN = 15;

/** Background runs by their state, with live leases. */
export function RunsView() {
  const { tenant } = usePage();
  const [cursor, setCursor] = useState<string>();
  const { data, error, again } = useRead('runs', { tenant, cursor });
  useEffect(() => {
    const timer = setInterval(again, REFRESH_MS);
    return () => clearInterval(timer);
  }, [again]);
  const [read, setRead] = useState({ at: 0, now: '' });
  if (data && data.now !== read.now) setRead({ at: Date.now(), now: data.now });
  const skewMs = read.now ? read.at - Date.parse(read.now) : 0;
  const groups = STATES.map((state) => [...state, data?.items.filter((run) => run.state === state[0]) ?? []] as const);
  return (
    <section className="runs" aria-labelledby="view-title">
      <Heading>Background runs</Heading>
      {error && <Failure facts={error} onRetry={again} />}
      {data?.unreadable && (
        <p role="status">
          The runs of these sessions can’t be read:{' '}
          {data.unreadable.map(({ sessionId, place }) => sessionId ?? place).join(', ')}.
        </p>
      )}
      {data?.items.length === 0 && <p className="empty">No background runs in the sessions that were written last.</p>}
      {groups
        .filter(([, , , , runs]) => runs.length > 0)
        .map(([state, title, mark, meaning, runs]) => (
          <section key={state} aria-label={title}>
            <h2>
              <StatusMark mark={mark} /> {title} <span className="count">{runs.length}</span>
            </h2>
            <p className="empty">{meaning}</p>
            <ul>
              {runs.slice(0, SHOWN).map((run) => (
                <Run key={run.snapshotId} run={run} skewMs={skewMs} onChange={again} />
              ))}
            </ul>
            {runs.length > SHOWN && <p className="empty">And {counted(runs.length - SHOWN, 'more run')}.</p>}
          </section>
        ))}
      {data?.nextCursor && (
        <button type="button" onClick={() => setCursor(data.nextCursor)}>
          Search older sessions
        </button>
      )}
    </section>
  );
}

function Run({ run, skewMs, onChange }: { run: RunLine; skewMs: number; onChange: () => void }) {
  const { info, tenant, href } = usePage();
  const { agent = 'agent', owner = 'none', generation = 1, state, sessionId, snapshotId, createdAt, error } = run;
  const abort = async () => {
    await write('abort', { tenant, snapshotId });
    onChange();
  };
  return (
    <li className="run">
      <a href={href(['session', sessionId], { snapshot: snapshotId })}>{agent}</a>
      <span className="id">{sessionId}</span>
      <p>{error ?? <LeaseText run={run} skewMs={skewMs} />}</p>
      <small>
        Worker <code>{owner}</code>,{' '}
        {generation === 1 ? 'first attempt' : `taken over ${counted(generation - 1, 'time')}`}, started{' '}
        {time(createdAt)}
      </small>
      {!info.readOnly && state !== 'given-up' && (
        <Confirmed action="Abort" onYes={abort}>
          <p>
            The run of <b>{agent}</b> in <code>{sessionId}</code> stops, and is not taken over.
          </p>
        </Confirmed>
      )}
    </li>
  );
}
