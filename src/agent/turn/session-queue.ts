import type { AgentInit } from 'genkit/beta';
import type { AgentDefinition } from '../agent-definition.ts';
import type { AbortScope } from './abort-scope.ts';

/** Whether the call waits for the session's earlier turns in this process, including those in the background. */
export function isQueued<State>(
  { onConflict }: AgentDefinition<State>,
  init: AgentInit,
): init is AgentInit & { sessionId: string } {
  return onConflict === 'queue' && init.sessionId !== undefined && init.snapshotId === undefined;
}

/**
 * Waits until the session's earlier turns have ended. An abort ends the wait.
 *
 * @returns A function that lets the next call begin.
 */
export async function turnOfSession<State>(
  { turns }: AgentDefinition<State>,
  sessionId: string,
  scope: AbortScope,
): Promise<() => void> {
  let letNext: () => void = () => {};
  const isTurn = new Promise<void>((begin) => {
    void turns.run(sessionId, async () => {
      if (scope.aborted) return;
      const isOver = new Promise<void>((resolve) => (letNext = resolve));
      begin();
      await isOver;
    });
  });
  try {
    await scope.race(() => isTurn);
    return letNext;
  } catch (error) {
    letNext();
    throw error;
  }
}
