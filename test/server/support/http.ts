/** Servers on free ports of this machine, one of each kind that an agent can be served by. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { expressHandler } from '@genkit-ai/express';
import express from 'express';
import type { Agent } from 'genkit/beta';
import { agentHandler, agentRouter, type AgentServerOptions, type ServedAgents } from 'genkitx-agents/server';

export interface Running {
  /** The URL of the agents: `<url>/<agent>`. */
  url: string;
  stop: () => Promise<void>;
}

/** @param port Default: one that is free. */
export async function listen(listener: RequestListener, port = 0): Promise<Running> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** `agentHandler` behind the smallest bridge from `node:http` to `Request` and `Response`. */
export async function serveByHandler(agents: ServedAgents, options: AgentServerOptions): Promise<Running> {
  const handler = agentHandler(agents, { basePath: '/api', ...options });
  const running = await listen((request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const answering = async () => {
      const answer = await handler(toRequest(request, gone.signal));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
      const body = Readable.from(answer.body ?? []);
      response.once('close', () => body.destroy());
      body.on('error', () => {}).pipe(response);
    };
    void answering();
  });
  return { ...running, url: `${running.url}/api` };
}

function toRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
  return new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method,
    headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
    ...(hasBody && { body: bytesOf(request), duplex: 'half' }),
    signal,
  });
}

function bytesOf(request: IncomingMessage): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => {
      request.on('data', (chunk: Uint8Array) => {
        try {
          controller.enqueue(chunk);
        } catch {
          // Cancelled: the rest of the body is discarded.
        }
      });
      request.on('end', () => {
        try {
          controller.close();
        } catch {
          // Cancelled.
        }
      });
      request.on('error', (error) => controller.error(error));
    },
  });
}

/** `agentRouter` mounted in an Express app. */
export async function serveByRouter(agents: ServedAgents, options: AgentServerOptions): Promise<Running> {
  const app = express();
  app.use('/api', agentRouter(agents, options));
  const running = await listen(app as RequestListener);
  return { ...running, url: `${running.url}/api` };
}

/** Genkit's own `expressHandler`, as in its documentation. */
export async function serveByGenkit(
  agents: Record<string, Agent<never>>,
  options: Parameters<typeof expressHandler>[1] = {},
): Promise<Running> {
  const app = express();
  app.use(express.json());
  for (const [name, agent] of Object.entries(agents)) {
    app.post(`/api/${name}`, expressHandler(agent, options));
    app.post(`/api/${name}/getSnapshot`, expressHandler(agent.getSnapshotDataAction));
    app.post(`/api/${name}/abort`, expressHandler(agent.abortAgentAction));
  }
  const running = await listen(app as RequestListener);
  return { ...running, url: `${running.url}/api` };
}

/** Our two servers. */
export const ourServers = [
  { name: 'agentHandler', serve: serveByHandler },
  { name: 'agentRouter', serve: serveByRouter },
];
