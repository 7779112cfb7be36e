import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { AgentInitError } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { assertInitFits, openSession } from '../open/open-session.ts';
import { toRuntimeError } from '../runtime-error.ts';
import type { AgentFn } from '../types.ts';
import { Aborted, AbortScope } from './abort-scope.ts';
import { unopenedOutput } from './agent-output.ts';
import { Intake, type TurnRequest } from './intake.ts';
import { runFunction, settingOf, type FunctionCall } from './run-function.ts';
import { isQueued, turnOfSession } from './session-queue.ts';

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
  let letNext: (() => void) | undefined;
  let over: Promise<unknown> | undefined;
  try {
    if (isQueued(agent, call.init)) letNext = await turnOfSession(agent, call.init.sessionId, scope);
    const opened = await scope.race(() => openSession(agent, call.init, call.context));
    const { sendChunk } = call;
    return await converse(fn, { agent, intake, scope, opened, sendChunk }, (work) => void (over = work));
  } catch (error) {
    if (AgentInitError.isInstance(error)) throw error;
    return unopenedOutput(call.init, error instanceof Aborted ? 'aborted' : toRuntimeError(error));
  } finally {
    scope.release();
    if (letNext) void Promise.allSettled([over]).then(letNext);
  }
}

/**
 * Runs the agent's function until it ends or the caller detaches.
 *
 * @param onOver Gets the promise of the function's end, which may come after the call has returned.
 */
function converse<State>(
  fn: AgentFn<State>,
  call: FunctionCall<State>,
  onOver: (over: Promise<unknown>) => void,
): Promise<AgentOutput> {
  const setting = settingOf(call);
  const work = runFunction(fn, setting);
  onOver(work);
  // The first of the two resolves the call; after a detach the function continues in the background.
  return new Promise((resolve, reject) => {
    const goOnWith = (waiting: readonly TurnRequest[]) => {
      setting.chunks.close();
      setting.background.begin(waiting).then(resolve, reject);
    };
    work.then(resolve, reject);
    void call.intake.detached.then(goOnWith);
  });
}
