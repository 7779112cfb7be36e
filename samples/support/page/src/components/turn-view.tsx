import type { Turn } from '../turns.ts';
import { Reply } from './reply.tsx';
import { ToolCall } from './tool-call.tsx';

interface Props {
  turn: Turn;
  /** 1 for the first of the conversation. */
  number: number;
  running?: boolean;
  /** How many turns go on from this one. */
  ways?: number;
  /** Absent for the turn that is shown last. */
  onGoBack?: () => void;
}

/** A message of the customer, and what the agent did and said about it. */
export function TurnView({ turn, number, running = false, ways = 0, onGoBack }: Props) {
  return (
    <article className="turn" aria-label={`Turn ${number}`}>
      <p className="asked">{turn.asked}</p>
      <div className="answer">
        {turn.steps.map((step, index) =>
          step.kind === 'tool' ? <ToolCall key={index} step={step} /> : <Reply key={index} text={step.text} />,
        )}
        {running && <span className="caret" aria-label="The agent is answering" />}
      </div>
      <footer>
        {onGoBack && (
          <button type="button" className="back" aria-label={`Go back to turn ${number}`} onClick={onGoBack}>
            ↩ Go back here
          </button>
        )}
        {ways > 1 && <span className="ways">{ways} branches from here</span>}
      </footer>
    </article>
  );
}
