import { memo, useEffect, useMemo, useRef, useState } from 'react';
import type { MessageData, SnapshotView } from '../../../../src/inspector/api.ts';
import { Folded } from '../../../components/folded.tsx';
import { Json } from '../../../components/json.tsx';
import type { Step } from '../../../logic/turns.ts';
import { Steps } from '../../../components/steps.tsx';
import { readableTurns, type ReadableTurn } from '../logic/readable.ts';
import { counted } from '../logic/words.ts';

/** The most turns that are shown at once; fewer if their text is long, because Markdown creates many elements. */
const SHOWN = 8;
const MOST_TEXT = 3000;
/** A turn with more steps, or longer text, is cut until it is opened. */
const MOST_STEPS = 12;
/** A tool call counts as this many characters. */
const TOOL_TEXT = 200;

interface Props {
  view: Pick<SnapshotView, 'messages'>;
  /** How many of the last messages belong to the snapshot's turn. Default: unknown. */
  added?: number;
}

/** The conversation until the end of the turn, scrolled to its end. */
export function Conversation({ view: { messages }, added }: Props) {
  const turns = useMemo(() => readableTurns(messages), [messages]);
  const [end, setEnd] = useState<number>();
  const box = useRef<HTMLDivElement>(null);
  const last = Math.min(end ?? turns.length, turns.length);
  const first = last - countFitting(turns.slice(Math.max(0, last - SHOWN), last).toReversed());
  // Another snapshot is shown from its end.
  useEffect(() => {
    setEnd(undefined);
    const panel = box.current?.closest('.tab-panel');
    panel?.scrollTo(0, panel.scrollHeight);
  }, [messages]);
  if (turns.length === 0) return <p className="empty">No messages yet.</p>;
  // Without a count, the last turn is marked.
  const begins = added === undefined ? turns.at(-1)!.from : messages.length - added;
  return (
    <div className="conversation" ref={box}>
      {first > 0 && (
        <button type="button" className="quiet" onClick={() => setEnd(first)}>
          {counted(first, 'earlier turn')}
        </button>
      )}
      {turns.slice(first, last).map((turn) => (
        <TurnText key={turn.from} turn={turn} isAdded={turn.to > begins} />
      ))}
      {last < turns.length && (
        <button type="button" className="quiet" onClick={() => setEnd(last + countFitting(turns.slice(last)))}>
          {counted(turns.length - last, 'later turn')}
        </button>
      )}
    </div>
  );
}

/** Messages without a conversation, for example those of a memory's source. */
export function Messages({ messages, offset = 0 }: { messages: readonly MessageData[]; offset?: number }) {
  const turns = useMemo(() => readableTurns(messages, offset), [messages, offset]);
  const [shown, setShown] = useState(() => countFitting(turns));
  return (
    <div className="conversation">
      {turns.slice(0, shown).map((turn) => (
        <TurnText key={turn.from} turn={turn} />
      ))}
      {turns.length > shown && (
        <button type="button" className="quiet" onClick={() => setShown(shown + countFitting(turns.slice(shown)))}>
          {counted(turns.length - shown, 'more turn')}
        </button>
      )}
    </div>
  );
}

const TurnText = memo(function TurnText({ turn, isAdded = false }: { turn: ReadableTurn; isAdded?: boolean }) {
  const { asked, steps, others, from } = turn;
  const [isWhole, setIsWhole] = useState(false);
  const isCut = !isWhole && (steps.length > MOST_STEPS || asked.length > MOST_TEXT || lengthOf(steps) > MOST_TEXT);
  const shown = isCut ? firstOf(steps) : steps;
  return (
    <article className="turn" data-added={isAdded} data-from={from}>
      {asked && <p className="asked">{isCut ? asked.slice(0, MOST_TEXT) : asked}</p>}
      <Steps steps={shown} />
      {others.length > 0 && (
        <Folded className="tool" summary={`Also: ${[...new Set(others.map(({ name }) => name))].join(', ')}`}>
          {() => <Json value={others.map(({ part }) => part)} />}
        </Folded>
      )}
      {isCut && (
        <button type="button" className="quiet" onClick={() => setIsWhole(true)}>
          Show all of this turn
        </button>
      )}
    </article>
  );
});

/** How many of the turns, from the first on, are shown at once: at least one. */
function countFitting(turns: readonly ReadableTurn[]): number {
  let length = 0;
  const over = turns.findIndex(({ asked, steps }, index) => {
    length += asked.length + lengthOf(steps);
    return index === SHOWN || (index > 0 && length > MOST_TEXT);
  });
  return over === -1 ? turns.length : over;
}

function lengthOf(steps: readonly Step[]): number {
  return steps.reduce((length, step) => length + (step.kind === 'text' ? step.text.length : TOOL_TEXT), 0);
}

/** The steps of a cut turn. */
function firstOf(steps: readonly Step[]): readonly Step[] {
  let room = MOST_TEXT;
  return steps.slice(0, MOST_STEPS).flatMap((step): Step[] => {
    const text = step.kind === 'text' ? step.text.slice(0, Math.max(0, room)) : '';
    room -= lengthOf([step]);
    if (step.kind === 'tool') return [step];
    return text === '' ? [] : [{ ...step, text }];
  });
}
