import type { AgentResult } from '@genkit-ai/ai';
import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { setCustomMetadataAttribute } from 'genkit/tracing';
import { AgentInitError } from '../errors.ts';
import { SessionRunner, type TurnOutcome } from '../session/session-runner.ts';
import { reserveSnapshotId } from '../snapshot/ids.ts';
import { Aborted, AbortScope } from './abort-scope.ts';
import type { AgentDefinition } from './agent-definition.ts';
import { agentOutput, unopenedOutput } from './agent-output.ts';
import { ChunkStream } from './chunk-stream.ts';
import { supportedInputs } from './client-input.ts';
import { TurnCommits } from './commit-turn.ts';
import { assertInitFits, openSession, type OpenedSession } from './open-session.ts';
import { runTurn, type TurnSetting } from './run-turn.ts';
import { toRuntimeError } from './runtime-error.ts';
import type { AgentFn } from './types.ts';

/** One call of an agent, as the action gets it. */
export interface AgentCall {
  init: AgentInit;
  inputs: AsyncIterable<AgentInput>;
  sendChunk: (chunk: AgentStreamChunk) => void;
  abortSignal: AbortSignal;
  context: ActionContext | undefined;
}

/**
 * One call of an agent: resolve the session, run the agent's function on it, and say what came of it. Nearly always that is one turn; a
 * caller in this process may keep the stream open for more.
 *
 * @throws AgentInitError for a call that does not fit the agent; all else that goes wrong is told by the output.
 */
export async function runAgent<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  call: AgentCall,
): Promise<AgentOutput> {
  assertInitFits(agent, call.init);
  const scope = new AbortScope(call.abortSignal);
  try {
    const opened = await scope.race(() => openSession(agent, call.init, call.context));
    return await converse(agent, fn, call, opened, scope);
  } catch (error) {
    if (AgentInitError.isInstance(error)) throw error;
    return unopenedOutput(call.init, error instanceof Aborted ? 'aborted' : toRuntimeError(error));
  } finally {
    scope.dispose();
  }
}

async function converse<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  call: AgentCall,
  { session, parentId }: OpenedSession<State>,
  scope: AbortScope,
): Promise<AgentOutput> {
  const { sessionId } = session;
  setCustomMetadataAttribute('agent:sessionId', sessionId);
  const chunks = new ChunkStream<State>({ session, send: call.sendChunk, transform: agent.clientTransform });
  const commits = new TurnCommits<State>({ agent, session, parentId, context: call.context });
  const setting: TurnSetting<State> = { session, chunks, commits, scope };
  const runner = new SessionRunner<State>(session, supportedInputs(call.inputs, agent.name), (input, handler, index) =>
    runTurn(setting, input, handler, index),
  );
  try {
    const { result, failure } = await callFunction(fn, runner, setting, call.context);
    const outcome = failure ?? (await saveRest(setting, runner.lastOutcome));
    return agentOutput(agent, { sessionId, outcome, result, lastGood: commits.lastGood });
  } finally {
    chunks.close();
  }
}

/** Calls the agent's own function. What it throws outside of a turn ends the call as a failed turn does. */
async function callFunction<State>(
  fn: AgentFn<State>,
  runner: SessionRunner<State>,
  { session, chunks, commits, scope }: TurnSetting<State>,
  context: ActionContext | undefined,
): Promise<{ result?: AgentResult; failure?: TurnOutcome }> {
  const options = { sendChunk: chunks.send.bind(chunks), abortSignal: scope.signal, ...(context && { context }) };
  try {
    return { result: await scope.race(() => session.run(() => fn(runner, options)), nextMacrotask) };
  } catch (error) {
    if (AgentInitError.isInstance(error)) throw error;
    if (error instanceof Aborted) return { failure: { status: 'aborted' } };
    // The first failure counts: a function that trips over a failed turn's absence has nothing to add.
    if (runner.lastOutcome?.status === 'failed') return { failure: runner.lastOutcome };
    return { failure: await commits.fail(reserveSnapshotId(), toRuntimeError(error)) };
  }
}

/** Saves what the function changed after its last turn, or without any. */
async function saveRest<State>(
  { commits }: TurnSetting<State>,
  outcome: TurnOutcome | undefined,
): Promise<TurnOutcome | undefined> {
  if (!commits.isBehind || (outcome && outcome.status !== 'completed')) return outcome;
  const snapshotId = reserveSnapshotId();
  try {
    return await commits.complete(snapshotId, outcome?.finishReason);
  } catch (error) {
    return commits.fail(snapshotId, toRuntimeError(error));
  }
}

/** An aborted turn ends within microtasks; its end is reported before the call's. */
function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
