import type { SessionStore } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import { capabilitiesOf, changesOf, FOREIGN_CAPABILITIES } from '../../store/contract.ts';
import { KeyQueue } from '../../store/parts/key-queue.ts';
import { checkOptions, isBoolean, isFunction, isTimerMs, isWhole } from '../../store/check-options.ts';
import { listedStore, type AgentDefinition, type BackgroundSettings } from '../agent-definition.ts';
import { resolveScopes } from '../open/agent-scopes.ts';
import { boundedStore } from '../save/store-calls.ts';
import type { AgentStateOptions, BackgroundOptions, GenkitOrRegistry } from '../types.ts';
import { assertNamesAreFree } from '../defined-agents.ts';
import { registryOf } from '../registry.ts';
import { StateSigner } from './state-signature.ts';
import { defaultsOf } from './runtime-defaults.ts';

/**
 * Checks an agent's configuration and applies the defaults, including the default store.
 *
 * @throws `INVALID_ARGUMENT` when the configuration contradicts itself.
 */
export function resolveAgent<State>(
  ai: GenkitOrRegistry,
  identity: { name: string; description?: string },
  options: AgentStateOptions<State>,
): AgentDefinition<State> {
  const { name, description } = identity;
  if (typeof name !== 'string' || name.trim() === '') throw invalidArgument('An agent needs a name.');
  if (options.state === 'client' && options.store) {
    throw invalidArgument(`Agent '${name}' has both a store and state: 'client'. Remove one of them.`);
  }
  const registry = registryOf(ai);
  assertNamesAreFree(registry, [`/agent/${name}`]);
  // The default store and shared stores are not typed by one agent's state.
  const defaults = defaultsOf(registry);
  const store = (options.store ?? (options.state ? undefined : defaults.store)) as SessionStore<State> | undefined;
  const { signState = false } = options;
  if (signState !== false && store) {
    throw invalidArgument(`Agent '${name}' has a store, so its callers send no state to verify. Remove signState.`);
  }
  const { stateSchema, clientTransform, onAbort = 'discard' } = options;
  const { onConflict = defaults.onConflict, storeTimeoutMs = defaults.storeTimeoutMs ?? 10_000 } = options;
  const background = resolveBackground(name, { ...defaults.background, ...options.background });
  const { appName = defaults.appName, userId = defaults.userId } = options;
  const bounded = store && boundedStore(store, storeTimeoutMs);
  const can = store ? capabilitiesOf(store) : FOREIGN_CAPABILITIES;
  const { memory } = options;
  const redact = changesOf(store).redactText?.bind(store);
  memory?.serve({ name, hasUserId: userId !== undefined, store: listedStore({ can, store: bounded }), redact });
  return {
    name,
    description,
    registry,
    store: bounded,
    stateSchema,
    clientTransform,
    signer: signState === false ? undefined : new StateSigner(name, signState),
    isStateForgeable: !store && options.signState === undefined,
    clientResources: options.clientResources ?? false,
    isPrivate: !(options.shareSessions ?? clientTransform === undefined),
    isForAllUsers: options.shareSessions === true,
    traceState: options.traceState ?? false,
    onAbort,
    onConflict,
    background,
    scopes: resolveScopes(name, { ...options, appName, userId }, store),
    turns: queueOf(store),
    can,
    memory,
    readsNeverChange: store !== undefined && 'capabilities' in store,
    sharedStore: store,
  };
}

/** Turn queues by store, because agents that share a store may share its sessions. */
const queues = new WeakMap<object, KeyQueue>();

function queueOf(store: object | undefined): KeyQueue {
  const queue = (store && queues.get(store)) ?? new KeyQueue();
  if (store) queues.set(store, queue);
  return queue;
}

function resolveBackground(name: string, options: BackgroundOptions): BackgroundSettings {
  checkOptions(`Agent '${name}': background`, options, {
    heartbeatIntervalMs: isTimerMs(1),
    leaseMs: isTimerMs(1),
    maxAttempts: isWhole(0),
    recover: isBoolean,
    recoverContexts: isFunction,
    keepContext: isFunction,
  });
  const { heartbeatIntervalMs = 30_000, leaseMs = 60_000, maxAttempts = 3, recover = false } = options;
  if (leaseMs <= heartbeatIntervalMs) {
    throw invalidArgument(
      `Agent '${name}': background.leaseMs (${leaseMs}) must be longer than heartbeatIntervalMs (${heartbeatIntervalMs}): ` +
        `otherwise a live run would count as dead between two heartbeats.`,
    );
  }
  const { recoverContexts, keepContext } = options;
  return { heartbeatIntervalMs, leaseMs, maxAttempts, recover, recoverContexts, keepContext };
}
