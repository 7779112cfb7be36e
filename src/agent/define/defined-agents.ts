import { GenkitError } from 'genkit';
import type { Registry } from 'genkit/registry';
import { quote } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { AgentFn } from '../types.ts';

/** An agent as it was defined: what it is, and what runs its turns. */
export interface DefinedAgent {
  readonly agent: AgentDefinition;
  readonly fn: AgentFn;
}

/** A registered symbol: the ES module and the CommonJS copy of the package find each other's agents. */
const AGENTS = Symbol.for('genkitx-agents.defined-agents');

type WithAgents = Registry & { [AGENTS]?: Map<string, DefinedAgent> };

/**
 * In development a module that was changed is loaded again, and its agents take the place of the earlier ones. Otherwise two agents of one name
 * are a mistake, of which nothing but an agent that is not reached would tell.
 *
 * @throws `ALREADY_EXISTS` when the registry has an agent of the name.
 */
export function assertNameIsFree(registry: WithAgents, name: string): void {
  const { GENKIT_ENV, NODE_ENV } = process.env;
  if (!registry[AGENTS]?.has(name) || GENKIT_ENV === 'dev' || NODE_ENV === 'development') return;
  const message =
    `There is an agent ${quote(name)} in this Genkit instance already. Give one of the two another name, ` +
    `or define it in another instance.`;
  throw new GenkitError({ status: 'ALREADY_EXISTS', message });
}

/** Notes an agent; one of the same name takes the place of the earlier. */
export function noteAgent(registry: Registry, defined: DefinedAgent): void {
  const own: WithAgents = registry;
  if (!own[AGENTS]) Object.defineProperty(own, AGENTS, { value: new Map(), configurable: true });
  own[AGENTS]!.set(defined.agent.name, defined);
}

/** The agents of the registry and of those that it stands on. */
export function definedAgents(registry: Registry): DefinedAgent[] {
  const agents = new Map<string, DefinedAgent>();
  for (let at: WithAgents | undefined = registry; at; at = at.parent) {
    for (const [name, defined] of at[AGENTS] ?? []) if (!agents.has(name)) agents.set(name, defined);
  }
  return [...agents.values()];
}
