import { setImmediate as nextMacrotask } from 'node:timers/promises';
import type { AgentResult } from '@genkit-ai/ai';
import type { AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { setCustomMetadataAttribute } from 'genkit/tracing';
import { AgentInitError } from '../../errors.ts';
import { endState } from '../../session/state/session-state.ts';
import { SessionRunner } from '../../session/session-runner.ts';
import type { TurnOutcome } from '../../session/turn.ts';
import { viewOf, type Session } from '../../session/session.ts';
import { usageOf } from '../../session/usage.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { BackgroundRun } from '../background/background-run.ts';
import type { OpenedSession } from '../open/open-session.ts';
import { toRuntimeError } from '../runtime-error.ts';
import { sumUsage } from '../../store/list/session-summary.ts';
import { TurnCommits } from '../save/commit-turn.ts';
import type { AgentFn } from '../types.ts';
import { Aborted, type AbortScope } from '../abort-scope.ts';
import { agentOutput } from './agent-output.ts';
import { ChunkStream } from './chunk-stream.ts';
import type { Intake, TurnRequest } from '../intake.ts';
import { runTurn, type TurnSetting } from './run-turn.ts';

/** One call of an agent: its inputs, and the session that its turns run on. */
interface FunctionCall<State> {
  readonly agent: AgentDefinition<State>;
  readonly intake: Intake;
  readonly scope: AbortScope;
  readonly opened: OpenedSession<State>;
  /** Optional. Without it the chunks are dropped. */
  readonly sendChunk?: (chunk: AgentStreamChunk) => void;
}

/** Creates the parts that run the turns of a call. */
export function settingOf<State>(call: FunctionCall<State>): TurnSetting<State> {
  const { agent, intake, scope, opened, sendChunk } = call;
  const { session, caller, owner } = opened;
  setCustomMetadataAttribute('agent:sessionId', session.sessionId);
  const chunks = new ChunkStream<State>({ session, send: sendChunk ?? (() => {}), transform: agent.clientTransform });
  if (!sendChunk) chunks.close();
  const commits = new TurnCommits<State>(agent, opened);
  const background = new BackgroundRun<State>({ agent, session, intake, commits, scope, caller });
  return { agent, session, intake, scope, caller, owner, chunks, commits, background };
}

/** Runs the agent's function with all its turns, and returns the call's output. */
export async function runFunction<State>(fn: AgentFn<State>, setting: TurnSetting<State>): Promise<AgentOutput> {
  const { agent, session, intake, chunks, commits, background } = setting;
  let latest: TurnRequest | undefined;
  const runner = new SessionRunner<State>(session, intake, {
    runTurn: (input, handler, index) => {
      latest = intake.requestFor(input);
      return runTurn(setting, latest, handler, index);
    },
    ...(commits.parentId !== undefined && { lastSnapshot: { snapshotId: commits.parentId } }),
  });
  try {
    const { result, ending } = await callFunction(fn, runner, setting);
    const last = runner.lastOutcome;
    const saving = ending ? undefined : saveRemaining(setting, last);
    const rest = ending ?? (saving && (await saving));
    const outcome = rest ?? last;
    const usage = sumUsage([ending ? undefined : last?.usage, rest?.usage, usageOf(session)]);
    if (outcome) background.turnEnded(outcome);
    const settling = background.settle(outcome);
    if (settling) await settling;
    const isKept = outcome?.status === 'aborted' && agent.onAbort === 'keep' && !background.hasBegun;
    if (isKept && latest) await commits.keepAborted(latest.snapshotId);
    return agentOutput(agent, { sessionId: session.sessionId, outcome, result, lastGood: commits.lastGood, usage });
  } finally {
    chunks.close();
    endState(session);
  }
}

/** Calls the agent's own function. An error outside of a turn ends the call as a failed turn does, and so does an abort. */
async function callFunction<State>(
  fn: AgentFn<State>,
  runner: SessionRunner<State>,
  { session, intake, chunks, commits, scope, background, caller }: TurnSetting<State>,
): Promise<{ result?: AgentResult; ending?: TurnOutcome }> {
  const { context } = caller;
  const options = { sendChunk: chunks.send.bind(chunks), abortSignal: scope.signal, ...(context && { context }) };
  let result: AgentResult | undefined;
  let saving: Promise<TurnOutcome> | undefined;
  let hasWaiting = false;
  // A save that is in progress at the abort may still succeed.
  const untilSaved = async () => {
    saving = commits.saving;
    hasWaiting = intake.waiting.length > 0;
    // An aborted turn ends within microtasks; its end must be reported before the call's.
    await nextMacrotask();
    if (!saving) return;
    await saving;
    await nextMacrotask();
  };
  const work = async () => {
    result = await fn(runner, options);
  };
  try {
    await scope.race(() => session.run(work), untilSaved);
    return { result };
  } catch (error) {
    // A caller that has detached no longer receives it.
    if (AgentInitError.isInstance(error) && !background.hasBegun) throw error;
    if (error instanceof Aborted) {
      const outcome = await saving;
      // The waiting turns were aborted even if the function returned.
      if (!outcome || hasWaiting || runner.lastOutcome?.status === 'aborted') return { ending: { status: 'aborted' } };
      return { result: result ?? replyIn(session), ending: outcome };
    }
    // The first failure counts: a later error of the function follows from the failed turn.
    if (runner.lastOutcome?.status === 'failed') return { ending: runner.lastOutcome };
    const snapshotId = background.openId() ?? reserveSnapshotId();
    if (intake.hasFailedWith(error)) return { ending: commits.refuse(snapshotId, toRuntimeError(error)) };
    return { ending: await commits.fail(snapshotId, toRuntimeError(error)) };
  }
}

/** The result of a function that was not awaited after an abort. */
function replyIn<State>(session: Session<State>): AgentResult {
  const last = viewOf(session).messages.at(-1);
  return last?.role === 'model' ? { message: last } : {};
}

/** Saves the changes that the function made after its last turn or without a turn; `undefined` when there are none. */
function saveRemaining<State>(
  { commits, background }: TurnSetting<State>,
  last: TurnOutcome | undefined,
): Promise<TurnOutcome> | undefined {
  const openId = background.openId();
  if ((!commits.hasUnsaved && openId === undefined) || (last && last.status !== 'completed')) return undefined;
  return commits.complete(openId ?? reserveSnapshotId(), last);
}
