import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Firestore } from '@google-cloud/firestore';
import express, { type Express } from 'express';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { agentRouter } from 'genkitx-agents/server';
import type { SupportState } from '../support/agent/state.ts';
import { byUser, defineCloudSupport } from '../support/cloud/cloud-support.ts';
import { leaveInTime, OpenRequests } from '../support/cloud/leave-in-time.ts';
import { readCloudSettings } from '../support/cloud/settings.ts';
import { endInOrder } from '../support/end-in-order.ts';
import { SetupError } from '../support/setup-error.ts';
import { readUsers, type Users } from './users.ts';

async function main(): Promise<void> {
  const settings = readCloudSettings(process.env);
  const users = readUsers(process.env.API_KEYS);
  await exportTelemetry();

  // After an outage gRPC would pause for up to two minutes.
  const db = new Firestore({ 'grpc.max_reconnect_backoff_ms': 2_000 });
  const store = new FirestoreSessionStore<SupportState>({ db, snapshotPathPrefix: byUser });
  const recovering = { recover: true, recoverContexts: () => users.all };
  const { ai, agent, model } = await defineCloudSupport({ db, store, settings, recovering });

  const requests = new OpenRequests();
  const stop = new AbortController();
  const server = createServer(supportApp(agent, users, { requests, stop }));
  await listen(server);

  const close = async () => {
    server.close();
    await leaveInTime({ ai, requests, stop, graceMs: settings.graceMs });
    await store.close();
    await db.terminate();
  };
  endInOrder({ close, fail });
  console.log(`The support agent (${model.label}) listens on port ${(server.address() as AddressInfo).port}.`);
}

type Agent = Awaited<ReturnType<typeof defineCloudSupport>>['agent'];

function supportApp(agent: Agent, users: Users, { requests, stop }: { requests: OpenRequests; stop: AbortController }) {
  const app: Express = express();
  app.disable('x-powered-by');
  app.use((_request, response, next) => {
    requests.add(response);
    next();
  });
  app.use('/api', agentRouter({ support: agent }, { context: users.context, stopSignal: stop.signal }));
  return app;
}

/** Cloud Run names the service; elsewhere nobody would read it. */
async function exportTelemetry(): Promise<void> {
  if (!process.env.K_SERVICE) return;
  const { enableGoogleCloudTelemetry } = await import('@genkit-ai/google-cloud');
  await enableGoogleCloudTelemetry();
}

async function listen(server: Server): Promise<void> {
  server.listen(Number(process.env.PORT || 8080), process.env.HOST || '0.0.0.0');
  await once(server, 'listening');
}

function fail(error: unknown): void {
  console.error(error instanceof SetupError ? error.message : error);
  process.exit(1);
}

main().catch(fail);
