import type { GenkitPlugin } from 'genkit/plugin';
import { isStore, isString } from '../src/agent/define/options.ts';
import { attachDefaults, type RuntimeDefaults as AgentRuntimeOptions } from '../src/agent/define/runtime-defaults.ts';
import { registerSessionActions } from '../src/agent/define/session-actions.ts';
import { checkOptions, isFunction, isObject, isOneOf, isWhole } from '../src/store/check-options.ts';

export type { AgentRuntimeOptions };

/** The plugin's name, and the namespace of its actions. */
const NAME = 'genkitx-agents';

/**
 * The Genkit plugin of this package. It gives agents without a `store` of their own the default one (an agent opts out with
 * `state: 'client'`), and registers the actions that list, delete and prune the sessions of that store, as far as it can.
 *
 * @throws `INVALID_ARGUMENT` for an unknown or impossible option.
 * @example
 * const ai = genkit({ plugins: [agentRuntime({ store: new FileSessionStore('./.genkit/snapshots') })] });
 */
export function agentRuntime(defaults: AgentRuntimeOptions = {}): GenkitPlugin {
  checkOptions('agentRuntime', defaults, {
    store: isStore,
    background: isObject,
    onConflict: isOneOf('reject', 'queue', 'branch'),
    storeTimeoutMs: isWhole(1),
    appName: isString,
    userId: isFunction,
  });
  const { store } = defaults;
  // Genkit calls the plugin while it is constructed, before any agent can be defined.
  return ({ registry }) => {
    attachDefaults(registry, { ...defaults });
    return {
      name: NAME,
      initializer: () => {
        if (store) registerSessionActions(registry, NAME, store);
      },
    };
  };
}
