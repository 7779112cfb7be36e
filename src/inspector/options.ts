import type { ActionContext } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import type { MemoryManager } from '../memory/manager.ts';
import type { MemorySearch } from '../memory/search/memory-search.ts';
import type { ServedAgents } from '../server/request/routes.ts';
import { checkOptions, isBoolean, isFunction, isString, isWhole, type OptionCheck } from '../store/check-options.ts';
import type { MemoryStore } from '../store/memory/contract.ts';

/** Options of `inspector`. */
export interface InspectorOptions {
  /** The sessions to look at. A foreign store shows single snapshots only: it can't list. */
  store: SessionStore;
  /** Names the store for people. Default: its class. */
  storeName?: string;
  /** The agents that may continue from a snapshot. Default: none. */
  agents?: ServedAgents;
  /** The memories to look at. A store alone has no quarantine. Default: none. */
  memory?: MemoryManager | MemoryStore;
  /** Searches the memories of a store alone; the manager has its own. Default: a store alone is not searched. */
  memorySearch?: Pick<MemorySearch, 'search'>;
  /** The context of all calls, which names the tenant; a function is given the tenant that the page asks for. Default: none. */
  context?: ActionContext | ((tenant: string | undefined) => ActionContext | undefined);
  /** Refuses everything that writes. Default: `false`. */
  readOnly?: boolean;
  /** The path under which it is served, say `/inspect`. Default: the root. */
  basePath?: string;
  /** Names of hosts, without a port, under which browsers may reach it beside those of the loopback interface. Default: none. */
  hosts?: readonly string[];
  /** Milliseconds between two looks at the store while a page shows something live, at least 50. Default: 2,000. */
  pollIntervalMs?: number;
  /** In place of the environment's `NODE_ENV`. While that is `production`, every request is answered with 404. Default: `NODE_ENV`. */
  nodeEnv?: string;
  /**
   * Gets an address with a one-time token, when a browser without a valid cookie asks for the page. It is all that one needs to open the inspector.
   * Default: it goes to the log.
   */
  onAddress?: (address: string) => void;
}

const isStore: OptionCheck = (value) =>
  typeof (value as Partial<SessionStore> | undefined)?.getSnapshot === 'function' ? undefined : 'a session store';

const isMemory: OptionCheck = (value) => {
  const { query, quarantine } = (value ?? {}) as { query?: unknown; quarantine?: unknown };
  return typeof query === 'function' || typeof quarantine === 'object'
    ? undefined
    : 'a memory manager or a memory store';
};

const isSearch: OptionCheck = (value) =>
  typeof (value as Partial<MemorySearch> | undefined)?.search === 'function' ? undefined : 'a MemorySearch';

const isAgents: OptionCheck = (value) =>
  typeof value === 'object' && value !== null ? undefined : 'agents, in a list or by name, or a Genkit instance';

const isContext: OptionCheck = (value) =>
  typeof value === 'function' || (typeof value === 'object' && value !== null) ? undefined : 'an object or a function';

const isBasePath: OptionCheck = (value) =>
  typeof value === 'string' && /^(\/[\w.~-]+)*\/?$/.test(value) ? undefined : "a path such as '/inspect'";

const isHosts: OptionCheck = (value) =>
  Array.isArray(value) && value.every((host) => typeof host === 'string') ? undefined : 'a list of names';

/** @throws `INVALID_ARGUMENT` */
export function checkInspectorOptions(options: InspectorOptions): void {
  checkOptions(
    'inspector',
    { ...options, store: options?.store ?? null },
    {
      store: isStore,
      storeName: isString,
      agents: isAgents,
      memory: isMemory,
      memorySearch: isSearch,
      context: isContext,
      readOnly: isBoolean,
      basePath: isBasePath,
      hosts: isHosts,
      pollIntervalMs: isWhole(50, 3_600_000),
      nodeEnv: isString,
      onAddress: isFunction,
    },
  );
}
