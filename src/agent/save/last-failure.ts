import type { SessionSnapshot } from 'genkit/beta';
import type { RuntimeError } from '../../session/turn.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/** The last turn of an agent that failed in the background of this process. */
const lastFailures = new WeakMap<object, { readonly snapshotId: string; readonly error: RuntimeError }>();

/**
 * Remembers the error of the agent's last failed detached turn for readers in this process. Such a turn has no output with the error as it was
 * thrown, only its stored snapshot, whose error is redacted.
 */
export function noteFailure<State>(agent: AgentDefinition<State>, snapshotId: string, error: RuntimeError): void {
  lastFailures.set(agent, { snapshotId, error });
}

/** The snapshot, with the error as it was thrown if it is the one that {@link noteFailure} noted last. */
export function withFailure<State>(
  agent: AgentDefinition<State>,
  snapshot: SessionSnapshot<State> | undefined,
): SessionSnapshot<State> | undefined {
  const last = lastFailures.get(agent);
  return snapshot?.error && last?.snapshotId === snapshot.snapshotId ? { ...snapshot, error: last.error } : snapshot;
}
