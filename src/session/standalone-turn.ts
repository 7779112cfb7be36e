import type { AgentFinishReason } from 'genkit/beta';
import { GenkitError } from 'genkit';
import { safeSentence } from '../error-status.ts';
import { reserveSnapshotId } from '../snapshot/ids.ts';
import type { Session } from './session.ts';
import type { RunTurn, RuntimeError, SessionRunnerOptions } from './turn.ts';

/**
 * Runs the turns of a runner without an agent, as tests of handlers do: one snapshot per turn if there is a store. It has no input checks, no
 * retries, no conflict detection and no chunks, which an agent adds.
 */
export function standaloneTurn<State, User, App>(
  session: Session<State, User, App>,
  { store, lastSnapshot, abortSignal }: SessionRunnerOptions<State>,
): RunTurn {
  let parentId = lastSnapshot?.snapshotId;
  const save = async (
    snapshotId: string,
    ending: { status: 'completed' | 'failed'; finishReason?: AgentFinishReason; error?: RuntimeError },
  ): Promise<{ snapshotId?: string }> => {
    if (!store) return {};
    const { sessionId } = session;
    const createdAt = new Date().toISOString();
    const head = { sessionId, createdAt, updatedAt: createdAt, ...(parentId !== undefined && { parentId }) };
    await store.saveSnapshot(snapshotId, () => ({ ...head, ...ending, snapshotId, state: session.getState() }));
    return { snapshotId };
  };
  return async (input, handler, turnIndex) => {
    if (input.message) session.addMessages([input.message]);
    const snapshotId = reserveSnapshotId();
    const context = { snapshotId, turnIndex, ...(parentId !== undefined && { parentSnapshotId: parentId }) };
    try {
      const result = await handler(input, context);
      const why = result?.finishReason && { finishReason: result.finishReason };
      const saved = await save(snapshotId, { status: 'completed', ...why });
      parentId = saved.snapshotId ?? parentId;
      return { status: 'completed', ...saved, ...why };
    } catch (thrown) {
      if (abortSignal?.aborted) return { status: 'aborted' };
      const error = errorOf(thrown);
      const stored = { status: error.status, message: safeSentence(error.status) };
      const saved = await save(snapshotId, { status: 'failed', finishReason: 'failed', error: stored }).catch(
        () => ({}),
      );
      return { status: 'failed', error, ...saved };
    }
  };
}

function errorOf(thrown: unknown): RuntimeError {
  if (thrown instanceof GenkitError) return { status: thrown.status, message: thrown.originalMessage };
  return { status: 'INTERNAL', message: thrown instanceof Error ? thrown.message : String(thrown) };
}
