import { GenkitError } from 'genkit';
import type { Registry } from 'genkit/registry';
import { quote } from '../errors.ts';
import type { AgentDefinition } from './agent-definition.ts';
import type { AgentFn } from './types.ts';

/** An agent's definition, and the function that runs its turns. */
export interface DefinedAgent {
  readonly agent: AgentDefinition;
  readonly fn: AgentFn;
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package find each other's agents. */
const AGENTS = Symbol.for('genkitx-agents.defined-agents');

type WithAgents = Registry & { [AGENTS]?: Map<string, DefinedAgent> };

/** The registry's own action of a key. Genkit has only asynchronous lookups, but an agent is defined synchronously. */
function actionAt(registry: Registry, key: string): unknown {
  const actions = Reflect.get(registry, 'actionsById') as Record<string, unknown> | undefined;
  return actions && Object.hasOwn(actions, key) ? actions[key] : undefined;
}

/** In development a changed module is loaded again, and its agents replace the earlier ones. */
function isDevelopment(): boolean {
  const { GENKIT_ENV, NODE_ENV } = process.env;
  return GENKIT_ENV === 'dev' || NODE_ENV === 'development';
}

function nameTaken(key: string): GenkitError {
  const [, type, name] = /^\/([^/]*)\/(.*)$/s.exec(key)!;
  const advice = type === 'prompt' ? ' To make that prompt an agent, use definePromptAgent.' : '';
  const message = `This Genkit instance has another ${type} with the name ${quote(name!)}. Rename one of the two.${advice}`;
  return new GenkitError({ status: 'ALREADY_EXISTS', message });
}

/**
 * Refuses a name that another agent, of this package or of Genkit, already has: one of the two could not be reached.
 *
 * @param keys The keys of the actions that will be registered.
 * @throws `ALREADY_EXISTS`
 */
export function assertNamesAreFree(registry: Registry, keys: readonly string[]): void {
  const taken = keys.find((key) => actionAt(registry, key) !== undefined);
  if (taken !== undefined && !isDevelopment()) throw nameTaken(taken);
}

/**
 * Returns a check that these keys still refer to the actions of now. Genkit lets a later definition replace an earlier one.
 *
 * @returns A function that throws `ALREADY_EXISTS` when another definition took one of the names.
 */
export function keptNames(registry: Registry, keys: readonly string[]): () => void {
  const own = keys.map((key) => actionAt(registry, key));
  return () => {
    for (const [i, key] of keys.entries()) {
      if (actionAt(registry, key) !== own[i] && !isDevelopment()) throw nameTaken(key);
    }
  };
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
