import { memo, useEffect, useMemo, useRef, useState } from 'react';
import type { MessageData, SnapshotView } from '../../../../src/inspector/api.ts';
import { Folded } from '../../../components/folded.tsx';
import { Json } from '../../../components/json.tsx';
import { Steps } from '../../../components/steps.tsx';
import { readableTurns, type ReadableTurn } from '../logic/readable.ts';
import { counted } from '../logic/words.ts';

/** Turns that are in the page at once. */
const SHOWN = 8;
/** A turn with more steps, or longer text, is cut until it is opened. */
const MOST_STEPS = 12;
const LONG = 6000;

interface Props {
  view: Pick<SnapshotView, 'messages'>;
  /** So many last messages belong to the turn of the snapshot. */
  added?: number;
}

/** The conversation until the end of the turn, from its end. */
export function Conversation({ view: { messages }, added }: Props) {
  const turns = useMemo(() => readableTurns(messages), [messages]);
  const [end, setEnd] = useState<number>();
  const box = useRef<HTMLDivElement>(null);
  const last = Math.min(end ?? turns.length, turns.length);
  const first = Math.max(0, last - SHOWN);
  // Another snapshot is shown from its end.
  useEffect(() => {
    setEnd(undefined);
    const panel = box.current?.closest('.tab-panel');
    panel?.scrollTo(0, panel.scrollHeight);
  }, [messages]);
  if (turns.length === 0) return <p className="empty">Nothing was said yet.</p>;
  // Without a count it is what was said last.
  const begins = added === undefined ? turns.at(-1)!.from : messages.length - added;
  return (
    <div className="conversation" ref={box}>
      {first > 0 && (
        <button type="button" className="quiet" onClick={() => setEnd(Math.max(SHOWN, last - SHOWN + 1))}>
          {counted(first, 'earlier turn')}
        </button>
      )}
      {turns.slice(first, last).map((turn) => (
        <TurnText key={turn.from} turn={turn} isAdded={turn.to > begins} />
      ))}
      {last < turns.length && (
        <button type="button" className="quiet" onClick={() => setEnd(last + SHOWN - 1)}>
          {counted(turns.length - last, 'later turn')}
        </button>
      )}
    </div>
  );
}

/** Messages on their own, say those that a memory comes from. */
export function Messages({ messages, offset = 0 }: { messages: readonly MessageData[]; offset?: number }) {
  const turns = useMemo(() => readableTurns(messages, offset), [messages, offset]);
  const [shown, setShown] = useState(SHOWN);
  return (
    <div className="conversation">
      {turns.slice(0, shown).map((turn) => (
        <TurnText key={turn.from} turn={turn} />
      ))}
      {turns.length > shown && (
        <button type="button" className="quiet" onClick={() => setShown(shown + SHOWN)}>
          {counted(turns.length - shown, 'more turn')}
        </button>
      )}
    </div>
  );
}

const TurnText = memo(function TurnText({ turn, isAdded = false }: { turn: ReadableTurn; isAdded?: boolean }) {
  const { asked, steps, others, from } = turn;
  const [isWhole, setIsWhole] = useState(false);
  const isCut =
    !isWhole && (steps.length > MOST_STEPS || steps.some((step) => step.kind === 'text' && step.text.length > LONG));
  const shown = isCut
    ? steps
        .slice(0, MOST_STEPS)
        .map((step) => (step.kind === 'text' ? { ...step, text: step.text.slice(0, LONG) } : step))
    : steps;
  return (
    <article className="turn" data-added={isAdded} data-from={from}>
      {asked && <p className="asked">{isWhole ? asked : asked.slice(0, LONG)}</p>}
      <Steps steps={shown} />
      {others.length > 0 && (
        <Folded className="tool" summary={`Also: ${[...new Set(others.map(({ name }) => name))].join(', ')}`}>
          {() => <Json value={others.map(({ part }) => part)} />}
        </Folded>
      )}
      {(isCut || (!isWhole && asked.length > LONG)) && (
        <button type="button" className="quiet" onClick={() => setIsWhole(true)}>
          Show all of this turn
        </button>
      )}
    </article>
  );
});
