import type { ActionContext, z } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import { Refusal } from '../answer/refusal.ts';

/** Options of a run of an action. */
interface RunOptions {
  context: ActionContext;
  abortSignal: AbortSignal;
  init?: AgentInit;
  onChunk?: (chunk: unknown) => void;
}

/** The part of a Genkit action that the server needs. */
export interface ServedAction {
  /** Its name and schemas, in Genkit's form. */
  readonly __action: {
    /** The agent's name, also for its actions `getSnapshot` and `abort`. */
    readonly name: string;
    /** Schema of `data` of a request. */
    readonly inputSchema?: z.ZodTypeAny;
    /** Schema of `init` of a request; `getSnapshot` and `abort` have none. */
    readonly initSchema?: z.ZodTypeAny;
  };
  /** Runs the action. */
  run(
    input: unknown,
    options: RunOptions,
  ): Promise<{
    /** The output. */
    result: unknown;
    /** The ids of the run's trace; sent as headers. */
    telemetry: {
      /** Sent as `x-genkit-trace-id`. */
      traceId: string;
      /** Sent as `x-genkit-span-id`. */
      spanId: string;
    };
  }>;
}

/** An agent that can be served: one that `defineAgent` of this package or of Genkit returns. */
export interface ServedAgent extends ServedAction {
  /** Reads a snapshot. */
  readonly getSnapshotDataAction: ServedAction;
  /** Aborts the run of a snapshot. */
  readonly abortAgentAction: ServedAction;
}

/** A `Genkit` instance with agents. */
export interface AgentSource {
  /** Its registry of actions. */
  readonly registry: {
    /** Returns the action of a key, for example `/agent/support`. */
    lookupAction(key: string): Promise<unknown>;
  };
}

/**
 * The agents to serve: a list, served under the agents' own names, or a record, served under its keys. A `Genkit` instance serves all
 * agents that are defined with it, also later, except those of plugins, whose names have a slash.
 */
export type ServedAgents = readonly ServedAgent[] | Readonly<Record<string, ServedAgent>> | AgentSource;

/** The action that serves a path. */
export interface Route {
  kind: 'turn' | 'getSnapshot' | 'abort';
  /** The path of the agent's turns; unique per agent of a server. */
  agent: string;
  action: ServedAction;
}

/** Finds the route of a request's path; `undefined` without one. */
export type FindRoute = (path: string) => Promise<Route | undefined>;

/**
 * Creates three routes for each agent: its turns, and `getSnapshot` and `abort` below that path.
 *
 * @throws `INVALID_ARGUMENT` when a value is not an agent, when there are no agents, and when two agents have the same path.
 */
export function createRouteFinder(agents: ServedAgents, basePath: string): FindRoute {
  if (typeof agents !== 'object' || agents === null) {
    throw invalidArgument(
      'Pass the agents to serve: a list, a record by name, or the Genkit instance that defines them.',
    );
  }
  const find = isSource(agents) ? finderIn(agents, basePath) : finderOf(agents, basePath);
  return async (path) => {
    const decoded = decode(path);
    return decoded === undefined ? undefined : find(decoded);
  };
}

function isSource(agents: ServedAgents): agents is AgentSource {
  const { registry } = agents as Partial<AgentSource>;
  return typeof registry?.lookupAction === 'function';
}

function finderOf(agents: Exclude<ServedAgents, AgentSource>, basePath: string) {
  const named: [string, ServedAgent][] = Array.isArray(agents)
    ? agents.map((agent: ServedAgent): [string, ServedAgent] => [agent?.__action?.name, agent])
    : Object.entries(agents);
  if (named.length === 0) {
    throw invalidArgument('There is no agent to serve.');
  }
  const routes = new Map<string, Route>();
  const add = (path: string, route: Route) => {
    if (routes.has(path)) {
      throw invalidArgument(`Two agents would be served at ${path}. Pass a record to give one of them another name.`);
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
  return (path: string) => routes.get(path);
}

/** The registry's action types for the paths of an agent. */
const ACTION_TYPES = { turn: 'agent', getSnapshot: 'agent-snapshot', abort: 'agent-abort' } as const;

/** Names without a slash only: for others the registry would ask a plugin, before the caller is authenticated. */
const PATH_IN_SOURCE = /^\/([^/]+)(?:\/(getSnapshot|abort))?$/;

function finderIn({ registry }: AgentSource, basePath: string) {
  return async (path: string): Promise<Route | undefined> => {
    const [, name, below] = (path.startsWith(basePath) && PATH_IN_SOURCE.exec(path.slice(basePath.length))) || [];
    if (name === undefined) {
      return undefined;
    }
    const kind = (below ?? 'turn') as Route['kind'];
    const action = (await registry.lookupAction(`/${ACTION_TYPES[kind]}/${name}`)) as ServedAction | undefined;
    return action && { kind, agent: `${basePath}/${name}`, action };
  };
}

/** `undefined` for an invalid path. */
function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path.replace(/\/$/, ''));
  } catch {
    return undefined;
  }
}

/** The answer to a path without a route. */
export function noSuchPath(): Refusal {
  // The reason distinguishes a wrong address from a missing snapshot.
  return new Refusal(404, 'NOT_FOUND', 'There is no agent at this path.', { details: { reason: 'NO_SUCH_PATH' } });
}

function mustBeAgent(name: string | undefined, agent: ServedAgent | undefined): asserts agent is ServedAgent {
  const isAgent = [agent, agent?.getSnapshotDataAction, agent?.abortAgentAction].every(
    (action) => typeof action?.run === 'function',
  );
  if (!isAgent || !name) {
    throw invalidArgument(
      `${name ? `"${name}"` : 'The value'} is not an agent. Pass agents that defineAgent() returned, in a list or a record.`,
    );
  }
}
