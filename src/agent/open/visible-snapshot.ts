import type { ActionContext } from 'genkit';
import type { SessionSnapshot } from 'genkit/beta';
import { logOf, ownedByOf } from '../../session/log/session-log.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { callerOf } from './agent-scopes.ts';

/** Fields that the runtime writes into snapshots for its own use. */
const INTERNAL_FIELDS = new Set(['backgroundRun', 'resumption', 'ownedBy', 'sessionLog', 'waitingSince']);

/** The snapshot as clients may see it, without the runtime's own fields. */
export function withoutInternals<S extends object>(snapshot: S): S {
  return Object.fromEntries(Object.entries(snapshot).filter(([name]) => !INTERNAL_FIELDS.has(name))) as S;
}

/**
 * Whether this call must not see the snapshot: it belongs to an agent that does not share its sessions, or to a session that another user owns.
 */
export function isHidden<State>(
  agent: AgentDefinition<State>,
  snapshot: SessionSnapshot<State> | undefined,
  context: ActionContext | undefined,
): boolean {
  if (!snapshot) return false;
  const { ownedBy = agent.name } = ownedByOf(snapshot);
  if (ownedBy !== agent.name) return true;
  const { owner } = logOf(snapshot);
  return owner !== undefined && !agent.isForAllUsers && callerOf(agent, context).userId !== owner.userId;
}

/** The owner fields that the agent writes into its snapshots. */
export function ownershipOf<State>({ name, isPrivate }: AgentDefinition<State>): { ownedBy?: string } {
  return isPrivate ? { ownedBy: name } : {};
}
