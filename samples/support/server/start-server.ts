import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { AgentsGenkit } from 'genkitx-agents';
import { customerId } from '../agent/customer.ts';
import { refuseStrangers } from './guard.ts';
import { leaveInTime, OpenRequests } from './leave-in-time.ts';
import { listen, type Address } from './listen.ts';
import { supportApp, type Serving } from './support-app.ts';

/** The folder of the built chat page, from `npm run build`. */
const PAGE = fileURLToPath(new URL('../../../dist/support-page', import.meta.url));

export interface ServerOptions extends Omit<Serving, 'context'>, Address {
  ai: AgentsGenkit;
  /** The e-mail address of the customer who uses the page. */
  customer: string;
  /** How long running turns may continue when the server stops, in ms. Default: 3,000. */
  graceMs?: number;
}

export interface RunningServer {
  /** `http://127.0.0.1:3400` */
  url: string;
  /** Refuses new requests, waits a moment for running turns, then stops and keeps them. */
  stop(): Promise<void>;
}

/** @throws SetupError if the server can't listen on `host` and `port`. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { ai, customer, host, port, graceMs = 3_000, ...serving } = options;
  const requests = new OpenRequests();
  const stop = new AbortController();
  const { app, events } = supportApp({
    ...serving,
    // The sample is for one person on one machine, so every caller is this person. A server for several users must identify the caller, for
    // example from the request's headers, and throw if it can't.
    context: () => ({ auth: { uid: customerId(customer), email: customer } }),
    signIn: { kind: 'none' },
    pageFolder: PAGE,
    guard: refuseStrangers(host),
    requests,
    stop: stop.signal,
  });
  const server = createServer(app);
  return {
    url: urlOf(await listen(server, { host, port })),
    stop: async () => {
      server.close();
      events.endAll();
      await leaveInTime({ ai, requests, stop, graceMs });
      server.closeAllConnections();
    },
  };
}

function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
