import type { SessionStore } from 'genkit/beta';
import type { GenkitPlugin } from 'genkit/plugin';
import type { Registry } from 'genkit/registry';
import { isStore } from '../src/agent/define/options.ts';
import { attachDefaults, type RuntimeDefaults } from '../src/agent/define/runtime-defaults.ts';
import { registerSessionActions } from '../src/agent/define/session-actions.ts';
import type { Inspector } from '../src/inspector/inspector.ts';
import type { InspectorOptions } from '../src/inspector/options.ts';
import { failedPrecondition, invalidArgument } from '../src/errors.ts';
import { mountOn } from '../src/server/mounted.ts';
import { checkOptions, isFunction, isObject, isOneOf, isString, isWhole } from '../src/store/check-options.ts';

/** Options of {@link agentRuntime}: defaults of the agents, and what is served beside them. */
export interface AgentRuntimeOptions extends RuntimeDefaults {
  /**
   * Serves the inspector of the default store beside the agents of this Genkit instance, by `agentRouter` and `agentHandler`; `docs/inspector.md`.
   * Default: it is not served.
   */
  readonly inspector?: MountedInspectorOptions;
}

/** The inspector in one's own server. */
export interface MountedInspectorOptions extends Pick<
  InspectorOptions,
  'memory' | 'memorySearch' | 'context' | 'readOnly' | 'hosts' | 'pollIntervalMs' | 'nodeEnv' | 'onAddress'
> {
  /** The path below that of the agents, say `/inspect`. */
  readonly path: string;
}

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
    inspector: isObject,
  });
  const { inspector, ...runtime } = defaults;
  const { store } = runtime;
  if (inspector) assertMountable(inspector, store);
  // Genkit calls the plugin while it is constructed, before any agent can be defined.
  return ({ registry }) => {
    attachDefaults(registry, runtime);
    if (inspector && store) mountInspector(registry, store, inspector);
    return {
      name: NAME,
      initializer: () => {
        if (store) registerSessionActions(registry, NAME, store);
      },
    };
  };
}

function assertMountable({ path }: MountedInspectorOptions, store: SessionStore | undefined): void {
  if (!store)
    throw failedPrecondition('agentRuntime: the inspector shows the sessions of the default store: give a store.');
  if (typeof path === 'string' && /^(\/[\w.~-]+)+$/.test(path)) return;
  throw invalidArgument("agentRuntime: inspector.path must be a path such as '/inspect'.");
}

/** Loaded with its first request. One for each place where the agents are served: its cookie holds below it. */
function mountInspector(registry: Registry, store: SessionStore, { path, ...options }: MountedInspectorOptions): void {
  const made = new Map<string, Promise<Inspector>>();
  const make = async (basePath: string): Promise<Inspector> => {
    const { inspector } = await import('../src/inspector/inspector.ts');
    return inspector({ ...options, store, agents: { registry }, basePath });
  };
  mountOn(registry, {
    path,
    handlerAt: (basePath) => {
      const known = made.get(basePath) ?? make(basePath);
      made.set(basePath, known);
      return known;
    },
  });
}
