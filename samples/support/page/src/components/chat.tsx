import { sentenceFor } from '../api.ts';
import { countChildren } from '../tree.ts';
import { turnsOf } from '../turns.ts';
import type { Conversation } from '../use-conversation.ts';
import { useFollowBottom } from '../use-follow-bottom.ts';
import { Composer } from './composer.tsx';
import { Problem } from './problem.tsx';
import { TurnView } from './turn-view.tsx';
import { Welcome } from './welcome.tsx';

interface Props {
  conversation: Conversation;
  online: boolean;
  /** Shows the conversation as it was at a snapshot. */
  onGoBack: (snapshotId: string) => void;
}

export function Chat({ conversation, online, onGoBack }: Props) {
  const { shown, live, path, nodes, problem, send, stop, dismissProblem } = conversation;
  const turns = turnsOf(shown?.state?.messages ?? []);
  const log = useFollowBottom(`${shown?.snapshotId} ${JSON.stringify(live?.turn)}`);
  // One snapshot a turn; those of the first turns are missing when they were pruned.
  const pruned = path[0]?.parentId === undefined ? 0 : turns.length - path.length;
  const snapshotOf = (turn: number) => path[turn - pruned];
  const branching = shown !== undefined && countChildren(nodes, shown.snapshotId) > 0;

  return (
    <main className="chat">
      <div className="log" role="log" aria-label="Conversation" aria-busy={live !== undefined} tabIndex={0} ref={log}>
        {turns.length === 0 && !live && <Welcome onPick={(text) => void send(text)} />}
        {turns.map((turn, index) => (
          <TurnView
            key={snapshotOf(index)?.snapshotId ?? index}
            turn={turn}
            number={index + 1}
            ways={countChildren(nodes, snapshotOf(index)?.snapshotId ?? '')}
            onGoBack={backTo(snapshotOf(index)?.snapshotId)}
          />
        ))}
        {live && <TurnView turn={live.turn} number={turns.length + 1} running />}
      </div>
      <div className="foot">
        {problem && <Problem text={problem} onDismiss={dismissProblem} />}
        {shown?.error && !problem && (
          <Problem text={`${sentenceFor(shown.error)} Your next message goes on from the turn before.`} />
        )}
        {branching && !live && (
          <p className="hint" role="status">
            You went back to turn {turns.length}. Your next message starts a new branch; the other stays.
          </p>
        )}
        <Composer running={live !== undefined} online={online} onSend={send} onStop={stop} />
      </div>
    </main>
  );

  function backTo(snapshotId: string | undefined): (() => void) | undefined {
    if (live || !snapshotId || snapshotId === shown?.snapshotId) return undefined;
    return () => onGoBack(snapshotId);
  }
}
