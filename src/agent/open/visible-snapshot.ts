import type { ActionContext } from 'genkit';
import type { SessionSnapshot } from 'genkit/beta';
import { logOf } from '../../session/log/session-log.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { callerOf } from './agent-scopes.ts';

/** The agent that keeps a snapshot to itself. */
export type OwnedSnapshot<State> = SessionSnapshot<State> & { ownedBy?: string };

/** What the runtime writes into snapshots for itself. */
const INTERNAL_FIELDS = new Set(['backgroundRun', 'resumption', 'ownedBy', 'sessionLog', 'waitingSince']);

/** The snapshot as clients may see it: what the runtime notes in it is nobody else's concern. */
export function withoutInternals<S extends object>(snapshot: S): S {
  return Object.fromEntries(Object.entries(snapshot).filter(([name]) => !INTERNAL_FIELDS.has(name))) as S;
}

/**
 * Whether the snapshot is of another agent that does not share its sessions, or of a session that another user owns: for this call it is not
 * there.
 */
export function isHidden<State>(
  agent: AgentDefinition<State>,
  snapshot: SessionSnapshot<State> | undefined,
  context: ActionContext | undefined,
): boolean {
  if (!snapshot) return false;
  const { ownedBy = agent.name } = snapshot as OwnedSnapshot<State>;
  if (ownedBy !== agent.name) return true;
  const { owner } = logOf(snapshot);
  return owner !== undefined && !agent.isForAllUsers && callerOf(agent, context).userId !== owner.userId;
}

/** What a snapshot of the agent says of whose it is. */
export function ownershipOf<State>({ name, isPrivate }: AgentDefinition<State>): { ownedBy?: string } {
  return isPrivate ? { ownedBy: name } : {};
}
