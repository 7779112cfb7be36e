/** The seven ways from a caller to an agent: two clients over three servers, and in process. */
import type { AgentInit, AgentInput } from 'genkit/beta';
import { remoteAgent as remoteAgentOfGenkit, type AgentAPI } from 'genkit/beta/client';
import { remoteAgent } from 'genkitx-agents/client';
import { createAgentApi } from '../../../src/client/chat/agent-api.ts';
import type { TestAgents } from './agents.ts';
import { serveByGenkit, serveByHandler, serveByRouter, type Running } from './http.ts';

/** The agents as a caller sees them. */
export interface Reached {
  agent<State = unknown>(name: string): AgentAPI<State>;
  stop: () => Promise<void>;
}

export interface Way {
  name: string;
  /** The client is ours. */
  ours: boolean;
  overHttp: boolean;
  /** A client that disconnects stops the run; Genkit's server does not notice. */
  stopsRuns: boolean;
  /**
   * The caller gets the status of any error. Genkit's client has only those in a stream, its server none of an error that
   * another copy of Genkit threw.
   */
  tellsStatus: boolean;
  reach: (made: TestAgents) => Promise<Reached>;
}

const servers = {
  'our agentHandler': ({ agents }: TestAgents) => serveByHandler(agents, { anonymous: true }),
  'our agentRouter': ({ agents }: TestAgents) => serveByRouter(agents, { anonymous: true }),
  "Genkit's expressHandler": ({ agents }: TestAgents) => serveByGenkit(agents),
};

const clients: Record<'our remoteAgent' | "Genkit's remoteAgent", typeof remoteAgentOfGenkit> = {
  'our remoteAgent': remoteAgent,
  "Genkit's remoteAgent": remoteAgentOfGenkit,
};

function overHttp(client: keyof typeof clients, server: keyof typeof servers): Way {
  const ours = client === 'our remoteAgent';
  return {
    name: `${client} over ${server}`,
    ours,
    overHttp: true,
    stopsRuns: server !== "Genkit's expressHandler",
    tellsStatus: ours && server !== "Genkit's expressHandler",
    reach: async (made) => {
      const running: Running = await servers[server](made);
      return {
        agent: (name) => clients[client]({ url: `${running.url}/${name}` }),
        stop: running.stop,
      };
    },
  };
}

const inProcess: Way = {
  name: 'our createAgentApi over the action',
  ours: true,
  overHttp: false,
  stopsRuns: true,
  tellsStatus: true,
  reach: async ({ agents }) => ({
    agent: <State>(name: string) => {
      const agent = agents[name]!;
      return createAgentApi<State>({
        runTurn: async (input: AgentInput, init: AgentInit, { abortSignal, onChunk }) => {
          const turn = agent.streamBidi(init, { abortSignal });
          turn.send(input);
          turn.close();
          for await (const chunk of turn.stream) onChunk(chunk);
          return turn.output;
        },
        getSnapshot: (lookup) => agent.getSnapshotData(lookup),
        abort: (snapshotId) => agent.abort(snapshotId),
      });
    },
    stop: async () => {},
  }),
};

export const ways: Way[] = [
  ...(Object.keys(clients) as (keyof typeof clients)[]).flatMap((client) =>
    (Object.keys(servers) as (keyof typeof servers)[]).map((server) => overHttp(client, server)),
  ),
  inProcess,
];
