import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import type { AgentInput } from 'genkitx-agents/client';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { listSnapshots, sentenceFor, support } from '../logic/api.ts';
import { EMPTY, withRead, type ConversationState } from '../logic/conversation-state.ts';
import { newSessionId, type Place } from '../logic/place.ts';
import { messageInput, savedMeanwhile, type RunningTurn } from '../logic/running-turn.ts';
import type { RunningTurns } from '../logic/running-turns.ts';
import { byTurn, childrenOf, isGood, pathTo } from '../logic/tree.ts';
import type { Go } from './use-place.ts';

export interface Conversation extends ConversationState {
  /** From the conversation's first snapshot to the one that is shown. */
  path: SnapshotNode[];
  /** The turn that goes on from what is shown, or failed to. */
  running?: RunningTurn;
  /** A turn of this conversation runs, whatever of it is shown. */
  busy: boolean;
  /** Sends a message from the point that is shown. */
  send: (text: string) => void;
  /** Answers the questions that wait. */
  answer: (resume: AgentInput['resume']) => void;
  /** Says something else, or the same again, in place of a turn: a branch. */
  replace: (turn: number, text: string) => void;
  /** Runs a turn again that was stopped or failed. */
  retry: () => void;
  stop: () => void;
  /** Gives up a turn that failed. */
  dismiss: () => void;
}

export interface ConversationOptions {
  place: Place;
  go: Go;
  turns: RunningTurns;
  /** The conversation is read again when this changes. */
  version: string;
}

/** The conversation at `place`, and what can be done in it. */
export function useConversation({ place, go, turns, version }: ConversationOptions): Conversation {
  const { sessionId, snapshotId } = place;
  const ofSession = useSyncExternalStore(turns.subscribe, () => turns.get(sessionId));
  const state = useRead(place, ofSession, version);
  const { nodes, shown, wentOnTo } = state;
  const path = useMemo(() => pathTo(nodes, shown?.snapshotId), [nodes, shown]);
  const isShown = shown === undefined || shown.snapshotId === ofSession?.parentId;
  const running = isShown ? ofSession : undefined;

  useEffect(() => {
    if (!sessionId || !ofSession || ofSession.phase === 'running') return;
    const savedAs = ofSession.savedAs ?? savedMeanwhile(nodes, ofSession)?.snapshotId;
    if (savedAs === undefined) return;
    // A fast turn is saved before the place that it begins at is read: then nothing of it was shown yet.
    const isWanted = running !== undefined || snapshotId === ofSession.parentId;
    // It is shown as it streamed until its snapshot is there.
    if (!isWanted) turns.dismiss(sessionId);
    else if (savedAs !== snapshotId) go({ sessionId, snapshotId: savedAs, follows: true });
  }, [sessionId, snapshotId, ofSession, running, nodes, go, turns]);

  useEffect(() => {
    if (wentOnTo !== undefined && !ofSession) go({ sessionId, snapshotId: wentOnTo, follows: true }, 'replace');
  }, [sessionId, wentOnTo, ofSession, go]);

  /** Runs a turn that goes on from a snapshot, and shows it there. */
  const run = useCallback(
    (parentId: string | undefined, input: AgentInput, asked?: string) => {
      // A conversation without the snapshot in which nothing was said can't be begun anew: another is.
      const id = sessionId !== undefined && (parentId !== undefined || nodes.length === 0) ? sessionId : newSessionId();
      const known = childrenOf(nodes, parentId).map((node) => node.snapshotId);
      void turns.start({ sessionId: id, parentId, asked, input, known });
      const isNamed = id === sessionId && snapshotId === undefined;
      if (id !== sessionId || parentId !== snapshotId) {
        go({ sessionId: id, snapshotId: parentId }, isNamed ? 'replace' : 'push');
      }
    },
    [sessionId, snapshotId, nodes, turns, go],
  );

  const send = useCallback(
    (text: string) => run(path.findLast(isGood)?.snapshotId, messageInput(text), text),
    [path, run],
  );
  const answer = useCallback((resume: AgentInput['resume']) => run(shown?.snapshotId, { resume }), [shown, run]);
  const replace = useCallback(
    (turn: number, text: string) => run(byTurn(path).get(turn)?.first.parentId, messageInput(text), text),
    [path, run],
  );
  const retry = useCallback(() => {
    if (running) run(running.parentId, running.input, running.asked);
    else if (shown?.status === 'aborted') run(shown.snapshotId, {});
    else if (shown) replace(path.at(-1)?.preview.turn ?? 0, path.at(-1)?.preview.asked ?? '');
  }, [running, shown, path, run, replace]);
  const stop = useCallback(() => void turns.stop(sessionId ?? ''), [turns, sessionId]);
  const dismiss = useCallback(() => turns.dismiss(sessionId ?? ''), [turns, sessionId]);

  const busy = ofSession?.phase === 'running';
  return { ...state, path, running, busy, send, answer, replace, retry, stop, dismiss };
}

/** Reads the conversation, again whenever it may have changed. */
function useRead(
  { sessionId, snapshotId, follows }: Place,
  turn: RunningTurn | undefined,
  version: string,
): ConversationState {
  const [state, setState] = useState({ ...EMPTY, sessionId });
  const parentId = turn?.parentId;
  const phase = turn?.phase;
  useEffect(() => {
    let current = true;
    const wanted = snapshotId ?? parentId;
    const show = async () => {
      const fresh = await read(sessionId, wanted, phase !== undefined);
      if (!current) return;
      setState((before) => {
        const known = before.sessionId === sessionId ? before : EMPTY;
        // What was read before stays while the server is away.
        return { ...('nodes' in fresh ? withRead(known, fresh, follows) : { ...known, ...fresh }), sessionId };
      });
    };
    void show();
    return () => {
      current = false;
    };
  }, [sessionId, snapshotId, follows, parentId, phase, version]);
  // What was read of another conversation is not shown for a moment.
  return state.sessionId === sessionId ? state : EMPTY;
}

/** Never rejects: what goes wrong is part of what is shown. */
async function read(
  sessionId: string | undefined,
  snapshotId: string | undefined,
  isBeginning: boolean,
): Promise<ConversationState | { problem: string }> {
  if (sessionId === undefined) return EMPTY;
  try {
    const nodes = await listSnapshots(sessionId);
    const wanted = nodes.find((node) => node.snapshotId === snapshotId) ?? nodes.findLast(isGood) ?? nodes.at(-1);
    if (wanted) return { nodes, shown: await support.getSnapshot({ snapshotId: wanted.snapshotId }) };
    return { nodes, ...(!isBeginning && { problem: 'There is no such conversation any more.' }) };
  } catch (error) {
    return { problem: sentenceFor(error) };
  }
}
