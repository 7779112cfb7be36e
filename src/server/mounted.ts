import type { Registry } from 'genkit/registry';
import type { ServedAgents } from './request/routes.ts';

/** What a plugin serves beside the agents of its Genkit instance. */
export interface Mounted {
  /** The path below that of the agents, say `/inspect`. */
  readonly path: string;
  /** What answers there; asked when it is first needed. */
  handlerAt(basePath: string): Promise<(request: Request) => Promise<Response>>;
}

/** A registered symbol, so that the ES module and the CommonJS copy of the package find each other's. */
const MOUNTED = Symbol.for('genkitx-agents.mounted');

type WithMounted = Registry & { [MOUNTED]?: Mounted };

/** Serves something beside the agents of a registry. */
export function mountOn(registry: Registry, mounted: Mounted): void {
  Object.defineProperty(registry, MOUNTED, { value: mounted, configurable: true });
}

/** What answers a path below the agents; `undefined` where the agents do. */
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
