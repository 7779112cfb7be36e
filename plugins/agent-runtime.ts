import type { SessionStore } from 'genkit/beta';
import type { GenkitPlugin } from 'genkit/plugin';
import type { Registry } from 'genkit/registry';
import { RUNTIME_OPTIONS } from '../src/agent/define/options.ts';
import { attachDefaults, type RuntimeDefaults } from '../src/agent/define/runtime-defaults.ts';
import { registerSessionActions } from '../src/agent/define/session-actions.ts';
import type { Inspector } from '../src/inspector/inspector.ts';
import type { InspectorOptions } from '../src/inspector/options.ts';
import { failedPrecondition, invalidArgument } from '../src/errors.ts';
import { mountOn } from '../src/server/mounted.ts';
import { checkOptions, isObject } from '../src/store/check-options.ts';

/** Options of {@link agentRuntime}: defaults of the agents, and the inspector. */
export interface AgentRuntimeOptions extends RuntimeDefaults {
  /**
   * Lets `agentRouter` and `agentHandler` serve the inspector of the default store beside the agents of this Genkit instance; see
   * `docs/inspector.md`. Default: no inspector.
   */
  readonly inspector?: MountedInspectorOptions;
}

/** Options of the inspector beside the agents. */
export interface MountedInspectorOptions extends Pick<
  InspectorOptions,
  'memory' | 'context' | 'readOnly' | 'hosts' | 'pollIntervalMs' | 'nodeEnv' | 'onAddress'
> {
  /** The path below that of the agents, for example `/inspect`. */
  readonly path: string;
}

/** The plugin's name, and the namespace of its actions. */
const NAME = 'genkitx-agents';

/**
 * The Genkit plugin of this package. Agents without a `store` of their own get the default store (an agent opts out with
 * `state: 'client'`). It also registers actions to list, delete and prune the sessions of that store, as far as the store can.
 *
 * @throws `INVALID_ARGUMENT` for an unknown or impossible option.
 * @example
 * const ai = genkit({ plugins: [agentRuntime({ store: new FileSessionStore('./.genkit/snapshots') })] });
 */
export function agentRuntime(defaults: AgentRuntimeOptions = {}): GenkitPlugin {
  checkOptions('agentRuntime', defaults, { ...RUNTIME_OPTIONS, inspector: isObject });
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

/** Loads the inspector with its first request. Makes one for each path at which the agents are served: its cookie is valid below it. */
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
