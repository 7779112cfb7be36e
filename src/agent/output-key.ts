import { addressTo, failedPrecondition, quote } from '../errors.ts';
import type { TurnResult } from '../session/session-runner.ts';
import { viewOf, type Session } from '../session/session.ts';
import type { ScopedState } from '../session/scoped-state.ts';
import { parseStateKey } from '../session/state-keys.ts';
import type { AgentDefinition } from './agent-definition.ts';
import type { Caller } from './agent-scopes.ts';

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
 */
export function keepOutput<State>(session: Session<State>, key: string, result: TurnResult | void): void {
  if (result?.finishReason === 'interrupted') return;
  // `null` is an answer.
  const output = result?.output === undefined ? replyText(session) : result.output;
  // A key of any scope, of which the state's type knows nothing.
  if (output !== undefined) (session.state as unknown as ScopedState).set(key, output as never);
}

function replyText<State>(session: Session<State>): string | undefined {
  const last = viewOf(session).messages.at(-1);
  if (last?.role !== 'model') return undefined;
  return last.content.map(({ text }) => text ?? '').join('');
}
