import type { AgentResult } from '@genkit-ai/ai';
import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk } from 'genkit/beta';
import { setCustomMetadataAttribute } from 'genkit/tracing';
import { AgentInitError } from '../../errors.ts';
import { logOf, type SessionOwner } from '../../session/log/session-log.ts';
import { SessionRunner, type TurnOutcome } from '../../session/session-runner.ts';
import { waitsOf } from '../../session/tool-requests.ts';
import { addUsage, sumUsage, usageOf } from '../../session/usage.ts';
import { endState } from '../../session/state/session-state.ts';
import { Session, viewOf } from '../../session/session.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import { Aborted, AbortScope } from './abort-scope.ts';
import type { AgentDefinition } from '../define/agent-definition.ts';
import { ownerFor, placeRecords, readRecords } from '../open/agent-scopes.ts';
import { agentOutput, unopenedOutput } from './agent-output.ts';
import { BackgroundRun } from '../background/background-run.ts';
import { ChunkStream } from './chunk-stream.ts';
import { TurnCommits } from '../save/commit-turn.ts';
import { Intake, type TurnRequest } from '../open/intake.ts';
import {
  assertInitFits,
  assertSnapshotFits,
  openSession,
  sessionFrom,
  type OpenedSession,
} from '../open/open-session.ts';
import { ResumeClaim } from '../save/resume-claim.ts';
import { runOf, turnOf } from '../background/run-lease.ts';
import { runTurn, type TurnSetting } from './run-turn.ts';
import { toRuntimeError } from './runtime-error.ts';
import type { TakenRun } from '../background/take-over.ts';
import type { AgentFn } from '../define/types.ts';

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
  // A caller that detaches may leave at once.
  const intake = new Intake(call.inputs, () => scope.release());
  let letNext: (() => void) | undefined;
  let over: Promise<unknown> | undefined;
  try {
    if (isQueued(agent, call.init)) letNext = await turnOfSession(agent, call.init.sessionId, scope);
    const opened = await scope.race(() => openSession(agent, call.init, call.context));
    const { sendChunk } = call;
    return await converse(agent, fn, { sendChunk, intake, scope }, opened, (work) => void (over = work));
  } catch (error) {
    if (AgentInitError.isInstance(error)) throw error;
    return unopenedOutput(call.init, error instanceof Aborted ? 'aborted' : toRuntimeError(error));
  } finally {
    scope.release();
    if (letNext) void Promise.allSettled([over]).then(letNext);
  }
}

/** The call once its inputs are being read. */
interface RunningCall extends Pick<AgentCall, 'sendChunk'> {
  intake: Intake;
  scope: AbortScope;
}

/** Whether the call waits for the session's earlier turns in this process, those in the background included. */
function isQueued<State>(
  { onConflict }: AgentDefinition<State>,
  init: AgentInit,
): init is AgentInit & { sessionId: string } {
  return onConflict === 'queue' && init.sessionId !== undefined && init.snapshotId === undefined;
}

/**
 * Waits for the call's turn. An abort ends the waiting; how a turn ends that has begun only the turn can say.
 *
 * @returns Lets the next one have its turn.
 */
async function turnOfSession<State>(
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

/**
 * Runs the agent's function, until it is done or the caller detaches.
 *
 * @param onOver Is told what ends with the call, which may be after the call was answered.
 */
function converse<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  call: RunningCall,
  { caller, ...opened }: OpenedSession<State>,
  onOver: (over: Promise<unknown>) => void,
): Promise<AgentOutput> {
  const { intake, scope } = call;
  const { context } = caller;
  const { session } = opened;
  setCustomMetadataAttribute('agent:sessionId', session.sessionId);
  const chunks = new ChunkStream<State>({ session, send: call.sendChunk, transform: agent.clientTransform });
  const commits = new TurnCommits<State>({ agent, context, ...opened });
  const background = new BackgroundRun<State>({ agent, session, intake, commits, scope, caller });
  const claim = claimer(agent, commits, context);
  const work = perform(fn, { agent, session, intake, scope, caller, chunks, commits, background, claim });
  onOver(work);
  // What comes second goes on in the background, where nobody waits for it.
  return new Promise((resolve, reject) => {
    const goOnWith = (waiting: readonly TurnRequest[]) => {
      chunks.close();
      background.begin(waiting).then(resolve, reject);
    };
    work.then(resolve, reject);
    void intake.detached.then(goOnWith);
  });
}

/**
 * Goes on with a background run that was taken over, from its last completed turn. Never rejects: how the run ends is in its snapshots.
 *
 * @param run Its turns that have no end yet are not empty.
 */
export async function continueRun<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  run: TakenRun<State>,
): Promise<void> {
  const { lease, open, before, caller } = run;
  const { context } = caller;
  const scope = new AbortScope(new AbortController().signal);
  const turns = open.map(turnOf).filter((turn) => turn !== undefined);
  const intake = new Intake(noMore(), () => {}, turns);
  const { session, owner, failure } = await reopen(agent, run);
  addUsage(session, runOf(open[0])?.usage);
  const parentId = before?.snapshotId;
  setCustomMetadataAttribute('agent:sessionId', session.sessionId);
  const chunks = new ChunkStream<State>({ session, send: () => {} });
  // Nobody listens.
  chunks.close();
  const commits = new TurnCommits<State>({ agent, session, parentId, context, owner, ...waitsOf(before) });
  const background = new BackgroundRun<State>({ agent, session, intake, commits, scope, caller });
  background.takeOver(
    lease,
    open.map(({ snapshotId }) => snapshotId),
  );
  if (failure) return background.settle(failure);
  const claim = claimer(agent, commits, context);
  await perform(fn, { agent, session, intake, scope, caller, chunks, commits, background, claim });
}

// An input stream that has ended.
// oxlint-disable-next-line require-yield
async function* noMore(): AsyncGenerator<never> {}

/** The session as it was before the turns that are left; what is wrong with it fails them. */
async function reopen<State>(
  agent: AgentDefinition<State>,
  { before, sessionId, caller }: TakenRun<State>,
): Promise<{ session: Session<State>; owner?: SessionOwner; failure?: TurnOutcome }> {
  const owner = before ? logOf(before).owner : ownerFor(agent, caller);
  try {
    if (before) await assertSnapshotFits(agent, before);
    const session = before ? sessionFrom(agent, before) : new Session<State>({ sessionId });
    placeRecords(agent, session, caller, await readRecords(agent, caller));
    return { session, owner };
  } catch (error) {
    const failure: TurnOutcome = { status: 'failed', error: toRuntimeError(error) };
    return { session: new Session<State>({ sessionId }), owner, failure };
  }
}

/** Takes the right to run the tools that the session waits to run. */
function claimer<State>(
  agent: AgentDefinition<State>,
  commits: TurnCommits<State>,
  context: ActionContext | undefined,
): TurnSetting<State>['claim'] {
  const { store } = agent;
  return async ({ snapshotId: turnId }) => {
    const { interruptedId } = commits;
    if (!store || interruptedId === undefined) return undefined;
    return ResumeClaim.take<State>({ agent, interruptedId, turnId, context }, store);
  };
}

/** What a call works with. */
interface Performance<State> extends TurnSetting<State> {
  intake: Intake;
}

async function perform<State>(fn: AgentFn<State>, setting: Performance<State>): Promise<AgentOutput> {
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
    const saving = ending ? undefined : saveRest(setting, last);
    const rest = ending ?? (saving && (await saving));
    const outcome = rest ?? last;
    const usage = sumUsage(ending ? undefined : last?.usage, rest?.usage, usageOf(session));
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

/** Calls the agent's own function. What it throws outside of a turn ends the call as a failed turn does, and so does an abort. */
async function callFunction<State>(
  fn: AgentFn<State>,
  runner: SessionRunner<State>,
  { session, intake, chunks, commits, scope, background, caller }: Performance<State>,
): Promise<{ result?: AgentResult; ending?: TurnOutcome }> {
  const { context } = caller;
  const options = { sendChunk: chunks.send.bind(chunks), abortSignal: scope.signal, ...(context && { context }) };
  let result: AgentResult | undefined;
  let saving: Promise<TurnOutcome> | undefined;
  let isMoreAsked = false;
  // What is being saved when the abort comes may be saved: only the store can say.
  const patience = async () => {
    saving = commits.saving;
    isMoreAsked = intake.waiting.length > 0;
    await nextMacrotask();
    if (!saving) return;
    await saving;
    await nextMacrotask();
  };
  const work = async () => {
    result = await fn(runner, options);
  };
  try {
    await scope.race(() => session.run(work), patience);
    return { result };
  } catch (error) {
    // A caller that has left is not there to get it.
    if (AgentInitError.isInstance(error) && !background.hasBegun) throw error;
    if (error instanceof Aborted) {
      const outcome = await saving;
      // The turns that waited were aborted all the same.
      if (!outcome || isMoreAsked || runner.lastOutcome?.status === 'aborted') return { ending: { status: 'aborted' } };
      return { result: result ?? replyIn(session), ending: outcome };
    }
    // The first failure counts: a function that trips over a failed turn's absence has nothing to add.
    if (runner.lastOutcome?.status === 'failed') return { ending: runner.lastOutcome };
    return { ending: await commits.fail(background.restId() ?? reserveSnapshotId(), toRuntimeError(error)) };
  }
}

/** What the function of a turn would most likely have answered, had anybody waited for it. */
function replyIn<State>(session: Session<State>): AgentResult {
  const last = viewOf(session).messages.at(-1);
  return last?.role === 'model' ? { message: last } : {};
}

/** Saves what the function changed after its last turn, or without any; `undefined` when that is nothing. */
function saveRest<State>(
  { commits, background }: Performance<State>,
  last: TurnOutcome | undefined,
): Promise<TurnOutcome> | undefined {
  const restId = background.restId();
  if ((!commits.isBehind && restId === undefined) || (last && last.status !== 'completed')) return undefined;
  return commits.complete(restId ?? reserveSnapshotId(), last);
}

/** An aborted turn ends within microtasks; its end is reported before the call's. */
function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
