import type { SessionSnapshot } from 'genkit/beta';
import type { AgentDefinition } from './agent-definition.ts';

/** The agent that keeps a snapshot to itself. */
export type OwnedSnapshot<State> = SessionSnapshot<State> & { ownedBy?: string };

/** What the runtime writes into snapshots for itself. */
const INTERNAL_FIELDS = new Set(['backgroundRun', 'resumption', 'ownedBy', 'sessionLog', 'waitingSince']);

/** The snapshot as clients may see it: what the runtime notes in it is nobody else's concern. */
export function withoutInternals<S extends object>(snapshot: S): S {
  return Object.fromEntries(Object.entries(snapshot).filter(([name]) => !INTERNAL_FIELDS.has(name))) as S;
}

/** Whether the snapshot is another agent's, which does not share its sessions: to this agent it is not there. */
export function isHidden<State>(
  { name }: AgentDefinition<State>,
  snapshot: SessionSnapshot<State> | undefined,
): boolean {
  const { ownedBy = name } = (snapshot ?? {}) as OwnedSnapshot<State>;
  return ownedBy !== name;
}

/** What a snapshot of the agent says of whose it is. */
export function ownershipOf<State>({ name, isPrivate }: AgentDefinition<State>): { ownedBy?: string } {
  return isPrivate ? { ownedBy: name } : {};
}
