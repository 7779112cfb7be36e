import type { ClientTransform, SessionState, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { failedPrecondition, invalidArgument } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import { defaultsOf } from './runtime-defaults.ts';
import type { AgentStateOptions, BackgroundOptions, GenkitOrRegistry, SchemaOf } from './types.ts';

/** An agent's settled configuration. */
export interface AgentDefinition<State = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly registry: Registry;
  /** Absent: the callers keep the state. */
  readonly store?: SessionStore<State>;
  readonly stateSchema?: SchemaOf<State>;
  readonly clientTransform?: ClientTransform<State>;
  readonly onAbort: 'discard' | 'keep';
  readonly background: BackgroundSettings;
}

/** {@link BackgroundOptions} with nothing left open. */
export type BackgroundSettings = Readonly<Required<BackgroundOptions>>;

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
  const defaults = defaultsOf(registry);
  const store = (options.store ?? (options.state ? undefined : defaults.store)) as SessionStore<State> | undefined;
  const { stateSchema, clientTransform, onAbort = 'discard' } = options;
  if (onAbort !== 'discard' && onAbort !== 'keep') {
    throw invalidArgument(`Agent '${name}': onAbort must be 'discard' or 'keep'.`);
  }
  const background = settleBackground(name, { ...defaults.background, ...options.background });
  return { name, description, registry, store, stateSchema, clientTransform, onAbort, background };
}

function settleBackground(name: string, options: BackgroundOptions): BackgroundSettings {
  const { heartbeatIntervalMs = 30_000, leaseMs = 60_000 } = options;
  for (const [option, value] of Object.entries({ heartbeatIntervalMs, leaseMs })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw invalidArgument(`Agent '${name}': background.${option} must be a whole number of ms above 0.`);
    }
  }
  if (leaseMs <= heartbeatIntervalMs) {
    throw invalidArgument(
      `Agent '${name}': background.leaseMs (${leaseMs}) must be longer than heartbeatIntervalMs (${heartbeatIntervalMs}): ` +
        `a run that is alive would count as dead between two heartbeats.`,
    );
  }
  return { heartbeatIntervalMs, leaseMs };
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
