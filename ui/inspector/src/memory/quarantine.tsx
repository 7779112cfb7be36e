import { useState } from 'react';
import type { InspectorWrites, MemoryScopeId } from '../../../../src/inspector/api.ts';
import { write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';

const SHOWN = 30;

/** Messages about an approved text that was neither learned nor added to the queue. */
const OUTCOMES: Partial<Record<InspectorWrites['memory/approve']['answers']['status'], string>> = {
  known: 'The text was approved before: it was learned, or waits in the queue.',
  failed: 'Learning from the text failed. It left the quarantine: it is tried again, or is among the dead letters.',
  full: 'The queue is full. Nothing was learned, and the text stays in the quarantine. Approve it again later.',
  refused: 'The consent of this scope is off. Nothing was learned, and the text stays in the quarantine.',
};

/** Messages that were not learned from, and memories that were not kept. They wait for a decision. */
export function Quarantine({ scope }: { scope: MemoryScopeId }) {
  const { info, tenant } = usePage();
  const { data, error, again } = useRead('memory/quarantine', { scope, tenant });
  const [shown, setShown] = useState(SHOWN);
  const [outcome, setOutcome] = useState<string>();
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  const approve = async (id: string) => {
    const { status } = await write('memory/approve', { scope, id, tenant });
    setOutcome(OUTCOMES[status]);
    again();
  };
  const discard = async (id: string) => {
    await write('memory/discard', { scope, id, confirm: id, tenant });
    setOutcome(undefined);
    again();
  };
  return (
    <>
      {outcome && (
        <p className="failure" role="status">
          {outcome}
        </p>
      )}
      {data.items.length === 0 && <p className="empty">No text of this scope waits for a decision.</p>}
      <ul className="cards">
        {data.items.slice(0, shown).map(({ id, kind, reason, text, data: more, sourceId, at }) => (
          <li key={id}>
            <p className="said">{text}</p>
            {more !== undefined && <JsonTree value={more} />}
            <p className="why">{reason}</p>
            <small>
              {kind === 'message' ? 'A message that was not learned from' : 'A memory that was not kept'} · {time(at)} ·{' '}
              source <code>{sourceId}</code>
            </small>
            {!info.readOnly && (
              <p className="choices">
                <Confirmed action="Discard" onYes={() => discard(id)}>
                  <p>The text is removed, and nothing is learned from it. This can’t be undone.</p>
                </Confirmed>
                <Confirmed action="Approve" onYes={() => approve(id)}>
                  <p>
                    A check stopped this text: {reason} If you approve it, the application learns it without another
                    check.
                  </p>
                </Confirmed>
              </p>
            )}
          </li>
        ))}
        {data.items.length > shown && (
          <li>
            <button type="button" onClick={() => setShown(shown + SHOWN)}>
              {counted(data.items.length - shown, 'more text')}
            </button>
          </li>
        )}
      </ul>
    </>
  );
}
