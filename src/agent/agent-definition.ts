import type { ClientTransform, SessionState, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { failedPrecondition, invalidArgument } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import { checkOptions, isFunction, type OptionCheck } from '../store/options.ts';
import { defaultsOf } from './runtime-defaults.ts';
import type { AgentStateOptions, GenkitOrRegistry, SchemaOf } from './types.ts';

/** An agent's settled configuration. */
export interface AgentDefinition<State = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly registry: Registry;
  /** Absent: the callers keep the state. */
  readonly store?: SessionStore<State>;
  readonly stateSchema?: SchemaOf<State>;
  readonly clientTransform?: ClientTransform<State>;
}

const anything: OptionCheck = () => undefined;

/** What is taken for a store: the two methods that every one has. */
export const isStore: OptionCheck = (value) => {
  const { getSnapshot, saveSnapshot } = (value ?? {}) as { [name: string]: unknown };
  const isOne = typeof getSnapshot === 'function' && typeof saveSnapshot === 'function';
  return isOne ? undefined : 'a session store, with getSnapshot and saveSnapshot';
};

const isSchema: OptionCheck = (value) => {
  const { safeParseAsync, _def } = (value ?? {}) as { [name: string]: unknown };
  return typeof safeParseAsync === 'function' && _def !== undefined ? undefined : "a Zod schema, made with genkit's z";
};

const isTransform: OptionCheck = (value) => {
  const { state, chunk } = (value ?? {}) as { [name: string]: unknown };
  const isOne = [state, chunk].every((member) => member === undefined || isFunction(member) === undefined);
  return typeof value === 'object' && value !== null && isOne
    ? undefined
    : "an object with functions 'state' and 'chunk'";
};

const isString: OptionCheck = (value) => (typeof value === 'string' ? undefined : 'a string');

const STATE_OPTIONS = { stateSchema: isSchema, store: isStore, state: anything, clientTransform: isTransform };

const PROMPT_AGENT_OPTIONS = { ...STATE_OPTIONS, promptName: isString, description: isString, promptInput: anything };

const CUSTOM_AGENT_OPTIONS = { ...STATE_OPTIONS, name: isString, description: isString };

/**
 * Refuses what an agent of the kind does not take. Of `defineAgent` only the own options are looked at: the others are the prompt's.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertConfig(
  definer: 'defineAgent' | 'definePromptAgent' | 'defineCustomAgent',
  config: unknown,
): void {
  if (typeof config !== 'object' || config === null) throw invalidArgument(`${definer} needs a configuration.`);
  if (definer === 'definePromptAgent') return checkOptions(definer, config, PROMPT_AGENT_OPTIONS);
  if (definer === 'defineCustomAgent') return checkOptions(definer, config, CUSTOM_AGENT_OPTIONS);
  const own = Object.entries(config).filter(([name]) => Object.hasOwn(STATE_OPTIONS, name));
  checkOptions(definer, Object.fromEntries(own), STATE_OPTIONS);
}

function registryOf(ai: GenkitOrRegistry): Registry {
  return 'registry' in ai ? ai.registry : ai;
}

/**
 * Settles an agent's configuration: its store is its own, or the default one.
 *
 * @throws `INVALID_ARGUMENT` when the configuration contradicts itself.
 */
export function settleAgent<State>(
  ai: GenkitOrRegistry,
  identity: { name: string; description?: string },
  options: AgentStateOptions<State>,
): AgentDefinition<State> {
  const { name, description } = identity;
  if (typeof name !== 'string' || name.trim() === '') throw invalidArgument('An agent needs a name.');
  if (options.state !== undefined && options.state !== 'client') {
    throw invalidArgument(`Agent '${name}': state must be 'client' or left out.`);
  }
  if (options.state === 'client' && options.store) {
    throw invalidArgument(`Agent '${name}' has both a store and state: 'client'; leave one of them out.`);
  }
  const registry = registryOf(ai);
  // Neither the default store nor one that agents share is typed by any one agent's state.
  const store = (options.store ?? (options.state ? undefined : defaultsOf(registry).store)) as
    | SessionStore<State>
    | undefined;
  const { stateSchema, clientTransform } = options;
  return { name, description, registry, store, stateSchema, clientTransform };
}

/**
 * @throws `FAILED_PRECONDITION` for an agent without one.
 */
export function mustHaveStore<State>(agent: AgentDefinition<State>, operation: string): SessionStore<State> {
  if (agent.store) return agent.store;
  throw failedPrecondition(
    `${operation} needs a store, and agent '${agent.name}' has none: give it a 'store', or agentRuntime() a default one.`,
  );
}

/** The state as the callers may see it. A transform gets a copy: it may change what it gets. */
export function toClientState<State>(agent: AgentDefinition<State>, state: SessionState<State>): SessionState {
  return agent.clientTransform?.state ? agent.clientTransform.state(copyJson(state)) : state;
}
