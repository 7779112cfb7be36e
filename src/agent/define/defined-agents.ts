import { GenkitError } from 'genkit';
import type { Registry } from 'genkit/registry';
import { quote } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { AgentFn } from '../types.ts';

/** An agent's definition, and the function that runs its turns. */
export interface DefinedAgent {
  readonly agent: AgentDefinition;
  readonly fn: AgentFn;
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package find each other's agents. */
const AGENTS = Symbol.for('genkitx-agents.defined-agents');

type WithAgents = Registry & { [AGENTS]?: Map<string, DefinedAgent> };

/**
 * Refuses a second agent of one name, because one of the two could never be reached. In development a changed module is loaded again, and its
 * agents replace the earlier ones.
 *
 * @throws `ALREADY_EXISTS` when the registry has an agent of the name.
 */
export function assertNameIsFree(registry: WithAgents, name: string): void {
  const { GENKIT_ENV, NODE_ENV } = process.env;
  if (!registry[AGENTS]?.has(name) || GENKIT_ENV === 'dev' || NODE_ENV === 'development') return;
  const message =
    `Agent ${quote(name)} is already defined in this Genkit instance. Rename one of the two, ` +
    `or define it in another instance.`;
  throw new GenkitError({ status: 'ALREADY_EXISTS', message });
}

/** Stores an agent's definition; an earlier one of the same name is replaced. */
export function noteAgent(registry: Registry, defined: DefinedAgent): void {
  const own: WithAgents = registry;
  if (!own[AGENTS]) Object.defineProperty(own, AGENTS, { value: new Map(), configurable: true });
  own[AGENTS]!.set(defined.agent.name, defined);
}

/** The agents of the registry and of its parents. */
export function definedAgents(registry: Registry): DefinedAgent[] {
  const agents = new Map<string, DefinedAgent>();
  for (let at: WithAgents | undefined = registry; at; at = at.parent) {
    for (const [name, defined] of at[AGENTS] ?? []) if (!agents.has(name)) agents.set(name, defined);
  }
  return [...agents.values()];
}
