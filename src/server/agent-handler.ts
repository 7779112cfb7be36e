import type { Answer } from './answer/answer.ts';
import type { FrameStream } from './answer/frame-stream.ts';
import { mountedAt } from './mounted.ts';
import type { AgentServerOptions } from './options.ts';
import type { ServedAgents } from './request/routes.ts';
import { createAgentServer } from './serve.ts';

/**
 * Serves agents in any framework with the web's `Request` and `Response`: Hono, Deno, Bun, Next.js, Cloud Functions of either kind.
 *
 * Routes, all `POST`: `<basePath>/<agent>` runs a turn, `<basePath>/<agent>/getSnapshot` reads a snapshot, and `.../abort` aborts one.
 *
 * @param agents A list of agents, served under their names; a record of names and agents; or a `Genkit` instance, with all its agents.
 * @throws `INVALID_ARGUMENT` when an option or an agent is wrong, or neither `context` nor `anonymous: true` is given.
 *
 * @example
 * const handler = agentHandler([support], { context: apiKey(process.env.API_KEY), basePath: '/api' });
 * const response = await handler(request);
 */
export function agentHandler(
  agents: ServedAgents,
  options: AgentServerOptions,
): (request: Request) => Promise<Response> {
  const server = createAgentServer(agents, options);
  return async (request) => {
    const url = new URL(request.url);
    const { basePath } = server;
    const mounted = url.pathname.startsWith(basePath) && mountedAt(agents, url.pathname.slice(basePath.length));
    if (mounted) return (await mounted.handlerAt(`${basePath}${mounted.path}`))(request);
    const answer = await server.serve({
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      headers: Object.fromEntries(request.headers),
      body: request.body ?? emptyBody(),
      signal: request.signal,
    });
    return toResponse(answer, server.readTimeoutMs);
  };
}

function toResponse({ status, headers, body }: Answer, readTimeoutMs: number): Response {
  return new Response(typeof body === 'object' ? toReadable(body, readTimeoutMs) : body, { status, headers });
}

const encoder = new TextEncoder();

/** The stream fails if data waits and the client reads nothing for `readTimeoutMs`. */
function toReadable(stream: FrameStream, readTimeoutMs: number): ReadableStream<Uint8Array> {
  stream.open();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expectRead = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    timer = setTimeout(() => {
      stream.cancel();
      controller.error(new Error('The client did not read its stream in time.'));
    }, readTimeoutMs);
  };
  return new ReadableStream<Uint8Array>(
    {
      start: expectRead,
      pull: async (controller) => {
        clearTimeout(timer);
        const piece = await stream.take();
        if (!piece) {
          controller.close();
          return;
        }
        controller.enqueue(encoder.encode(piece));
        expectRead(controller);
      },
      cancel: () => {
        clearTimeout(timer);
        stream.cancel();
      },
    },
    // Reads nothing ahead, so that all unread data counts in the backlog.
    { highWaterMark: 0 },
  );
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}
