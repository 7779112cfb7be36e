import { useState } from 'react';
import { useFollowBottom } from '../hooks/use-follow-bottom.ts';
import type { Conversation } from '../hooks/use-conversation.ts';
import { problemOf, sentenceFor } from '../../../../../ui/logic/problem.ts';
import { turnsOf } from '../../../../../ui/logic/turns.ts';
import { byTurn, childrenOf, turnTree } from '../logic/tree.ts';
import { Approvals } from './approvals.tsx';
import { Composer, focusComposer } from './composer.tsx';
import { Problem } from '../../../../../ui/components/problem.tsx';
import { TurnView } from './turn-view.tsx';
import { Welcome } from './welcome.tsx';

interface Props {
  conversation: Conversation;
  /** Whether the user went back to the last shown turn. */
  wentBack: boolean;
  online: boolean;
  /** Shows the conversation at a snapshot. */
  onGoTo: (snapshotId: string) => void;
}

export function Chat({ conversation, wentBack, online, onGoTo }: Props) {
  const { messages, status, isBusy, isStopped, snapshotId, path, tree, interrupts, error, isMissing } = conversation;
  const { send, respond, editAndBranch, retry, stop, dismiss } = conversation;
  const [editing, setEditing] = useState<number>();
  const turns = turnsOf(messages);
  const isStreaming = status === 'submitted' || status === 'streaming';
  const size = JSON.stringify(messages.at(-1))?.length;
  const log = useFollowBottom(`${snapshotId} ${messages.length} ${size} ${status}`, status === 'submitted');
  const snapshots = byTurn(path);
  const drawn = turnTree(tree, snapshotId);
  const isLatest = childrenOf(tree, snapshotId).length === 0;
  const problem = isMissing ? 'This conversation no longer exists.' : error && sentenceFor(error);
  /** The pressed button disappears, so the focus moves to the next input. */
  const thenFocus =
    <Args extends unknown[]>(work: (...args: Args) => void) =>
    (...args: Args) => {
      work(...args);
      focusComposer();
    };
  const again = online ? thenFocus(() => void retry()) : undefined;
  const hasFailed = status === 'error' && error !== undefined && messages.length > 0;

  return (
    <main className="chat">
      <div className="log" role="log" aria-label="Conversation" aria-busy={isStreaming} tabIndex={0} ref={log}>
        {turns.length === 0 && <Welcome onPick={thenFocus((text: string) => void send(text))} />}
        {turns.map((turn, index) => {
          const number = index + 1;
          const isLast = number === turns.length;
          const places = snapshots.get(number);
          return (
            <TurnView
              key={number}
              turn={turn}
              number={number}
              snapshot={places?.last}
              messages={messages}
              isStreaming={isLast && isStreaming}
              ways={childrenOf(drawn, places?.last.snapshotId).length}
              onGoBack={isLast || !places ? undefined : thenFocus(() => onGoTo(places.last.snapshotId))}
              isEditing={editing === number}
              onEditing={(is) => setEditing(is ? number : undefined)}
              onReplace={
                isBusy || !online || !places
                  ? undefined
                  : thenFocus((text: string) => void editAndBranch(turn.index, text))
              }
            />
          );
        })}
        {interrupts.length > 0 && (
          <Approvals key={snapshotId} questions={interrupts} onAnswer={(answers) => void respond(answers)} />
        )}
        {isStopped && (
          <p className="notice stopped" role="status">
            This reply was stopped.
            {again && (
              <button type="button" onClick={again}>
                Retry
              </button>
            )}
          </p>
        )}
        {hasFailed && (
          <Problem
            problem={error.status === 'UNAVAILABLE' ? LOST : problemOf(error)}
            onRetry={again}
            onDismiss={thenFocus(dismiss)}
          />
        )}
      </div>
      <div className="foot">
        {problem && !hasFailed && online && <Problem problem={{ text: problem }} />}
        {wentBack && !isLatest && !isStreaming && (
          <p className="hint" role="status">
            You went back to turn {turns.length}. Your next message starts a new branch; the old one stays.
          </p>
        )}
        {interrupts.length > 0 && <p className="hint">Approve or reject first, then continue.</p>}
        <Composer
          isStreaming={isStreaming}
          canSend={online && !isBusy && interrupts.length === 0}
          onSend={(text) => void send(text)}
          onStop={() => void stop()}
        />
      </div>
    </main>
  );
}

const LOST = { text: 'The server ended in the middle of this reply.' };
