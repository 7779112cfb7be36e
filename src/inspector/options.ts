import type { ActionContext } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import type { MemoryManager } from '../memory/manager.ts';
import type { ServedAgent, ServedAgents } from '../server/request/routes.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isListOf,
  isString,
  isWhole,
  type OptionCheck,
} from '../store/check-options.ts';

/** Options of `inspector`. */
export interface InspectorOptions {
  /** The store of the sessions to show. Foreign stores can't list, so only single snapshots of them are shown. */
  store: SessionStore;
  /** Names the store for people. Default: its class. */
  storeName?: string;
  /** The agents that may continue from a snapshot. Default: none. */
  agents?: ServedAgents;
  /** The memories to show. For a memory store: `memoryManager(ai, { store, worker: false })`. Default: none. */
  memory?: MemoryManager;
  /** The context of all calls, which names the tenant; a function gets the tenant that the page requests. Default: none. */
  context?: ActionContext | ((tenant: string | undefined) => ActionContext | undefined);
  /** Refuses all writes. Default: `false`. */
  readOnly?: boolean;
  /** The path under which it is served, for example `/inspect`. Default: the root. */
  basePath?: string;
  /** Further host names, without a port, under which browsers may reach it, besides those of the loopback interface. Default: none. */
  hosts?: readonly string[];
  /** Milliseconds between two polls of the store while a page shows live data, at least 50. Default: 2,000. */
  pollIntervalMs?: number;
  /** The environment. With `production`, every answer is 404. Default: the environment variable `NODE_ENV`. */
  nodeEnv?: string;
  /**
   * Gets an address with a one-time token when a browser without a valid cookie opens the page. The address alone opens the inspector.
   * Default: writes it to the log.
   */
  onAddress?: (address: string) => void;
}

const isStore: OptionCheck = (value) =>
  typeof (value as Partial<SessionStore> | undefined)?.getSnapshot === 'function' ? undefined : 'a session store';

const isManager: OptionCheck = (value) =>
  typeof (value as Partial<MemoryManager> | null)?.quarantine?.list === 'function'
    ? undefined
    : 'a memory manager. For a memory store, pass memoryManager(ai, { store, worker: false })';

const isAgent = (value: Partial<ServedAgent> | null) => typeof value?.getSnapshotDataAction?.run === 'function';

const isAgents: OptionCheck = (value) =>
  typeof value === 'object' && value !== null && ('registry' in value || Object.values(value).every(isAgent))
    ? undefined
    : 'agents, in a list or by name, or a Genkit instance';

const isContext: OptionCheck = (value) =>
  typeof value === 'function' || (typeof value === 'object' && value !== null) ? undefined : 'an object or a function';

const isBasePath: OptionCheck = (value) =>
  typeof value === 'string' && /^(\/[\w.~-]+)*\/?$/.test(value) ? undefined : "a path such as '/inspect'";

/** @throws `INVALID_ARGUMENT` */
export function checkInspectorOptions(options: InspectorOptions): void {
  checkOptions(
    'inspector',
    { ...options, store: options?.store ?? null },
    {
      store: isStore,
      storeName: isString,
      agents: isAgents,
      memory: isManager,
      context: isContext,
      readOnly: isBoolean,
      basePath: isBasePath,
      hosts: isListOf(isString, 'names'),
      pollIntervalMs: isWhole(50, 3_600_000),
      nodeEnv: isString,
      onAddress: isFunction,
    },
  );
}
