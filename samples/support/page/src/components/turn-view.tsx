import { useEffect, useRef } from 'react';
import type { MessageData } from 'genkitx-agents/client';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { replyOf, type Turn } from '../../../../../ui/logic/turns.ts';
import { CopyButton } from '../../../../../ui/components/copy-button.tsx';
import { EditText } from '../../../../../ui/components/edit-text.tsx';
import { Steps } from '../../../../../ui/components/steps.tsx';
import { ReportCard } from './report-card.tsx';
import { SeenContext } from './seen-context.tsx';
import { TurnFacts } from './turn-facts.tsx';

interface Props {
  turn: Turn;
  /** 1 for the first of the conversation. */
  number: number;
  /** The saved turn. Optional: missing while the turn runs. */
  snapshot?: SnapshotNode;
  /** The messages of the whole conversation. */
  messages: readonly MessageData[];
  isStreaming: boolean;
  /** The number of turns that continue from this one. */
  ways: number;
  /** Optional: missing for the last shown turn. */
  onGoBack?: () => void;
  isEditing: boolean;
  onEditing: (isEditing: boolean) => void;
  /** Replaces or repeats this turn, on a new branch. */
  onReplace?: (text: string) => void;
}

/** A message of the customer, the agent's steps and reply, and the buttons of the turn. */
export function TurnView(props: Props) {
  const { turn, number, snapshot, messages, isStreaming, ways, onGoBack, isEditing, onEditing, onReplace } = props;
  const edit = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    // After editing, moves the focus back to the button.
    if (wasEditing.current && !isEditing) edit.current?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  const close = () => onEditing(false);
  const reply = replyOf(turn);

  return (
    <article className="turn" aria-label={`Turn ${number}`}>
      {isEditing && onReplace ? (
        <EditText
          label="Edited message"
          text={turn.asked}
          action="Send as a branch"
          onCancel={close}
          onDone={(text) => {
            wasEditing.current = false;
            close();
            onReplace(text);
          }}
        />
      ) : (
        <div className="question">
          {onReplace && (
            <button
              type="button"
              ref={edit}
              className="quiet"
              aria-label="Edit message"
              onClick={() => onEditing(true)}
            >
              Edit
            </button>
          )}
          <p className="asked">{turn.asked}</p>
        </div>
      )}
      <div className="answer">
        <Steps steps={turn.steps} isStreaming={isStreaming} />
        {turn.steps.map((step, index) => {
          const reportId = step.kind === 'tool' && step.name === 'startReport' ? reportIdIn(step.output) : undefined;
          return reportId && <ReportCard key={index} reportId={reportId} />;
        })}
        {isStreaming && <span className="caret" role="img" aria-label="The agent is answering" />}
      </div>
      <footer>
        {snapshot && <TurnFacts snapshot={snapshot} />}
        {snapshot && reply !== '' && <CopyButton text={reply} label="Copy reply" />}
        {onReplace && (
          <button type="button" className="quiet" onClick={() => onReplace(turn.asked)}>
            Regenerate
          </button>
        )}
        {onGoBack && (
          <button type="button" className="quiet" aria-label={`Go back to turn ${number}`} onClick={onGoBack}>
            ↩ Go back here
          </button>
        )}
        {ways > 1 && <span className="ways">{ways} branches from here</span>}
      </footer>
      <div className="seen-line">
        {snapshot && <SeenContext key={snapshot.snapshotId} snapshotId={snapshot.snapshotId} messages={messages} />}
      </div>
    </article>
  );
}

function reportIdIn(output: unknown): string | undefined {
  return (output as { reportId?: string } | undefined)?.reportId;
}
