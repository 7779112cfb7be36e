import type { z } from 'genkit';
import type { ClientTransform, PromptConfig, SessionState, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { failedPrecondition, invalidArgument } from '../../errors.ts';
import { copyJson } from '../../json/value.ts';
import { capabilitiesOf, FOREIGN_CAPABILITIES, type StoreCapabilities } from '../../store/contract.ts';
import { KeyQueue } from '../../store/key-queue.ts';
import { checkOptions, isBoolean, isFunction, isObject, isWhole, type OptionCheck } from '../../store/options.ts';
import { settleScopes, type AgentScopes } from '../open/agent-scopes.ts';
import { boundedStore } from '../save/store-calls.ts';
import { assertNameIsFree } from './defined-agents.ts';
import { StateSigner } from './state-signature.ts';
import { defaultsOf } from './runtime-defaults.ts';
import type {
  AgentConfig,
  AgentStateOptions,
  BackgroundOptions,
  CustomAgentConfig,
  GenkitOrRegistry,
  OnConflict,
  PromptAgentConfig,
  SchemaOf,
} from './types.ts';

/** An agent's settled configuration. */
export interface AgentDefinition<State = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly registry: Registry;
  /** Absent: the callers keep the state. */
  readonly store?: SessionStore<State>;
  readonly stateSchema?: SchemaOf<State>;
  readonly clientTransform?: ClientTransform<State>;
  /** Of an agent without a store: who signs its states. */
  readonly signer: StateSigner | undefined;
  /** Nothing says that a state which the callers keep was issued, and nobody vouches for the callers. */
  readonly isStateForgeable: boolean;
  readonly clientResources: boolean;
  /** Of other agents than this its snapshots are hidden. */
  readonly isPrivate: boolean;
  /** Users see the sessions of other users. */
  readonly isForAllUsers: boolean;
  readonly traceState: boolean;
  readonly onAbort: 'discard' | 'keep';
  readonly onConflict: OnConflict | undefined;
  readonly background: BackgroundSettings;
  /** What its sessions' states have. */
  readonly scopes: AgentScopes;
  /** Turns that wait for each other, by their sessions. */
  readonly turns: KeyQueue;
  /** What the store can do. */
  readonly can: Readonly<StoreCapabilities>;
  /** What the store hands out is a copy, or frozen: the contract of those that declare capabilities says so. */
  readonly readsNeverChange: boolean;
  /** The store itself: agents that share one have it in common. */
  readonly sharedStore?: object;
}

/** {@link BackgroundOptions} with nothing left open but its functions. */
type BackgroundSettings = Readonly<
  Required<Omit<BackgroundOptions, 'recoverContexts' | 'keepContext'>> &
    Pick<BackgroundOptions, 'recoverContexts' | 'keepContext'>
>;
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

const isTurnOverrides: OptionCheck = (value) => {
  checkOptions('turnOverrides', value as object, { models: anything, config: isBoolean });
  return undefined;
};

export const isString: OptionCheck = (value) => (typeof value === 'string' ? undefined : 'a string');

/** Those that may be anything here are looked at when the agent is settled. */
const STATE_OPTIONS: Record<keyof AgentStateOptions, OptionCheck> = {
  stateSchema: isSchema,
  store: isStore,
  state: anything,
  clientTransform: isTransform,
  onAbort: anything,
  onConflict: anything,
  storeTimeoutMs: anything,
  background: isObject,
  signState: anything,
  clientResources: isBoolean,
  shareSessions: isBoolean,
  traceState: isBoolean,
  appName: isString,
  userId: isFunction,
  scopes: isObject,
  limits: isObject,
  outputKey: isString,
};

const SPEAKING_OPTIONS = { ...STATE_OPTIONS, promptInput: anything, turnOverrides: isTurnOverrides };

/** What a prompt takes is for Genkit to judge; only the names are looked at. */
const PROMPT_OPTIONS: Record<keyof PromptConfig, OptionCheck> = {
  name: isString,
  variant: anything,
  model: anything,
  config: anything,
  description: anything,
  input: anything,
  system: anything,
  prompt: anything,
  messages: anything,
  docs: anything,
  output: anything,
  maxTurns: anything,
  returnToolRequests: anything,
  metadata: anything,
  tools: anything,
  toolChoice: anything,
  use: anything,
  context: anything,
};

const OPTIONS = {
  defineAgent: { ...SPEAKING_OPTIONS, ...PROMPT_OPTIONS } satisfies Record<keyof AgentConfig, OptionCheck>,
  definePromptAgent: { ...SPEAKING_OPTIONS, promptName: isString, description: isString } satisfies Record<
    keyof PromptAgentConfig,
    OptionCheck
  >,
  defineCustomAgent: { ...STATE_OPTIONS, name: isString, description: isString } satisfies Record<
    keyof CustomAgentConfig,
    OptionCheck
  >,
};

/**
 * Refuses what an agent of the kind does not take.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertConfig(definer: keyof typeof OPTIONS, config: unknown): void {
  if (typeof config !== 'object' || config === null) throw invalidArgument(`${definer} needs a configuration.`);
  checkOptions(definer, config, OPTIONS[definer]);
}

/** Of what `defineAgent` takes the prompt's own configuration. */
export function promptConfigOf<I extends z.ZodTypeAny>(config: PromptConfig<I>): PromptConfig<I> {
  const own = Object.entries(config).filter(([name]) => !Object.hasOwn(SPEAKING_OPTIONS, name));
  const { system, ...rest } = Object.fromEntries(own) as unknown as PromptConfig<I>;
  // A text that is no template says the same as a part, which no turn has to render.
  return { ...rest, ...(system !== undefined && { system: isLiteral(system) ? [{ text: system }] : system }) };
}

/** What a template engine may take for an expression, an escape, a marker, front matter, or the end. */
const TEMPLATE_MARKS = ['{', '\\', '<', '---', '\0'];

/** Whether a template engine would answer the very text. */
function isLiteral(template: unknown): template is string {
  if (typeof template !== 'string' || template.trim() === '') return false;
  return !TEMPLATE_MARKS.some((mark) => template.includes(mark));
}

/** The registry of a `Genkit` instance, or the one given. */
export function registryOf(ai: GenkitOrRegistry): Registry {
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
  assertNameIsFree(registry, name);
  // Neither the default store nor one that agents share is typed by any one agent's state.
  const defaults = defaultsOf(registry);
  const store = (options.store ?? (options.state ? undefined : defaults.store)) as SessionStore<State> | undefined;
  const { signState = false } = options;
  if (signState !== false && store) {
    throw invalidArgument(
      `Agent '${name}' has a store, so there is no state of its callers to sign: leave signState out.`,
    );
  }
  const { stateSchema, clientTransform, onAbort = 'discard' } = options;
  const { onConflict = defaults.onConflict, storeTimeoutMs = defaults.storeTimeoutMs ?? 10_000 } = options;
  if (onConflict !== undefined && !CONFLICT_RULES.includes(onConflict)) {
    throw invalidArgument(`Agent '${name}': onConflict must be one of ${CONFLICT_RULES.join(', ')}.`);
  }
  assertMs(name, 'storeTimeoutMs', storeTimeoutMs);
  if (onAbort !== 'discard' && onAbort !== 'keep') {
    throw invalidArgument(`Agent '${name}': onAbort must be 'discard' or 'keep'.`);
  }
  const background = settleBackground(name, { ...defaults.background, ...options.background });
  const { appName = defaults.appName, userId = defaults.userId } = options;
  return {
    name,
    description,
    registry,
    store: store && boundedStore(store, storeTimeoutMs),
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
    scopes: settleScopes(name, { ...options, appName, userId }, store),
    turns: queueOf(store),
    can: store ? capabilitiesOf(store) : FOREIGN_CAPABILITIES,
    readsNeverChange: store !== undefined && 'capabilities' in store,
    sharedStore: store,
  };
}

/** Agents that share a store may share its sessions. */
const queues = new WeakMap<object, KeyQueue>();

function queueOf(store: object | undefined): KeyQueue {
  const queue = (store && queues.get(store)) ?? new KeyQueue();
  if (store) queues.set(store, queue);
  return queue;
}

const CONFLICT_RULES: readonly OnConflict[] = ['reject', 'queue', 'branch'];

function assertMs(name: string, option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw invalidArgument(`Agent '${name}': ${option} must be a whole number of ms above 0.`);
  }
}

function settleBackground(name: string, options: BackgroundOptions): BackgroundSettings {
  checkOptions(`Agent '${name}': background`, options, {
    heartbeatIntervalMs: isWhole(1),
    leaseMs: isWhole(1),
    maxAttempts: isWhole(0),
    recover: isBoolean,
    recoverContexts: isFunction,
    keepContext: isFunction,
  });
  const { heartbeatIntervalMs = 30_000, leaseMs = 60_000, maxAttempts = 3, recover = false } = options;
  if (leaseMs <= heartbeatIntervalMs) {
    throw invalidArgument(
      `Agent '${name}': background.leaseMs (${leaseMs}) must be longer than heartbeatIntervalMs (${heartbeatIntervalMs}): ` +
        `a run that is alive would count as dead between two heartbeats.`,
    );
  }
  const { recoverContexts, keepContext } = options;
  return { heartbeatIntervalMs, leaseMs, maxAttempts, recover, recoverContexts, keepContext };
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
