import type { ContextReport as Report, MessageData } from 'genkitx-agents/client';
import { describeContext, type SectionRow } from '../logic/describe-context.ts';
import { Folded } from './folded.tsx';

/** The summary in a model's input. */
export interface SummaryFacts {
  text: string;
  /** The model that wrote it; `custom` for a function. */
  model: string;
  createdAt: string;
}

interface Props {
  report: Report;
  /** Default: it was removed. */
  summary?: SummaryFacts;
  /** The messages of the conversation. */
  messages: readonly MessageData[];
}

/** The model's input in a turn: its sections as bars, the omitted parts with the reasons, and the summary. */
export function ContextReport({ report, summary, messages }: Props) {
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
          {() => (summary ? <Notes {...summary} /> : <p className="empty">It was removed.</p>)}
        </Folded>
      )}
    </>
  );
}

const WRITTEN = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function Notes({ text, model, createdAt }: SummaryFacts) {
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
              {/* Hidden from screen readers: the number next to it says the same. */}
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
