import type { IncomingMessage, ServerResponse } from 'node:http';
import type { IncomingCall } from './call.ts';
import type { AgentServerOptions } from './options.ts';
import type { ServedAgents } from './routes.ts';
import { createAgentServer } from './serve.ts';

/** Fits Express 4 and 5 (`app.use('/api', router)`), Connect, and as it is the listener of a `node:http` server. */
export type AgentRouter = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** How long an answered client may go on sending a body that nobody wants, in ms. Closing at once would lose it the answer. */
const LINGER_MS = 5000;

/**
 * Serves agents from Express. Mount it where the agents are to be; a path at which there is no agent goes on to what is mounted after, and
 * without anything after is answered with 404. A body that `express.json()` has parsed already is taken as it is.
 *
 * Takes what {@link agentHandler} takes, and needs no `express` of its own.
 *
 * @example
 * app.use('/api', agentRouter([support], { context: apiKey(process.env.API_KEY) }));
 */
export function agentRouter(agents: ServedAgents, options: AgentServerOptions): AgentRouter {
  const server = createAgentServer(agents, options);
  return (request, response, next) => {
    const call = toCall(request, response);
    const answer = async () => {
      lingerAfter(request, response);
      await send(await server.serve(call), response);
    };
    const answerOrPass = async () => {
      if (!next || (await server.knows(call.path))) {
        await answer();
      } else {
        next();
      }
    };
    answerOrPass().catch(() => response.destroy());
  };
}

function toCall(request: IncomingMessage & { body?: unknown }, response: ServerResponse): IncomingCall {
  const [path = '', query] = (request.url ?? '').split(/\?(.*)/s);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return {
    method: request.method ?? '',
    path,
    query: new URLSearchParams(query),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(', ') : `${value}`,
      ]),
    ),
    // An iterator that ends must not take the connection with it: there is still an answer to be sent.
    body: request.readableEnded
      ? { parsed: request.body }
      : { [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) },
    signal: gone.signal,
  };
}

/** A request that was turned down may still be coming in: it is read and thrown away for a while, then cut. */
function lingerAfter(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) {
      return;
    }
    const timer = setTimeout(() => request.destroy(), LINGER_MS);
    request.once('close', () => clearTimeout(timer));
    request.resume();
  });
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  const reader = answer.body?.getReader();
  const onClose = () => {
    reader?.cancel().catch(() => {});
  };
  if (response.destroyed) {
    onClose();
    return;
  }
  response.once('close', onClose);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    // The first chunk may be long in coming, and the head says how to come back for it.
    response.flushHeaders();
  }
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) {
      break;
    }
    if (!response.write(value)) {
      await drained(response);
    }
  }
  response.end();
}

/** Resolves when the connection takes more, or is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.once('drain', done);
    response.once('close', done);
  });
}
