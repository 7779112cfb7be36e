import { invalidArgument } from '../errors.ts';
import { formatPointer } from '../json/pointer.ts';
import type { AgentDefinition } from './agent-definition.ts';

/** More problems than these are not listed. */
const MAX_PROBLEMS = 5;

/**
 * Checks the custom state against the agent's `stateSchema`, if it has one. A session that has no custom state yet is fine.
 *
 * @param where What the state belongs to, as the message calls it.
 * @throws `INVALID_ARGUMENT` with the path of what is wrong.
 */
export async function assertCustomState<State>(
  agent: AgentDefinition<State>,
  custom: unknown,
  where: string,
): Promise<void> {
  if (!agent.stateSchema || custom === undefined) return;
  const checked = await agent.stateSchema.safeParseAsync(custom);
  if (checked.success) return;
  const problems = checked.error.issues.map(({ path, message }) => `${formatPointer(['custom', ...path])}: ${message}`);
  const rest = problems.length - MAX_PROBLEMS;
  throw invalidArgument(
    `The custom state of ${where} does not fit the stateSchema of agent '${agent.name}': ` +
      problems.slice(0, MAX_PROBLEMS).join('; ') +
      (rest > 0 ? `; and ${rest} more.` : '.'),
  );
}
