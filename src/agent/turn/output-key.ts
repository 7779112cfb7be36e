import { logger } from 'genkit/logging';
import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import type { RuntimeError, TurnResult } from '../../session/session-runner.ts';
import { viewOf, type Session } from '../../session/session.ts';
import type { ScopedState } from '../../session/state/scoped-state.ts';
import { parseStateKey } from '../../session/state/state-keys.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { Caller } from '../open/agent-scopes.ts';
import { toRuntimeError } from '../runtime-error.ts';

/**
 * What a turn answers would be lost at its end: better not to begin it.
 *
 * @throws `FAILED_PRECONDITION` when the agent keeps its output with the user, and nobody is there.
 */
export function assertOutputKept<State>({ name, scopes }: AgentDefinition<State>, { userId }: Caller): void {
  const { outputKey } = scopes;
  if (outputKey === undefined || userId !== undefined || parseStateKey(outputKey).scope !== 'user') return;
  const message = `Agent '${name}' keeps its output under ${quote(outputKey)}, and the call names no user: its context has no auth.uid, or the agent's userId found none.`;
  throw addressTo('status', failedPrecondition(message));
}

/**
 * Keeps what a turn answered in the session's state: what its handler says, or else the text of the last message, when that is a reply. Of a
 * turn that waits for the caller, nothing.
 *
 * @returns Why the answer can't be kept, being too long say: it is no reason to lose it.
 */
export function keepOutput<State>(
  { name, scopes: { outputKey } }: AgentDefinition<State>,
  session: Session<State>,
  result: TurnResult | void,
): RuntimeError | undefined {
  if (outputKey === undefined || result?.finishReason === 'interrupted') return undefined;
  // `null` is an answer.
  const output = result?.output === undefined ? replyText(session) : result.output;
  if (output === undefined) return undefined;
  try {
    // A key of any scope, of which the state's type knows nothing.
    (session.state as unknown as ScopedState).set(outputKey, output as never);
    return undefined;
  } catch (error) {
    const unkept = toRuntimeError(error);
    logger.warn(
      `The answer of agent '${name}' is not kept under its outputKey, which stays as it was. ${unkept.message}`,
    );
    return unkept;
  }
}

function replyText<State>(session: Session<State>): string | undefined {
  const last = viewOf(session).messages.at(-1);
  if (last?.role !== 'model') return undefined;
  return last.content.map(({ text }) => text ?? '').join('');
}
