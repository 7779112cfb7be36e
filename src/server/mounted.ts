import type { Registry } from 'genkit/registry';
import type { ServedAgents } from './request/routes.ts';

/** A handler that a plugin serves beside the agents of its Genkit instance. */
export interface Mounted {
  /** The path below that of the agents, for example `/inspect`. */
  readonly path: string;
  /** Returns the handler, for the whole path at which it is served. */
  handlerAt(basePath: string): Promise<(request: Request) => Promise<Response>>;
}

/** A registered symbol, which the ES module and the CommonJS copy of the package share. */
const MOUNTED = Symbol.for('genkitx-agents.mounted');

type WithMounted = Registry & { [MOUNTED]?: Mounted };

/** Serves a handler beside the agents of a registry. */
export function mountOn(registry: Registry, mounted: Mounted): void {
  Object.defineProperty(registry, MOUNTED, { value: mounted, configurable: true });
}

/** The handler for a path below that of the agents; `undefined` if the agents serve it. */
export function mountedAt(agents: ServedAgents, path: string): Mounted | undefined {
  const mounted = registryOf(agents)?.[MOUNTED];
  return mounted && (path === mounted.path || path.startsWith(`${mounted.path}/`)) ? mounted : undefined;
}

function registryOf(agents: ServedAgents): WithMounted | undefined {
  if (typeof agents !== 'object' || agents === null) return undefined;
  const { registry } = agents as { readonly registry?: unknown };
  if (typeof registry === 'object') return registry as WithMounted;
  const [first] = Object.values(agents) as { readonly __registry?: WithMounted }[];
  return first?.__registry;
}
