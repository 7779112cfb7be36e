import type { ClientTransform, SessionState, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { failedPrecondition } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import type { ContextWindow } from '../context/types.ts';
import type { AttachedMemory } from '../memory/attach/types.ts';
import type { ScopeId, RecordStore, SnapshotStore, StoreCapabilities } from '../store/contract.ts';
import type { KeyQueue } from '../store/parts/key-queue.ts';
import type { StateSetting } from '../session/state/session-state.ts';
import type { StateSigner } from './define/state-signature.ts';
import type { BackgroundOptions, OnConflict, SchemaOf, UserIdOf } from './types.ts';

/** An agent's configuration with all defaults applied. */
export interface AgentDefinition<State = unknown> {
  readonly name: string;
  readonly description?: string;
  readonly registry: Registry;
  /** Optional. Without a store the callers keep the state. */
  readonly store?: SessionStore<State>;
  readonly stateSchema?: SchemaOf<State>;
  readonly clientTransform?: ClientTransform<State>;
  /** Signs the states of an agent without a store. */
  readonly signer: StateSigner | undefined;
  /** True when the callers keep unsigned state and are not declared trusted. */
  readonly isStateForgeable: boolean;
  readonly clientResources: boolean;
  /** Hides its snapshots from other agents. */
  readonly isPrivate: boolean;
  /** Lets each user see the sessions of other users. */
  readonly isForAllUsers: boolean;
  readonly traceState: boolean;
  readonly onAbort: 'discard' | 'keep';
  readonly onConflict: OnConflict | undefined;
  readonly background: BackgroundSettings;
  /** Selects what its model is sent. Default: the whole conversation. */
  readonly window?: ContextWindow;
  /** Its memory across sessions. */
  readonly memory: AttachedMemory | undefined;
  /** Its turns call the model of its prompt, with the memories that fit. Default: its turns are application code. */
  readonly isPromptAgent?: boolean;
  /** The scopes of its sessions' states. */
  readonly scopes: AgentScopes;
  /** Queue of turns by session id. */
  readonly turns: KeyQueue;
  /** Capabilities of the store. */
  readonly can: Readonly<StoreCapabilities>;
  /** The store returns copies or frozen values. A store that declares capabilities keeps this rule. */
  readonly readsNeverChange: boolean;
  /** The store as it was given, without the time limits of `store`; the same object for all agents that share it. */
  readonly sharedStore?: object;
}

/** The scopes of an agent's `session.state`. */
export interface AgentScopes {
  readonly appName: string;
  readonly userIdOf: UserIdOf;
  /** The shared scopes to read when a turn begins. */
  readonly used: readonly ScopeId['scope'][];
  readonly outputKey: string | undefined;
  /** The custom state refuses new members whose names start with the prefix of another scope. */
  readonly reservesPrefixes: boolean;
  /** Settings common to the states of all its sessions. */
  readonly setting: StateSetting;
}

/** {@link BackgroundOptions} with all defaults applied. */
export type BackgroundSettings = Readonly<
  Required<Omit<BackgroundOptions, 'recoverContexts' | 'keepContext'>> &
    Pick<BackgroundOptions, 'recoverContexts' | 'keepContext'>
>;

/** @throws `FAILED_PRECONDITION` when the agent has no store. */
export function mustHaveStore<State>(agent: AgentDefinition<State>, operation: string): SessionStore<State> {
  if (agent.store) return agent.store;
  throw failedPrecondition(
    `${operation} needs a store, but agent '${agent.name}' has none. Set its 'store', or the default 'store' of agentRuntime().`,
  );
}

/** The store, if it lists sessions with their owners. */
export function listedStore<State>({
  can,
  store,
}: Pick<AgentDefinition<State>, 'can' | 'store'>): SnapshotStore | undefined {
  return can.list && can.details ? (store as unknown as SnapshotStore) : undefined;
}

/** The store, if it keeps session records. */
export function recordsOf<State>({
  can,
  store,
}: Pick<AgentDefinition<State>, 'can' | 'store'>): (SnapshotStore & RecordStore) | undefined {
  return can.records ? (store as unknown as SnapshotStore & RecordStore) : undefined;
}

/** The state as callers may see it. The transform gets a copy because it may change its argument. */
export function toClientState<State>(agent: AgentDefinition<State>, state: SessionState<State>): SessionState {
  return agent.clientTransform?.state ? agent.clientTransform.state(copyJson(state)) : state;
}
