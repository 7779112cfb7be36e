import { useCallback, useEffect, useMemo, useReducer, useRef } from 'react';
import type { SnapshotNode } from '../../server/api-types.ts';
import { agent, listSnapshots, sentenceFor } from './api.ts';
import { EMPTY, reduce, type ConversationEvent, type ConversationState } from './conversation-state.ts';
import type { Place } from './place.ts';
import { continueFrom, pathTo } from './tree.ts';

export interface Conversation extends ConversationState {
  /** From the conversation's first snapshot to the one that is shown. */
  path: SnapshotNode[];
  /** Sends a message from the point that is shown; answers whether it was accepted. */
  send: (text: string) => Promise<boolean>;
  /** Ends the reply that is being streamed. */
  stop: () => void;
  dismissProblem: () => void;
}

/**
 * The conversation at `place`.
 *
 * @param connection It is read again when this changes.
 */
export function useConversation(place: Place, go: (place: Place) => void, connection: number): Conversation {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  const abort = useRef<AbortController>(undefined);
  const { sessionId, snapshotId } = place;

  const read = useRef<string>(undefined);
  useEffect(() => {
    let current = true;
    const name = `${sessionId} ${snapshotId}`;
    const isAgain = read.current === name;
    read.current = name;
    const show = (event: LoadEvent): void => {
      if (current) dispatch(event.type === 'loaded' ? { ...event, isAgain } : event);
    };
    void load({ sessionId, snapshotId }).then(show);
    return () => {
      current = false;
    };
  }, [sessionId, snapshotId, connection]);

  // Going elsewhere ends the reply that is being streamed.
  const here = useRef(place);
  useEffect(() => {
    here.current = place;
    return () => abort.current?.abort();
  }, [place]);

  const path = useMemo(() => pathTo(state.nodes, state.shown?.snapshotId), [state.nodes, state.shown]);

  const send = useCallback(
    async (text: string) => {
      abort.current = new AbortController();
      const isHere = () => here.current === place;
      dispatch({ type: 'asked', text });
      try {
        const chat = agent.chat({ sessionId, snapshotId: continueFrom(path)?.snapshotId });
        const turn = chat.sendStream(text, { abortSignal: abort.current.signal });
        for await (const { raw, custom } of turn.stream) dispatch({ type: 'chunk', chunk: raw, custom });
        const saved = await turn.response;
        if (saved.finishReason === 'aborted') throw new Error('You stopped the reply.');
        dispatch({ type: 'saved', snapshotId: saved.snapshotId });
        if (isHere()) go({ sessionId: saved.sessionId ?? sessionId, snapshotId: saved.snapshotId });
        return true;
      } catch (error) {
        const problem = isHere() ? sentenceFor(error) : undefined;
        dispatch({ type: 'failed', problem, isOfTurn: true });
        // The server keeps a turn that failed, for whoever wants to look at it.
        const now = await load(place);
        if (now.type === 'loaded' && isHere()) dispatch({ ...now, isAgain: true });
        return false;
      }
    },
    [place, sessionId, path, go],
  );

  const stop = useCallback(() => abort.current?.abort(), []);
  const dismissProblem = useCallback(() => dispatch({ type: 'dismissed' }), []);
  return { ...state, path, send, stop, dismissProblem };
}

type LoadEvent = Extract<ConversationEvent, { type: 'loaded' | 'failed' }>;

/** Never rejects: what goes wrong is part of what is shown. */
async function load({ sessionId, snapshotId }: Place): Promise<LoadEvent> {
  if (!sessionId) return { type: 'loaded', nodes: [] };
  try {
    const nodes = await listSnapshots(sessionId);
    const wanted = nodes.find((node) => node.snapshotId === snapshotId) ?? nodes.at(-1);
    if (!wanted) return { type: 'loaded', nodes, problem: 'There is no such conversation any more.' };
    const shown = await agent.getSnapshot({ snapshotId: wanted.snapshotId });
    return { type: 'loaded', nodes, shown };
  } catch (error) {
    return { type: 'failed', problem: sentenceFor(error) };
  }
}
