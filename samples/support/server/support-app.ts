import { existsSync } from 'node:fs';
import express, { type Express, type RequestHandler } from 'express';
import { InMemoryStreamManager } from 'genkit/beta';
import type { ContextProvider } from 'genkit/context';
import type { RecordStore, SnapshotStore } from 'genkitx-agents';
import { agentRouter } from 'genkitx-agents/server';
import type { ReportAgent } from '../agent/report-agent.ts';
import type { SupportState } from '../agent/state.ts';
import type { SupportAgent } from '../agent/support-agent.ts';
import { signedInEmail } from '../agent/customer.ts';
import type { ServerHello, SignIn } from './api-types.ts';
import { authenticate, contextOf } from './callers.ts';
import { callersError, internalError, notFound } from './errors.ts';
import { contextApi } from './context-api.ts';
import { EventStreams } from './events.ts';
import { securityHeaders } from './guard.ts';
import type { OpenRequests } from './leave-in-time.ts';
import { SessionChanges } from './session-changes.ts';
import { sessionsApi } from './sessions-api.ts';

/** The served parts, the same on one machine and in the cloud. */
export interface Serving {
  agents: { support: SupportAgent; reporter: ReportAgent };
  /** The store of the support agent. */
  store: SnapshotStore<SupportState> & RecordStore;
  /** Returns the context of the caller; throws to refuse the caller. */
  context: ContextProvider;
  model: ServerHello['model'];
}

export interface SupportAppOptions extends Serving {
  signIn: SignIn;
  /** The folder of the built page. */
  pageFolder: string;
  /** Runs before all other handlers. */
  guard?: RequestHandler;
  requests: OpenRequests;
  /** Aborts when the server must end: running turns are stopped and kept. */
  stop: AbortSignal;
}

/** The agents, the lists of conversations, and the page. */
export function supportApp(options: SupportAppOptions): { app: Express; events: EventStreams } {
  const { agents, store, context, signIn, pageFolder, guard, requests, stop } = options;
  const { kind, label, note } = options.model;
  const changes = new SessionChanges();
  changes.follow(store);
  const events = new EventStreams(changes);

  const app = express();
  app.disable('x-powered-by');
  if (guard) app.use(guard);
  app.use(securityHeaders(signIn.kind === 'firebase' ? SIGN_IN_SERVICES : []));
  app.use((_request, response, next) => {
    requests.add(response);
    next();
  });

  app.get('/api/sign-in', (_request, response) => void response.json(signIn));
  // A page that is reloaded, or lost its connection, continues with the running turn.
  const streamManager = new InMemoryStreamManager();
  app.use('/api', agentRouter(agents, { context, streamManager, stopSignal: stop }));
  app.use('/api', authenticate(context), sessionsApi(agents.support, store), contextApi(agents.support, store));
  app.get('/api/events', (_request, response) => {
    const caller = contextOf(response);
    const canRename = store.capabilities.details;
    events.add(response, caller, {
      type: 'hello',
      model: { kind, label, note },
      customer: signedInEmail(caller),
      canRename,
    });
  });

  app.use(existsSync(pageFolder) ? express.static(pageFolder) : pageMissing);
  app.use(notFound, callersError, internalError);
  return { app, events };
}

/** The addresses of Firebase Authentication. */
const SIGN_IN_SERVICES = ['https://identitytoolkit.googleapis.com', 'https://securetoken.googleapis.com'];

const pageMissing: RequestHandler = (request, response, next) => {
  if (request.path !== '/') next();
  else response.status(503).type('text').send("The chat page is not built: run 'npm run build', then start again.\n");
};
