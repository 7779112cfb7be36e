import type { ActionContext, z } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { Refusal } from '../answer/refusal.ts';

/** What an action is run with. */
interface RunOptions {
  context: ActionContext;
  abortSignal: AbortSignal;
  init?: AgentInit;
  onChunk?: (chunk: unknown) => void;
}

/** A Genkit action, as far as the server needs it. */
export interface ServedAction {
  /** What it is called and takes, as Genkit describes its actions. */
  readonly __action: {
    /** The agent's name, of its companions too. */
    readonly name: string;
    /** What `data` of a request is checked against. */
    readonly inputSchema?: z.ZodTypeAny;
    /** What `init` of a request is checked against; companions have none. */
    readonly initSchema?: z.ZodTypeAny;
  };
  /** Runs it, as Genkit's actions are run. */
  run(
    input: unknown,
    options: RunOptions,
  ): Promise<{
    /** What it answered. */
    result: unknown;
    /** Where the run is found among the traces; sent as headers. */
    telemetry: {
      /** Sent as `x-genkit-trace-id`. */
      traceId: string;
      /** Sent as `x-genkit-span-id`. */
      spanId: string;
    };
  }>;
}

/** An agent that can be served: what `defineAgent` of this package and of Genkit answer. */
export interface ServedAgent extends ServedAction {
  /** Reads a snapshot. */
  readonly getSnapshotDataAction: ServedAction;
  /** Stops the run of a snapshot. */
  readonly abortAgentAction: ServedAction;
}

/** Where agents are defined: a `Genkit` instance. */
export interface AgentSource {
  /** Where its actions are looked up. */
  readonly registry: {
    /** The action of a key, `/agent/support` say. */
    lookupAction(key: string): Promise<unknown>;
  };
}

/**
 * The agents to serve: by their own names, or by the names they are to have in their paths. A `Genkit` instance stands for all agents that are
 * defined with it, also after the server was built, except those of plugins, whose names have a slash.
 */
export type ServedAgents = readonly ServedAgent[] | Readonly<Record<string, ServedAgent>> | AgentSource;

/** What a path leads to. */
export interface Route {
  kind: 'turn' | 'getSnapshot' | 'abort';
  /** The path of the agent's turns, which tells the agents of a server apart. */
  agent: string;
  action: ServedAction;
}

/** Finds the route of a path as it came in a request, if there is one. */
export type FindRoute = (path: string) => Promise<Route | undefined>;

/**
 * Lays out the routes: for each agent its turn, and its two companions below that.
 *
 * @throws Error for what is no agent, no agents at all, and two agents with one path.
 */
export function layRoutes(agents: ServedAgents, basePath: string): FindRoute {
  if (typeof agents !== 'object' || agents === null) {
    throw new Error('Pass the agents to serve in a list, or by name, or the Genkit instance they are defined with.');
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
  return (path: string) => routes.get(path);
}

/** The registry's types of the actions behind the paths below an agent's. */
const ACTION_TYPES = { turn: 'agent', getSnapshot: 'agent-snapshot', abort: 'agent-abort' } as const;

/** A name with a slash would have the registry ask a plugin for it, before it is known who is asking. */
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

/** `undefined` for a path that can not be one. */
function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(path.replace(/\/$/, ''));
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
