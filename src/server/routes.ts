import type { ActionContext, z } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { Refusal } from './refusal.ts';

/** What an action is run with. */
interface RunOptions {
  context: ActionContext;
  abortSignal: AbortSignal;
  init?: AgentInit;
  onChunk?: (chunk: unknown) => void;
}

/** A Genkit action, as far as the server needs it. */
export interface ServedAction {
  readonly __action: { readonly name: string; readonly inputSchema?: z.ZodTypeAny; readonly initSchema?: z.ZodTypeAny };
  run(
    input: unknown,
    options: RunOptions,
  ): Promise<{ result: unknown; telemetry: { traceId: string; spanId: string } }>;
}

/** An agent that can be served: what `defineAgent` of this package and of Genkit answer. */
export interface ServedAgent extends ServedAction {
  readonly getSnapshotDataAction: ServedAction;
  readonly abortAgentAction: ServedAction;
}

/** The agents to serve: by their own names, or by the names they are to have in their paths. */
export type ServedAgents = readonly ServedAgent[] | Readonly<Record<string, ServedAgent>>;

/** What a path leads to. */
export interface Route {
  kind: 'turn' | 'getSnapshot' | 'abort';
  /** The path of the agent's turns, which tells the agents of a server apart. */
  agent: string;
  action: ServedAction;
}

/** The routes by their decoded paths. */
export type RouteTable = ReadonlyMap<string, Route>;

/**
 * Lays out the routes: for each agent its turn, and its two companions below that.
 *
 * @throws Error for what is no agent, no agents at all, and two agents with one path.
 */
export function layRoutes(agents: ServedAgents, basePath: string): RouteTable {
  if (typeof agents !== 'object' || agents === null) {
    throw new Error('Pass the agents to serve in a list, or by name.');
  }
  const named: [string, ServedAgent][] = Array.isArray(agents)
    ? agents.map((agent: ServedAgent): [string, ServedAgent] => [agent?.__action?.name, agent])
    : Object.entries(agents);
  if (named.length === 0) {
    throw new Error('There is no agent to serve.');
  }
  const routes = new Map<string, Route>();
  const add = (path: string, route: Route) => {
    if (routes.has(path)) {
      throw new Error(`Two agents would be served at ${path}. Pass a record to give one of them another name.`);
    }
    routes.set(path, route);
  };
  for (const [name, agent] of named) {
    mustBeAgent(name, agent);
    const path = `${basePath}/${name}`;
    add(path, { kind: 'turn', agent: path, action: agent });
    add(`${path}/getSnapshot`, { kind: 'getSnapshot', agent: path, action: agent.getSnapshotDataAction });
    add(`${path}/abort`, { kind: 'abort', agent: path, action: agent.abortAgentAction });
  }
  return routes;
}

/** The route of a path as it came in a request, if there is one. */
export function findRoute(routes: RouteTable, path: string): Route | undefined {
  try {
    return routes.get(decodeURIComponent(path.replace(/\/$/, '')));
  } catch {
    return undefined;
  }
}

/** The answer to a path that leads nowhere. */
export function noSuchPath(): Refusal {
  // The reason tells a client that it has the wrong address, and not merely asked for a snapshot that is not there.
  return new Refusal(404, 'NOT_FOUND', 'There is no agent at this path.', { details: { reason: 'NO_SUCH_PATH' } });
}

function mustBeAgent(name: string | undefined, agent: ServedAgent | undefined): asserts agent is ServedAgent {
  const isAgent = [agent, agent?.getSnapshotDataAction, agent?.abortAgentAction].every(
    (action) => typeof action?.run === 'function',
  );
  if (!isAgent || !name) {
    throw new Error(
      `${name ? `"${name}"` : 'What was passed'} is not an agent. Pass what defineAgent() answered, in a list or by name.`,
    );
  }
}
