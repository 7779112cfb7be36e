import { logger } from 'genkit/logging';
import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import type { RuntimeError, TurnResult } from '../../session/turn.ts';
import { textOf } from '../../session/log/transcript.ts';
import { viewOf, type Session } from '../../session/session.ts';
import type { ScopedState } from '../../session/state/scoped-state.ts';
import { parseStateKey } from '../../session/state/state-keys.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { Caller } from '../open/agent-scopes.ts';
import { toRuntimeError } from '../runtime-error.ts';

/**
 * Refuses a turn before it begins when its answer could not be stored at its end.
 *
 * @throws `FAILED_PRECONDITION` when the agent stores its output under a `user:` key and the call has no user.
 */
export function assertOutputKept<State>({ name, scopes }: AgentDefinition<State>, { userId }: Caller): void {
  const { outputKey } = scopes;
  if (outputKey === undefined || userId !== undefined || parseStateKey(outputKey).scope !== 'user') return;
  const message = `Agent '${name}' stores its output under ${quote(outputKey)}, but the call names no user: its context has no auth.uid, or the agent's userId returned none.`;
  throw addressTo('status', failedPrecondition(message));
}

/**
 * Stores the answer of a turn in the session's state: the output of its handler, or else the text of the last message if that is a reply. A
 * turn that waits for the caller stores nothing.
 *
 * @returns The reason when the answer can't be stored, for example its length. The answer itself is not lost.
 */
export function keepOutput<State>(
  { name, scopes: { outputKey } }: AgentDefinition<State>,
  session: Session<State>,
  result: TurnResult | void,
): RuntimeError | undefined {
  if (outputKey === undefined || result?.finishReason === 'interrupted') return undefined;
  // `null` is a valid output.
  const output = result?.output === undefined ? replyText(session) : result.output;
  if (output === undefined) return undefined;
  try {
    // A key of any scope, which the state's type does not contain.
    (session.state as unknown as ScopedState).set(outputKey, output as never);
    return undefined;
  } catch (error) {
    const refusal = toRuntimeError(error);
    logger.warn(
      `The answer of agent '${name}' was not stored under its outputKey, which keeps its previous value. ${refusal.message}`,
    );
    return refusal;
  }
}

function replyText<State>(session: Session<State>): string | undefined {
  const last = viewOf(session).messages.at(-1);
  if (last?.role !== 'model') return undefined;
  return textOf(last);
}
