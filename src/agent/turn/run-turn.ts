import type { AgentInput } from 'genkit/beta';
import { runInNewSpan, setCustomMetadataAttribute, SPAN_TYPE_ATTR } from 'genkit/tracing';
import type { TurnContext, TurnHandler, TurnOutcome } from '../../session/turn.ts';
import { renewState } from '../../session/state/scoped-state.ts';
import { endTurnState } from '../../session/state/session-state.ts';
import type { SessionOwner } from '../../session/owner.ts';
import { viewOf, type Session } from '../../session/session.ts';
import { Aborted, type AbortScope } from '../abort-scope.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { readRecords, type Caller } from '../open/agent-scopes.ts';
import type { BackgroundRun } from '../background/background-run.ts';
import { assertClientInput } from '../open/client-input.ts';
import type { ChunkStream } from './chunk-stream.ts';
import type { TurnCommits } from '../save/commit-turn.ts';
import type { Intake, TurnRequest } from '../intake.ts';
import { assertOutputKept, keepOutput } from './output-key.ts';
import type { ResumeClaim } from '../save/resume-claim.ts';
import { afterTurn } from '../generate/turn-window.ts';
import { toResumption } from '../generate/resume.ts';
import { doesPassGate, setGate } from '../generate/tool-gate.ts';
import { toRuntimeError } from '../runtime-error.ts';

/** The parts that all turns of one call of an agent share. */
export interface TurnSetting<State> {
  agent: AgentDefinition<State>;
  session: Session<State>;
  intake: Intake;
  chunks: ChunkStream<State>;
  commits: TurnCommits<State>;
  scope: AbortScope;
  caller: Caller;
  /** The owner of the session. Default: it has none. */
  owner: SessionOwner | undefined;
  /** Continues the turns after the caller has detached. */
  background: BackgroundRun<State>;
}

/** Runs one turn: reads the input, runs the handler, saves and reports. Never rejects; failures are in the outcome. */
export async function runTurn<State>(
  setting: TurnSetting<State>,
  request: TurnRequest,
  handler: TurnHandler,
  turnIndex: number,
): Promise<TurnOutcome> {
  const parentSnapshotId = setting.commits.parentId;
  const context: TurnContext = { snapshotId: request.snapshotId, turnIndex };
  if (parentSnapshotId !== undefined) context.parentSnapshotId = parentSnapshotId;
  const outcome = await inTurnSpan(setting, request.input, turnIndex, () =>
    attempt(setting, request, handler, context),
  );
  if (outcome.status !== 'completed') endTurnState(setting.session);
  report(setting, outcome);
  setting.background.turnEnded(outcome);
  return outcome;
}

async function attempt<State>(
  { agent, session, chunks, commits, scope, caller, owner }: TurnSetting<State>,
  request: TurnRequest,
  handler: TurnHandler,
  context: TurnContext,
): Promise<TurnOutcome> {
  const { input } = request;
  // A refused input changes nothing, so nothing is saved.
  const refused = (error: unknown) => commits.refuse(context.snapshotId, toRuntimeError(error));
  let claim: ResumeClaim<State> | undefined;
  try {
    assertClientInput(agent, input);
    assertOutputKept(agent, caller);
    const isRestart = (input.resume?.restart?.length ?? 0) > 0;
    try {
      if (input.resume && doesPassGate(handler)) toResumption(input.resume, viewOf(session).messages);
    } catch (error) {
      // A redacting store no longer has the inputs of an approved request, so that an unmodified answer does not fit.
      if (isRestart) await commits.assertUnclaimed(context.snapshotId);
      throw error;
    }
    if (isRestart) claim = await commits.claimTools(context.snapshotId);
    else if (input.resume) await commits.assertNoResult(context.snapshotId);
  } catch (error) {
    return refused(error);
  }
  const taken = claim;
  chunks.beginTurn();
  let outcome: TurnOutcome | undefined;
  try {
    commits.adoptStored();
    // Added before anything can fail, so that the snapshot of a failed turn contains its prompt.
    if (input.message) session.addMessages([input.message]);
    request.begun = true;
    // For the first turn the records were read with the session.
    const reading = context.turnIndex > 0 ? readRecords(agent, caller) : undefined;
    if (reading) renewState(session.state, await reading);
    if (taken) await setGate(handler, context, () => taken.start());
    const result = await scope.race(() => handler(input, context));
    // After this point an abort no longer affects this turn.
    if (scope.aborted) return { status: 'aborted' };
    const error = keepOutput(agent, session, result);
    // With any other handler it is unknown whether the waiting request is the one that was approved.
    const hasAnswered = taken !== undefined && doesPassGate(handler);
    outcome = await commits.complete(context.snapshotId, { finishReason: result?.finishReason, error, hasAnswered });
    // After the save, which applies updates of shared keys to their values of that time.
    chunks.endState();
    const messages = commits.lastGood.state.messages ?? [];
    const isOwn = owner ? owner.userId === caller.userId : !agent.can.details;
    afterTurn(agent, session, { outcome, messages, context: caller.context, isOwn });
    return result?.output === undefined ? outcome : { ...outcome, output: result.output };
  } catch (error) {
    if (error instanceof Aborted) return { status: 'aborted' };
    if (taken?.isRefused) return refused(error);
    return await commits.fail(context.snapshotId, toRuntimeError(error));
  } finally {
    // After a takeover the claim belongs to the new owner.
    if (taken) await taken.end(outcome?.status === 'completed' || commits.writer.isLost);
  }
}

function report<State>({ chunks, commits }: TurnSetting<State>, outcome: TurnOutcome): void {
  if (outcome.status === 'completed') {
    chunks.endTurn(outcome);
  } else {
    const { snapshotId } = outcome.status === 'failed' ? outcome : commits.lastGood;
    chunks.endTurn({ snapshotId, finishReason: outcome.status });
  }
}

/** Opens the span of a turn. The span holds the turn's input and the id of its snapshot, and the state only if `traceState` is set. */
function inTurnSpan<State>(
  { agent, session }: TurnSetting<State>,
  input: AgentInput,
  turnIndex: number,
  run: () => Promise<TurnOutcome>,
): Promise<TurnOutcome> {
  const name = `runTurn-${turnIndex + 1}`;
  let failed: TurnOutcome | undefined;
  const running = runInNewSpan(
    { metadata: { name, input }, labels: { [SPAN_TYPE_ATTR]: 'flowStep' } },
    async (span) => {
      const outcome = await run();
      const { status } = outcome;
      const snapshotId = status === 'aborted' ? undefined : outcome.snapshotId;
      if (snapshotId !== undefined) setCustomMetadataAttribute('agent:snapshotId', snapshotId);
      if (status === 'failed') {
        failed = outcome;
        // Marks the span as failed. Without the cause, which may quote data of the session.
        throw new Error(`${outcome.error.status}: ${outcome.error.message}`);
      }
      const finishReason = status === 'aborted' ? status : outcome.finishReason;
      span.output = JSON.stringify({ finishReason, ...(agent.traceState && { state: session.getState() }) });
      return outcome;
    },
  );
  return running.catch((error: unknown) => {
    if (failed) return failed;
    throw error;
  });
}
