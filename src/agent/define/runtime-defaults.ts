import type { SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { isInTurn } from '../../session/state/session-state.ts';
import { guardTemplates } from '../../session/template-text.ts';
import type { BackgroundOptions, OnConflict, UserIdOf } from '../types.ts';

/** What agents of a registry get unless they say otherwise: the options of `agentRuntime`. */
export interface RuntimeDefaults {
  /** The store of agents that have none of their own; unless told they have none at all. */
  readonly store?: SessionStore;
  /** Heartbeats, leases and recovery of detached turns, in ms. An agent's own members replace these one by one. */
  readonly background?: BackgroundOptions;
  /**
   * What becomes of two turns on one session at the same time. Default: `'reject'` for a turn that names a `sessionId`, `'branch'` for one that
   * names a `snapshotId`.
   */
  readonly onConflict?: OnConflict;
  /** How long a call of the store may take, in ms, before the turn ends without it with `DEADLINE_EXCEEDED`; 10,000 unless told. */
  readonly storeTimeoutMs?: number;
  /** The app that the agents are part of: they share what belongs to a user and to the app. Unless told each is an app of its own. */
  readonly appName?: string;
  /** Names the user who calls, whose the session and the `user:` keys are. Default: `context.auth.uid`. */
  readonly userId?: UserIdOf;
}

/** A registered symbol: the ES module and the CommonJS copy of the package find each other's defaults. */
const DEFAULTS = Symbol.for('genkitx-agents.runtime-defaults');

type WithDefaults = Registry & { [DEFAULTS]?: RuntimeDefaults };

/** Sets the defaults of all agents that will be defined in the registry. */
export function attachDefaults(registry: Registry, defaults: RuntimeDefaults): void {
  Object.defineProperty(registry, DEFAULTS, { value: defaults, configurable: true });
  guardTemplates(registry, isInTurn);
}

/** The defaults of the registry, or of the one it stands on. */
export function defaultsOf(registry: Registry): RuntimeDefaults {
  for (let at: WithDefaults | undefined = registry; at; at = at.parent) {
    if (at[DEFAULTS]) return at[DEFAULTS];
  }
  return {};
}
