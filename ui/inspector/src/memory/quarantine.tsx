import type { MemoryScopeId } from '../../../../src/inspector/api.ts';
import { write } from '../api/requests.ts';
import { useRead } from '../api/use-read.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';

const SHOWN = 30;

/** Texts that were not read, or not kept, and wait for a decision. */
export function Quarantine({ scope }: { scope: MemoryScopeId }) {
  const { info, tenant } = usePage();
  const { data, error, again } = useRead('memory/quarantine', { scope, tenant });
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data) return <p className="loading">Loading…</p>;
  if (data.items.length === 0) return <p className="empty">Nothing waits for a decision.</p>;
  const decide = async (name: 'memory/approve' | 'memory/discard', id: string) => {
    await write(name, { scope, id, confirm: id, tenant });
    again();
  };
  return (
    <ul className="cards">
      {data.items.slice(0, SHOWN).map(({ id, kind, reason, text, data: more, sourceId, at }) => (
        <li key={id}>
          <p className="said">{text}</p>
          {more !== undefined && <JsonTree value={more} />}
          <p className="why">{reason}</p>
          <small>
            {kind === 'message' ? 'A message that was not read' : 'A memory that was not kept'} · {time(at)} ·{' '}
            <code>{sourceId}</code>
          </small>
          {!info.readOnly && (
            <p className="choices">
              <Confirmed action="Discard" onYes={() => decide('memory/discard', id)}>
                <p>The text is removed, and nothing is learned from it. This can’t be undone.</p>
              </Confirmed>
              <Confirmed action="Approve" onYes={() => decide('memory/approve', id)}>
                <p>
                  A check stopped this text: {reason} After the approval the application remembers it without another
                  check.
                </p>
              </Confirmed>
            </p>
          )}
        </li>
      ))}
      {data.items.length > SHOWN && <li className="empty">And {counted(data.items.length - SHOWN, 'more text')}.</li>}
    </ul>
  );
}
