import type { SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { guardTemplates } from '../../session/template-text.ts';
import type { BackgroundOptions, OnConflict, UserIdOf } from '../types.ts';

/** Default options of the agents of a registry: the options of `agentRuntime`. */
export interface RuntimeDefaults {
  /** The store of agents that have none of their own. Default: no store. */
  readonly store?: SessionStore;
  /** Heartbeats, leases and recovery of detached turns. An agent's own members replace these one by one. Default: the defaults of its members. */
  readonly background?: BackgroundOptions;
  /**
   * How two concurrent turns on one session are handled. Default: `'reject'` for a turn that names a `sessionId`, `'branch'` for one that
   * names a `snapshotId`.
   */
  readonly onConflict?: OnConflict;
  /** How long one store call may take, in ms, before it fails with `DEADLINE_EXCEEDED`. Default: 10,000. */
  readonly storeTimeoutMs?: number;
  /** The app that the agents belong to: they share its `user:` and `app:` keys. Default: each agent is an app of its own. */
  readonly appName?: string;
  /** Returns the id of the calling user, who owns the session and the `user:` keys. Default: `context.auth.uid`. */
  readonly userId?: UserIdOf;
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package find each other's defaults. */
const DEFAULTS = Symbol.for('genkitx-agents.runtime-defaults');

type WithDefaults = Registry & { [DEFAULTS]?: RuntimeDefaults };

/** Sets the defaults of all agents that will be defined in the registry. */
export function attachDefaults(registry: Registry, defaults: RuntimeDefaults): void {
  Object.defineProperty(registry, DEFAULTS, { value: defaults, configurable: true });
  guardTemplates(registry);
}

/** The defaults of the registry or of its nearest parent that has any. */
export function defaultsOf(registry: Registry): RuntimeDefaults {
  for (let at: WithDefaults | undefined = registry; at; at = at.parent) {
    if (at[DEFAULTS]) return at[DEFAULTS];
  }
  return {};
}
