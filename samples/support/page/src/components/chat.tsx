import { useState } from 'react';
import { useFollowBottom } from '../hooks/use-follow-bottom.ts';
import type { Conversation } from '../hooks/use-conversation.ts';
import { sentenceFor } from '../logic/api.ts';
import { turnsWith } from '../logic/running-turn.ts';
import { byTurn, childrenOf, turnTree } from '../logic/tree.ts';
import { Approvals } from './approvals.tsx';
import { Composer, focusComposer } from './composer.tsx';
import { Problem } from './problem.tsx';
import { TurnView } from './turn-view.tsx';
import { Welcome } from './welcome.tsx';

interface Props {
  conversation: Conversation;
  /** The user went back to the turn that is shown last. */
  wentBack: boolean;
  online: boolean;
  /** Shows the conversation as it was at a snapshot. */
  onGoTo: (snapshotId: string) => void;
}

export function Chat({ conversation, wentBack, online, onGoTo }: Props) {
  const { shown, path, nodes, running, busy, problem, send, answer, replace, retry, stop, dismiss } = conversation;
  const [editing, setEditing] = useState<number>();
  const messages = shown?.state?.messages ?? [];
  const turns = turnsWith(messages, running);
  const isBeginning = running?.parts.length === 0;
  const log = useFollowBottom(`${shown?.snapshotId} ${running?.parts.length} ${running?.phase}`, isBeginning);
  const snapshots = byTurn(path);
  const drawn = turnTree(nodes, shown?.snapshotId);
  const isLatest = childrenOf(nodes, shown?.snapshotId).length === 0;
  const questions = running || !isLatest ? [] : (shown?.interrupts ?? []);
  const isStreaming = running?.phase === 'running';
  /** What was pressed goes away: the focus goes to where one goes on. */
  const thenFocus =
    <Args extends unknown[]>(work: (...args: Args) => void) =>
    (...args: Args) => {
      work(...args);
      focusComposer();
    };
  const again = online ? thenFocus(retry) : undefined;

  return (
    <main className="chat">
      <div className="log" role="log" aria-label="Conversation" aria-busy={isStreaming} tabIndex={0} ref={log}>
        {turns.length === 0 && <Welcome onPick={thenFocus(send)} />}
        {turns.map((turn, index) => {
          const number = index + 1;
          const isLast = number === turns.length;
          const isRunning = isLast && running !== undefined && running.asked !== undefined;
          const places = isRunning ? undefined : snapshots.get(number);
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
              onReplace={busy || !online || !places ? undefined : thenFocus((text: string) => replace(number, text))}
            />
          );
        })}
        {questions.length > 0 && <Approvals key={shown?.snapshotId} questions={questions} onAnswer={answer} />}
        {!running && shown?.status === 'aborted' && isLatest && (
          <p className="notice stopped" role="status">
            This reply was stopped.
            {again && (
              <button type="button" onClick={again}>
                Retry
              </button>
            )}
          </p>
        )}
        {!running && shown?.status === 'failed' && (
          <Problem problem={{ text: shown.error ? sentenceFor(shown.error) : 'This turn failed.' }} onRetry={again} />
        )}
        {running?.problem && <Problem problem={running.problem} onRetry={again} onDismiss={thenFocus(dismiss)} />}
      </div>
      <div className="foot">
        {problem && online && <Problem problem={{ text: problem }} />}
        {wentBack && !isLatest && !running && (
          <p className="hint" role="status">
            You went back to turn {turns.length}. Your next message starts a new branch; the other stays.
          </p>
        )}
        {questions.length > 0 && <p className="hint">Approve or reject first, then go on.</p>}
        <Composer
          isStreaming={isStreaming}
          canSend={online && !busy && questions.length === 0}
          onSend={send}
          onStop={stop}
        />
      </div>
    </main>
  );
}
