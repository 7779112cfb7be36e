import { useEffect, useRef } from 'react';
import type { ContextReport, MessageData } from 'genkitx-agents/client';
import type { SeenContext as Seen } from '../../../server/api-types.ts';
import { useSeenContext } from '../hooks/use-seen-context.ts';
import { describeContext, type SectionRow } from '../logic/seen-context.ts';
import { Folded } from './folded.tsx';

interface Props {
  snapshotId: string;
  /** Of the conversation. */
  messages: readonly MessageData[];
}

/** What the model was sent in a turn: one line, which opens to show it. */
export function SeenContext(props: Props) {
  return (
    <Folded className="seen" summary="What the model saw">
      {() => <Contents {...props} />}
    </Folded>
  );
}

function Contents({ snapshotId, messages }: Props) {
  const seen = useSeenContext(snapshotId);
  const box = useRef<HTMLDivElement>(null);
  // Under the last turn it would open out of sight.
  useEffect(() => {
    // In braces: newer browsers answer a promise, which React would take for the effect's end.
    box.current?.scrollIntoView({ block: 'nearest' });
  }, [seen]);
  return (
    <div className="contents" aria-busy={!seen} ref={box}>
      {!seen && <p className="empty">Reading…</p>}
      {seen && 'problem' in seen && <p role="alert">{seen.problem}</p>}
      {seen && !('problem' in seen) && !seen.report && <p className="empty">Nothing is known of this turn.</p>}
      {seen && !('problem' in seen) && seen.report && (
        <Report report={seen.report} summary={seen.summary} messages={messages} />
      )}
    </div>
  );
}

interface ReportProps {
  report: ContextReport;
  summary: Seen['summary'];
  messages: readonly MessageData[];
}

function Report({ report, summary, messages }: ReportProps) {
  const { total, sections, leftOut, summarized } = describeContext(report, messages);
  return (
    <>
      <Sections rows={sections} caption={total} />
      <h4>Left out</h4>
      {leftOut.length === 0 && <p>Nothing{summarized && `: ${summarized} are in the summary`}.</p>}
      {leftOut.length > 0 && (
        <ul>
          {leftOut.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
      {summarized && (
        <Folded className="notes" summary={`The summary of ${summarized}`}>
          {() => (summary ? <Notes {...summary} /> : <p className="empty">It is not kept any more.</p>)}
        </Folded>
      )}
    </>
  );
}

const WRITTEN = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function Notes({ text, model, createdAt }: NonNullable<Seen['summary']>) {
  return (
    <figure>
      <blockquote>{text}</blockquote>
      <figcaption>
        Written <time dateTime={createdAt}>{WRITTEN.format(new Date(createdAt))}</time>
        {model !== 'custom' && ` by ${model}`}
      </figcaption>
    </figure>
  );
}

const COUNT = new Intl.NumberFormat();

function Sections({ rows, caption }: { rows: SectionRow[]; caption: string }) {
  return (
    <table>
      <caption>{caption}</caption>
      <thead className="unseen">
        <tr>
          <th scope="col">Section</th>
          <th scope="col">Tokens</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ label, what, tokens, share }) => (
          <tr key={label}>
            <th scope="row">
              {label} <span className="what">{what}</span>
            </th>
            <td>
              {/* The number beside it says the same. */}
              <span className="bar" aria-hidden="true">
                <span style={{ inlineSize: `${share * 100}%` }} />
              </span>
              <span className="tokens">{COUNT.format(tokens)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
