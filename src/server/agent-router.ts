import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from './answer/answer.ts';
import type { FrameStream } from './answer/frame-stream.ts';
import type { IncomingCall } from './request/call.ts';
import { mountedAt } from './mounted.ts';
import { nodeListener } from './node-listener.ts';
import type { AgentServerOptions } from './options.ts';
import type { ServedAgents } from './request/routes.ts';
import { createAgentServer } from './serve.ts';

/** Works in Express 4 and 5 (`app.use('/api', router)`), in Connect, and as the listener of a `node:http` server. */
export type AgentRouter = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** How long a client may still send its body after the answer, in ms. Closing the connection at once could lose the answer. */
const LINGER_MS = 5000;

/**
 * Serves agents from Express. Mount it at the path of the agents. A request for a path without an agent is passed to the next handler, and
 * answered with 404 if there is none. A body that `express.json()` has already parsed is accepted.
 *
 * Takes the arguments of {@link agentHandler}, and does not import `express`.
 *
 * @example
 * app.use('/api', agentRouter([support], { context: apiKey(process.env.API_KEY) }));
 */
export function agentRouter(agents: ServedAgents, options: AgentServerOptions): AgentRouter {
  const server = createAgentServer(agents, options);
  return (request, response, next) => {
    const mounted = mountedIn(agents, server.basePath, request);
    if (mounted) {
      nodeListener(mounted)(request, response);
      return;
    }
    const call = toCall(request, response);
    const answer = async () => {
      lingerAfter(request, response);
      await send(await server.serve(call), response, server.readTimeoutMs);
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

/** The handler of a plugin that serves the request's path; `undefined` if the agents serve it. */
function mountedIn(agents: ServedAgents, basePath: string, request: IncomingMessage & { originalUrl?: string }) {
  const { url = '', originalUrl = url } = request;
  const [path = ''] = url.split('?');
  const mounted = path.startsWith(basePath) ? mountedAt(agents, path.slice(basePath.length)) : undefined;
  if (!mounted) {
    return undefined;
  }
  // Express removes the router's own path from `url`.
  const above = originalUrl.endsWith(url) ? originalUrl.slice(0, originalUrl.length - url.length) : '';
  return async (incoming: Request) => (await mounted.handlerAt(`${above}${basePath}${mounted.path}`))(incoming);
}

function toCall(request: IncomingMessage & { body?: unknown }, response: ServerResponse): IncomingCall {
  const [path = '', query] = (request.url ?? '').split(/\?(.*)/s);
  const disconnected = new AbortController();
  response.once('close', () => {
    // Not after the answer: nothing listens then, and an abort would create an error with a stack.
    if (!response.writableFinished) {
      disconnected.abort();
    }
  });
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
    // The end of the iterator must not close the connection: the answer must still be sent.
    body: request.readableEnded
      ? { parsed: request.body }
      : { [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) },
    signal: disconnected.signal,
  };
}

/** A refused request may still be arriving: it is read and discarded for a while, then the connection is closed. */
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

async function send({ status, headers, body }: Answer, response: ServerResponse, readTimeoutMs: number): Promise<void> {
  const stream = typeof body === 'object' ? body : undefined;
  if (response.destroyed) {
    stream?.cancel();
    return;
  }
  response.writeHead(status, headers);
  if (stream) {
    await sendStream(stream, response, readTimeoutMs);
  } else {
    response.end(body);
  }
  await drained(response, 'finish', readTimeoutMs);
}

async function sendStream(stream: FrameStream, response: ServerResponse, readTimeoutMs: number): Promise<void> {
  response.once('close', () => stream.cancel());
  if (stream.unreadChars === 0) {
    // Sends the head now: the first chunk may take long, and the head has the id for reconnecting.
    response.flushHeaders();
  }
  for (let piece = await stream.take(); piece !== undefined; piece = await stream.take()) {
    if (!response.write(piece)) {
      await drained(response, 'drain', readTimeoutMs);
    }
    if (response.destroyed) {
      return;
    }
  }
  response.end();
}

/** Resolves when the connection has drained or closed. A connection that does not drain within `timeoutMs` is closed. */
function drained(response: ServerResponse, event: 'drain' | 'finish', timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    // If it has closed before, no event follows.
    if (response.destroyed) {
      resolve();
      return;
    }
    const timer = setTimeout(() => response.destroy(), timeoutMs);
    const done = () => {
      clearTimeout(timer);
      response.off(event, done);
      response.off('close', done);
      resolve();
    };
    response.once(event, done);
    response.once('close', done);
  });
}
