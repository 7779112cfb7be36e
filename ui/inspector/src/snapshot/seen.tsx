import type { SeenRange, SeenView, SnapshotView } from '../../../../src/inspector/api.ts';
import { ContextReport } from '../../../components/context-report.tsx';
import { Folded } from '../../../components/folded.tsx';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { counted } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { Messages } from './conversation.tsx';

const WORDS: Record<SeenRange['as'], string> = {
  covered: 'in the summary',
  dropped: 'not sent',
  changed: 'sent shortened',
  sent: 'sent',
  turn: 'of this turn',
  unknown: 'unknown: the report was too long',
};

/** The model's input in the turn. */
export function Seen({ view }: { view: SnapshotView }) {
  const { tenant } = usePage();
  const { snapshotId } = view.node;
  const { data, error, isLoading, again } = useRead('seen', { snapshotId, tenant });
  if (error) return <Failure facts={error} onRetry={again} />;
  if (!data || isLoading) return <p className="loading">Loading…</p>;
  return <SeenText seen={data} view={view} />;
}

function SeenText({ seen: { report, summary, ranges }, view: { messages } }: { seen: SeenView; view: SnapshotView }) {
  return (
    <div className="seen">
      {report ? (
        <ContextReport report={report} summary={summary} messages={messages} />
      ) : (
        <p>
          Without a context window the model gets the whole conversation. Instructions and memories, if the agent has
          them, are not recorded.
        </p>
      )}
      {ranges.length > 0 && (
        <>
          <h4>The messages of the session</h4>
          <div className="ranges" aria-hidden="true">
            {ranges.map(({ from, to, as }) => (
              <span key={from} className={as} style={{ flexGrow: to - from }} title={WORDS[as]} />
            ))}
          </div>
          {ranges.map(({ from, to, as }) => (
            <Folded
              key={from}
              className="range"
              summary={
                <>
                  <i className={`swatch ${as}`} aria-hidden="true" /> {counted(to - from, 'message')} {WORDS[as]}{' '}
                  <small>
                    {from + 1}
                    {to - from > 1 && `–${to}`}
                  </small>
                </>
              }
            >
              {() => <Messages messages={messages.slice(from, to)} offset={from} />}
            </Folded>
          ))}
        </>
      )}
    </div>
  );
}
