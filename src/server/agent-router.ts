import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from './answer/answer.ts';
import type { IncomingCall } from './request/call.ts';
import type { AgentServerOptions } from './options.ts';
import type { ServedAgents } from './request/routes.ts';
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

function toCall(request: IncomingMessage & { body?: unknown }, response: ServerResponse): IncomingCall {
  const [path = '', query] = (request.url ?? '').split(/\?(.*)/s);
  const gone = new AbortController();
  response.once('close', () => {
    // Behind the answer nothing listens, and an abort makes an error with a stack.
    if (!response.writableFinished) {
      gone.abort();
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

/** How much is written at once, in bytes: what the connection must take within `readTimeoutMs`. */
const PIECE_BYTES = 64 * 1024;

async function send({ status, headers, body }: Answer, response: ServerResponse, readTimeoutMs: number): Promise<void> {
  const stream = typeof body === 'object' ? body : undefined;
  if (response.destroyed) {
    stream?.cancel();
    return;
  }
  response.once('close', () => stream?.cancel());
  response.writeHead(status, headers);
  if (stream && stream.unreadChars === 0) {
    // The first chunk may be long in coming, and the head says how to come back for it.
    response.flushHeaders();
  }
  for await (const piece of piecesOf(body)) {
    if (!response.write(piece)) {
      await taken(response, 'drain', readTimeoutMs);
    }
    if (response.destroyed) {
      return;
    }
  }
  response.end();
  await taken(response, 'finish', readTimeoutMs);
}

async function* piecesOf(body: Answer['body']): AsyncGenerator<Uint8Array, void, undefined> {
  if (typeof body === 'object') {
    for (let piece = await body.take(); piece; piece = await body.take()) {
      yield piece;
    }
    return;
  }
  const bytes = Buffer.from(body ?? '');
  for (let from = 0; from < bytes.byteLength; from += PIECE_BYTES) {
    yield bytes.subarray(from, from + PIECE_BYTES);
  }
}

/** Resolves when the connection has taken what was written, or is gone. One that takes nothing for `timeoutMs` is cut. */
function taken(response: ServerResponse, event: 'drain' | 'finish', timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
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
