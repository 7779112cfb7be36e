import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { GenkitError } from 'genkit';
import type { SnapshotStore } from 'genkitx-agents';
import { agentRouter } from 'genkitx-agents/server';
import type { SupportState } from '../agent/state.ts';
import type { defineSupportAgent } from '../agent/support-agent.ts';
import { SetupError } from '../setup-error.ts';
import type { ServerHello } from './api-types.ts';
import { EventStreams } from './events.ts';
import { refuseStrangers, securityHeaders } from './guard.ts';
import { sessionsApi } from './sessions-api.ts';

/** Where `npm run build` puts the chat page. */
const PAGE = fileURLToPath(new URL('../../../dist/support-page', import.meta.url));

export interface ServerOptions {
  agent: ReturnType<typeof defineSupportAgent>;
  store: SnapshotStore<SupportState>;
  hello: ServerHello;
  host: string;
  port: number;
  /** How long a reply that is being streamed may go on once the server is asked to stop, in ms; 3,000 unless told. */
  graceMs?: number;
}

export interface RunningServer {
  /** `http://127.0.0.1:3400` */
  url: string;
  /** Takes no new requests, gives running replies a moment, then ends them. */
  stop(): Promise<void>;
}

/** @throws SetupError when `host` and `port` can't be listened on. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const events = new EventStreams(options.hello);
  const server = createServer(supportApp(options, events));
  await listen(server, options);
  return { url: urlOf(server.address() as AddressInfo), stop: () => stop(server, events, options.graceMs ?? 3_000) };
}

function supportApp({ agent, store, host }: ServerOptions, events: EventStreams): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(securityHeaders, refuseStrangers(host));

  // The sample is for one person on one machine, so everyone who gets here is that person. A server for others finds out who is calling, from
  // the request's headers say, and throws when it can't.
  app.use('/api', agentRouter({ support: agent }, { context: () => ({ auth: { uid: 'owner' } }) }));
  app.use('/api', sessionsApi(store));
  app.get('/api/events', (_request, response) => events.add(response));

  app.use(existsSync(PAGE) ? express.static(PAGE) : pageMissing);
  app.use(notFound, callersError, internalError);
  return app;
}

async function listen(server: Server, { host, port }: ServerOptions): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new SetupError(cannotListen(error as NodeJS.ErrnoException, host, port));
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function cannotListen({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') {
    return `Port ${port} on ${host} is in use; stop what runs there, or name another with PORT.`;
  }
  if (code === 'EACCES') return `Port ${port} is reserved for administrators; name one above 1023 with PORT.`;
  if (code === 'ENOTFOUND' || code === 'EADDRNOTAVAIL') return `HOST '${host}' is not an address of this machine.`;
  return `Port ${port} on ${host} can't be listened on: ${message}.`;
}

async function stop(server: Server, events: EventStreams, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  events.endAll();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

const pageMissing: RequestHandler = (request, response, next) => {
  if (request.path !== '/') next();
  else response.status(503).type('text').send("The chat page is not built: run 'npm run build', then start again.\n");
};

const notFound: RequestHandler = (request, response) => {
  response.status(404).json({ status: 'NOT_FOUND', message: `There is nothing at ${request.method} ${request.path}.` });
};

/** Mistakes of the caller, which the store, this server's own code or Express found: the caller is told, and the log is not. */
const callersError: ErrorRequestHandler = (error, _request, response, next) => {
  const { status, code, message } = mistake(error) ?? {};
  if (!code || response.headersSent) next(error);
  else response.status(code).json({ status, message });
};

interface Mistake {
  status: string;
  /** The HTTP status, 400 to 499. */
  code: number;
  message: string;
}

function mistake(error: unknown): Mistake | undefined {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  const found =
    error instanceof GenkitError
      ? { status: error.status, code: error.code, message: error.originalMessage }
      : {
          status: 'INVALID_ARGUMENT',
          code: Number(statusCode),
          message: 'The server does not understand the request.',
        };
  return found.code >= 400 && found.code < 500 ? found : undefined;
}

/** What went wrong is for the log; the caller learns only that something did. */
const internalError: ErrorRequestHandler = (error, _request, response, next) => {
  console.error(error);
  if (response.headersSent) next(error);
  else response.status(500).json({ status: 'INTERNAL', message: "Something went wrong; the server's log says what." });
};
