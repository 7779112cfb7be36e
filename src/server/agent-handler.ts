import type { AgentServerOptions } from './options.ts';
import type { ServedAgents } from './routes.ts';
import { createAgentServer } from './serve.ts';

/**
 * Serves agents from anything that speaks the web's `Request` and `Response`: Hono, Deno, Bun, Next.js, Cloud Functions of either kind.
 *
 * Routes, all `POST`: `<basePath>/<agent>` runs a turn, `<basePath>/<agent>/getSnapshot` reads a snapshot, `<basePath>/<agent>/abort` stops one.
 *
 * @param agents A list of agents, served by their names, a record that names them, or a `Genkit` instance: all that are defined with it.
 * @throws Error when an option is wrong, or neither `context` nor `anonymous: true` is given.
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
  return (request) => {
    const url = new URL(request.url);
    return server.serve({
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      headers: Object.fromEntries(request.headers),
      body: request.body ?? nothing(),
      signal: request.signal,
    });
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
