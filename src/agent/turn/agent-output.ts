import type { AgentResult } from '@genkit-ai/ai';
import type { GenerationUsage } from 'genkit';
import type { AgentInit, MessageData, SessionState } from 'genkit/beta';
import { textOf, VALUE_MARK } from '../../client/chat/parts.ts';
import type { AgentOutput } from '../../client/types.ts';
import { logError } from '../../errors.ts';
import { copyJson, jsonEqual } from '../../json/value.ts';
import { dataOf } from '../../session/session.ts';
import type { RuntimeError, TurnOutcome } from '../../session/turn.ts';
import { toClientState, type AgentDefinition } from '../agent-definition.ts';
import type { LastGood } from '../save/commit-turn.ts';
import { toPlainMessage } from '../generate/prompt-history.ts';
import { toRuntimeError } from '../runtime-error.ts';
import { isPartial } from '../generate/turn-progress.ts';

/** The end of an agent's call. */
export interface Ending<State> {
  sessionId: string;
  /** The outcome of the last turn; `undefined` when the agent ran none. */
  outcome: TurnOutcome | undefined;
  /** The return value of the agent's function, if it returned. */
  result: AgentResult | undefined;
  lastGood: LastGood<State>;
  /** The sum of the usage of the last turn's model calls. */
  usage: GenerationUsage | undefined;
}

/** The output of a call whose session could not be opened. The caller's own state is returned unchanged. */
export function unopenedOutput(init: AgentInit, ending: 'aborted' | RuntimeError): AgentOutput {
  return {
    ...(init.sessionId !== undefined && { sessionId: init.sessionId }),
    ...(init.state && { state: init.state }),
    ...(ending === 'aborted' ? { finishReason: 'aborted' } : { finishReason: 'failed', error: ending }),
  };
}

/**
 * The output of a call. A failed or aborted call returns the last good state instead of its own. A failed call returns a reply only if the
 * snapshot could not be saved.
 */
export function agentOutput<State>(agent: AgentDefinition<State>, ending: Ending<State>): AgentOutput {
  const { outcome, result, lastGood, usage } = ending;
  const { state } = lastGood;
  try {
    const output = resumePoint(agent, ending);
    if (usage) output.usage = usage;
    if (outcome?.status === 'aborted') {
      const last = state.messages?.at(-1);
      if (last && isPartial(last)) setReply(output, { message: replyOf(agent, { message: last }, state).message });
      output.finishReason = 'aborted';
    } else if (outcome?.status === 'failed') {
      if (outcome.unsaved) setReply(output, replyOf(agent, result, state, outcome.output));
      output.finishReason = 'failed';
      output.error = outcome.error;
    } else {
      setReply(output, replyOf(agent, result, state, outcome?.output));
      const finishReason = result?.finishReason ?? outcome?.finishReason;
      if (finishReason) output.finishReason = finishReason;
      if (outcome?.error) output.error = outcome.error;
    }
    return output;
  } catch (error) {
    // A transform that throws must not expose the untransformed state.
    return { sessionId: ending.sessionId, finishReason: 'failed', error: toRuntimeError(error) };
  }
}

/** The id of the snapshot, or the state that the caller keeps, from which the conversation continues. */
function resumePoint<State>(agent: AgentDefinition<State>, { sessionId, lastGood }: Ending<State>): AgentOutput {
  if (!agent.store) {
    const state = toClientState(agent, lastGood.state);
    return { sessionId, state: agent.signer ? agent.signer.sign(state) : state };
  }
  return lastGood.snapshotId === undefined ? { sessionId } : { sessionId, snapshotId: lastGood.snapshotId };
}

type Reply = Pick<AgentOutput, 'artifacts' | 'message'>;

function setReply(output: AgentOutput, { artifacts, message }: Reply): void {
  if (artifacts?.length) output.artifacts = artifacts;
  if (message) output.message = message;
}

/** The part of the function's return value that the caller may see. */
function replyOf<State>(
  agent: AgentDefinition<State>,
  result: AgentResult | undefined,
  state: SessionState<State>,
  value?: unknown,
): Reply {
  const answered = { artifacts: result?.artifacts, message: result?.message && dataOf(result.message) };
  const reply = agent.clientTransform?.state ? projected(agent, answered, state) : answered;
  return { ...reply, message: reply.message && withValue(reply.message, answered.message, value) };
}

/**
 * The reply with the turn's value as a `data` part, where clients of this package and of Genkit look for it. A reply whose text the transform
 * changed gets no value, since the value would reveal the removed text. The session's own message stays unchanged.
 */
function withValue(visible: MessageData, original: MessageData | undefined, value: unknown): MessageData {
  if (value === undefined || textOf(visible.content) !== textOf(original?.content)) return visible;
  if (visible.content.some(({ data }) => data !== undefined)) return visible;
  try {
    return { ...visible, content: [...visible.content, { data: copyJson(value), metadata: VALUE_MARK }] };
  } catch {
    return visible;
  }
}

/** The reply as the transform leaves it in a state that contains it. */
function projected<State>(
  agent: AgentDefinition<State>,
  { artifacts = [], message }: Reply,
  state: SessionState<State>,
): Reply {
  const reply = message && toPlainMessage(message);
  const all = state.messages ?? [];
  const before = reply && jsonEqual(all.at(-1), reply) ? all.slice(0, -1) : all;
  const messages = reply ? [...before, reply] : before;
  try {
    const visible = toClientState(agent, { ...state, artifacts, messages });
    return { artifacts: visible.artifacts, message: reply && visibleReply(visible, reply, before) };
  } catch (error) {
    // The turn is saved anyway.
    logError('A reply was withheld because it could not be transformed for the client.', error);
    return {};
  }
}

/** The reply after the transform: the last remaining message, unless that is an earlier one. */
function visibleReply(
  { messages }: SessionState,
  reply: MessageData,
  before: readonly MessageData[],
): MessageData | undefined {
  const last = messages?.at(-1);
  if (last?.role !== reply.role) return undefined;
  return jsonEqual(last, reply) || !before.some((message) => jsonEqual(message, last)) ? last : undefined;
}
