import { useState } from 'react';
import type { InspectorError, MemoryJob, MemoryScopeId, MessageData } from '../../../../src/inspector/api.ts';
import { Folded } from '../../../components/folded.tsx';
import { factsOf, write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { Guard } from '../components/guard.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { Messages } from '../snapshot/conversation.tsx';
import { nameOfScope } from './scope-name.ts';

const SHOWN = 30;
/** The most jobs that the server lists at once. */
const MOST_SHOWN = 1000;

/** Jobs that are not tried again, of a scope or of all scopes. */
export function DeadLetters({ scope }: { scope: MemoryScopeId | undefined }) {
  const { info, tenant } = usePage();
  const [limit, setLimit] = useState(SHOWN);
  const { data, error, again } = useRead('memory/jobs', { state: 'dead', limit, scope, tenant });
  const [refusal, setRefusal] = useState<InspectorError>();
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  if (data.items.length === 0)
    return (
      <p className="empty">
        {scope ? 'No dead letters in this scope. Other scopes may have some: choose “All scopes”.' : 'No dead letters.'}
      </p>
    );
  const replay = async (jobId: string) => {
    try {
      await write('memory/replay', { jobId, tenant });
      again();
    } catch (failure) {
      setRefusal(factsOf(failure));
    }
  };
  const discard = async (jobId: string) => {
    await write('memory/discard-job', { jobId, confirm: jobId, tenant });
    again();
  };
  return (
    <ul className="cards">
      {refusal && <Failure facts={refusal} />}
      {data.items.map(({ id, scope: of, attempts, error: why, createdAt, sourceId, input }) => (
        <li key={id}>
          <p className="said">{why ?? 'The reason is unknown.'}</p>
          <small>
            Dead after {counted(attempts, 'attempt')} · {nameOfScope(of)} · {time(createdAt)} · source{' '}
            <code>{sourceId}</code>
          </small>
          <Guard of={id}>
            <Contents input={input} />
          </Guard>
          {!info.readOnly && (
            <p className="choices">
              <Confirmed action="Discard" onYes={() => discard(id)}>
                <p>The job is removed, and its content is not learned. This can’t be undone.</p>
              </Confirmed>
              <button type="button" onClick={() => void replay(id)}>
                Try again
              </button>
            </p>
          )}
        </li>
      ))}
      {data.nextCursor && (
        <li>
          {limit < MOST_SHOWN ? (
            <button type="button" onClick={() => setLimit(Math.min(limit + SHOWN, MOST_SHOWN))}>
              More
            </button>
          ) : (
            'There are more. Discard or retry some of these to see them.'
          )}
        </li>
      )}
    </ul>
  );
}

/** The members of a job's input that people can read. A job of another version of the package may have none of them. */
interface JobInput {
  messages?: MessageData[];
  range?: { from: number };
  facts?: { text: string; data?: unknown }[];
}

/** The content of a job. */
function Contents({ input }: Pick<MemoryJob, 'input'>) {
  const { messages, range, facts } = (input ?? {}) as JobInput;
  if (messages)
    return (
      <Folded summary={counted(messages.length, 'message')}>
        {() => (
          <div className="source-messages">
            <Messages messages={messages} offset={range?.from} />
          </div>
        )}
      </Folded>
    );
  const texts = facts?.map(({ text, data }) => (data === undefined ? text : { text, data }));
  return (
    <Folded summary={texts ? counted(texts.length, 'fact') : 'Content'}>
      {() => <JsonTree value={texts ?? input} />}
    </Folded>
  );
}
