import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { AgentInitError } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { keepPrefetched, prefetch } from '../generate/prefetch.ts';
import { assertInitFits, openSession } from '../open/open-session.ts';
import { toRuntimeError } from '../runtime-error.ts';
import type { AgentFn } from '../types.ts';
import { Aborted, AbortScope } from '../abort-scope.ts';
import { unopenedOutput } from './agent-output.ts';
import { Intake } from '../intake.ts';
import { runFunction, settingOf } from './run-function.ts';
import { QueuedCall } from './session-queue.ts';

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
  const isQueued = agent.onConflict === 'queue' && init.snapshotId === undefined && init.sessionId !== undefined;
  const queued = isQueued ? new QueuedCall(agent.turns, init.sessionId!) : undefined;
  let work: Promise<AgentOutput> | undefined;
  try {
    if (queued) await queued.begin(scope);
    const reads = prefetch(agent, { init, intake, context, abortSignal: scope.signal });
    const opened = await scope.race(() => openSession(agent, init, context));
    keepPrefetched(opened.session, reads);
    const setting = settingOf({ agent, intake, scope, opened, sendChunk });
    const run = () => runFunction(fn, setting);
    const running = (work = queued ? queued.run(run) : run());
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
    void queued?.endAfter(work);
  }
}
