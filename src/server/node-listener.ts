import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** A listener of a `node:http` server, or a handler of Express. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Converts a handler of the web's `Request` and `Response` to a listener of a `node:http` server or Express. In Express the handler gets
 * the whole path, so the `basePath` of an inspector is the path where it is mounted.
 *
 * @example
 * const inspect = inspector({ store, basePath: '/inspect' });
 * app.use('/inspect', nodeListener(inspect));
 */
export function nodeListener(handler: (request: Request) => Promise<Response>): NodeListener {
  return (request, response) => {
    answer(handler, request, response).catch(() => response.destroy());
  };
}

async function answer(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const request = toRequest(incoming, outgoing);
  if (!request) {
    outgoing.writeHead(400).end();
    return;
  }
  const { status, headers, body } = await handler(request);
  outgoing.writeHead(status, Object.fromEntries(headers));
  // The first chunk of a stream may take long.
  outgoing.flushHeaders();
  if (body) await pipeline(Readable.fromWeb(body as import('node:stream/web').ReadableStream), outgoing);
  else outgoing.end();
}

/** Returns `undefined` for an invalid request, which browsers never send. */
function toRequest(incoming: IncomingMessage & { originalUrl?: string; body?: unknown }, outgoing: ServerResponse) {
  const { method = 'GET', headers, originalUrl, url = '/' } = incoming;
  const disconnected = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) disconnected.abort();
  });
  const isEncrypted = 'encrypted' in incoming.socket;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  try {
    return new Request(new URL(originalUrl ?? url, `http${isEncrypted ? 's' : ''}://${headers.host}`), {
      method,
      headers: Object.entries(headers).flatMap(([name, value]): [string, string][] =>
        [value ?? []].flat().map((one) => [name, one]),
      ),
      signal: disconnected.signal,
      ...(hasBody && { body: bodyOf(incoming), duplex: 'half' }),
    });
  } catch {
    return undefined;
  }
}

/** The bytes of the body. If `express.json()` has read it, its text is written again. */
function bodyOf(incoming: IncomingMessage & { body?: unknown }): BodyInit {
  if (incoming.readableEnded) return JSON.stringify(incoming.body ?? null);
  return Readable.toWeb(incoming) as unknown as ReadableStream;
}
