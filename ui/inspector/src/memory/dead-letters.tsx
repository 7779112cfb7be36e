import { useState } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';
import { factsOf, write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { nameOfScope } from './scope-name.ts';

/** Jobs that failed for the last time. */
export function DeadLetters() {
  const { info, tenant } = usePage();
  const { data, error, again } = useRead('memory/jobs', { state: 'dead', limit: 30, tenant });
  const [refusal, setRefusal] = useState<InspectorError>();
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  if (data.items.length === 0) return <p className="empty">No job was given up.</p>;
  const replay = async (jobId: string) => {
    try {
      await write('memory/replay', { jobId, tenant });
      again();
    } catch (failure) {
      setRefusal(factsOf(failure));
    }
  };
  return (
    <ul className="cards">
      {refusal && <Failure facts={refusal} />}
      {data.items.map(({ id, scope, attempts, error: why, createdAt, sourceId }) => (
        <li key={id}>
          <p className="said">{why ?? 'It is not known why.'}</p>
          <small>
            Given up after {counted(attempts, 'attempt')} · {nameOfScope(scope)} · {time(createdAt)} ·{' '}
            <code>{sourceId}</code>
          </small>
          {!info.readOnly && (
            <p className="choices">
              <button type="button" onClick={() => void replay(id)}>
                Try again
              </button>
            </p>
          )}
        </li>
      ))}
      {data.nextCursor && <li className="empty">There are more.</li>}
    </ul>
  );
}
