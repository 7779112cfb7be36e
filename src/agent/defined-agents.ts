import type { Registry } from 'genkit/registry';
import type { AgentDefinition } from './agent-definition.ts';
import type { AgentFn } from './types.ts';

/** An agent as it was defined: what it is, and what runs its turns. */
export interface DefinedAgent {
  readonly agent: AgentDefinition;
  readonly fn: AgentFn;
}

/** A registered symbol: the ES module and the CommonJS copy of the package find each other's agents. */
const AGENTS = Symbol.for('genkitx-agents.defined-agents');

type WithAgents = Registry & { [AGENTS]?: Map<string, DefinedAgent> };

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
