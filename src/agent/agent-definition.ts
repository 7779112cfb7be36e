import type { ClientTransform, SessionState, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { failedPrecondition } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import type { ScopeId, StoreCapabilities } from '../store/contract.ts';
import type { KeyQueue } from '../store/key-queue.ts';
import type { StateSetting } from '../session/state/session-state.ts';
import type { StateSigner } from './define/state-signature.ts';
import type { BackgroundOptions, OnConflict, SchemaOf, UserIdOf } from './types.ts';

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

/** The scopes of an agent's `session.state`. */
export interface AgentScopes {
  readonly appName: string;
  readonly userIdOf: UserIdOf;
  /** The shared scopes that are read when a turn begins. */
  readonly used: readonly ScopeId['scope'][];
  readonly outputKey: string | undefined;
  /** The custom state is given no new members that are named like keys of other scopes. */
  readonly reservesPrefixes: boolean;
  /** What all its sessions' states have. */
  readonly setting: StateSetting;
}

/** {@link BackgroundOptions} with nothing left open but its functions. */
export type BackgroundSettings = Readonly<
  Required<Omit<BackgroundOptions, 'recoverContexts' | 'keepContext'>> &
    Pick<BackgroundOptions, 'recoverContexts' | 'keepContext'>
>;
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
