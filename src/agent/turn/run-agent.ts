import { getAsyncContext } from '@genkit-ai/core';
import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { AgentInitError, failedPrecondition, quote } from '../../errors.ts';
import { CURRENT_SESSION, type Session } from '../../session/session.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { keepPrefetched, prefetch } from '../generate/prefetch.ts';
import { assertInitFits, openSession } from '../open/open-session.ts';
import { toRuntimeError } from '../runtime-error.ts';
import type { AgentFn } from '../types.ts';
import { Aborted, AbortScope } from '../abort-scope.ts';
import { unopenedOutput } from './agent-output.ts';
import { Intake } from '../intake.ts';
import { runFunction, settingOf } from './run-function.ts';

/** One call of an agent, as the action receives it. */
export interface AgentCall {
  init: AgentInit;
  inputs: AsyncIterable<AgentInput>;
  sendChunk: (chunk: AgentStreamChunk) => void;
  abortSignal: AbortSignal;
  context: ActionContext | undefined;
}

/**
 * Runs one call of an agent: opens the session, runs the agent's function on it, and returns the output. Most calls have one turn; a caller
 * in this process may keep the stream open for more.
 *
 * @throws AgentInitError for a call that does not fit the agent; all other failures are reported by the output.
 */
export async function runAgent<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  call: AgentCall,
): Promise<AgentOutput> {
  assertInitFits(agent, call.init);
  const scope = new AbortScope(call.abortSignal);
  // A caller that detaches may disconnect at once.
  const intake = new Intake(call.inputs, () => scope.release());
  const { init, context, sendChunk } = call;
  // Waits for the session's earlier turns in this process, including those in the background.
  const queue = agent.onConflict === 'queue' && init.snapshotId === undefined ? init.sessionId : undefined;
  let letNext: (() => void) | undefined;
  let work: Promise<AgentOutput> | undefined;
  let queued: object | undefined;
  try {
    if (queue !== undefined) letNext = await turnOfSession(agent, queue, scope);
    const reads = prefetch(agent, { init, intake, context, abortSignal: scope.signal });
    const opened = await scope.race(() => openSession(agent, init, context));
    if (queue !== undefined) queuedIn.set((queued = opened.session), agent.turns);
    keepPrefetched(opened.session, reads);
    const setting = settingOf({ agent, intake, scope, opened, sendChunk });
    const running = (work = runFunction(fn, setting));
    // The first of the two resolves the call; after a detach the function continues in the background.
    return await new Promise((resolve, reject) => {
      running.then(resolve, reject);
      intake.detached
        .then((waiting) => {
          setting.chunks.close();
          return setting.background.begin(waiting);
        })
        .then(resolve, reject);
    });
  } catch (error) {
    if (AgentInitError.isInstance(error)) throw error;
    return unopenedOutput(init, error instanceof Aborted ? 'aborted' : toRuntimeError(error));
  } finally {
    scope.release();
    if (letNext) void leaveQueue(work, queued, letNext);
  }
}

/** The queue in which other calls wait for the call that a session belongs to. */
const queuedIn = new WeakMap<object, AgentDefinition['turns']>();

/** Lets the next call of the queue begin when the work of this one has ended. */
async function leaveQueue(work: Promise<unknown> | undefined, session: object | undefined, letNext: () => void) {
  await Promise.allSettled([work]);
  if (session) queuedIn.delete(session);
  letNext();
}

/**
 * Waits until the session's earlier turns have ended. An abort ends the wait.
 *
 * @returns A function that lets the next call begin.
 * @throws `FAILED_PRECONDITION` for a call that a turn of the same session makes: it would wait for itself.
 */
async function turnOfSession<State>(
  { turns }: AgentDefinition<State>,
  sessionId: string,
  scope: AbortScope,
): Promise<() => void> {
  const running = getAsyncContext().getStore<Session>(CURRENT_SESSION);
  if (running?.sessionId === sessionId && queuedIn.get(running) === turns) {
    throw failedPrecondition(
      `A turn of session ${quote(sessionId)} can't run another turn of it, which would wait for the first to end ` +
        `(onConflict: 'queue'). Use another sessionId, or a snapshotId to branch.`,
    );
  }
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
