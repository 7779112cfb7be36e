import type { TurnResult } from '../session/session-runner.ts';
import { viewOf, type Session } from '../session/session.ts';
import type { ScopedState } from '../session/scoped-state.ts';

/**
 * Keeps what a turn answered in the session's state: what its handler says, or else the text of the last message, when that is a reply. Of a
 * turn that waits for the caller, nothing.
 */
export function keepOutput<State>(session: Session<State>, key: string, result: TurnResult | void): void {
  if (result?.finishReason === 'interrupted') return;
  const output = result?.output ?? replyText(session);
  // A key of any scope, of which the state's type knows nothing.
  if (output !== undefined) (session.state as unknown as ScopedState).set(key, output as never);
}

function replyText<State>(session: Session<State>): string | undefined {
  const last = viewOf(session).messages.at(-1);
  if (last?.role !== 'model') return undefined;
  return last.content.map(({ text }) => text ?? '').join('');
}
