import { createServer } from 'node:http';
import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import type { ReportState } from '../support/agent/report-agent.ts';
import type { SupportState } from '../support/agent/state.ts';
import { byUser, defineCloudSupport } from '../support/cloud/cloud-support.ts';
import { findPage } from '../support/cloud/find-page.ts';
import { readCloudSettings } from '../support/cloud/settings.ts';
import { endInOrder } from '../support/end-in-order.ts';
import { leaveInTime, OpenRequests } from '../support/server/leave-in-time.ts';
import { listen } from '../support/server/listen.ts';
import { supportApp } from '../support/server/support-app.ts';
import { SetupError } from '../support/setup-error.ts';
import { readUsers } from './users.ts';

async function main(): Promise<void> {
  const settings = readCloudSettings(process.env);
  const users = readUsers(process.env.API_KEYS);
  await exportTelemetry();

  // After an outage gRPC would pause for up to two minutes.
  const db = new Firestore({ 'grpc.max_reconnect_backoff_ms': 2_000 });
  const store = new FirestoreSessionStore<SupportState>({ db, snapshotPathPrefix: byUser });
  const reports = new FirestoreSessionStore<ReportState>({ db, collection: 'reports', snapshotPathPrefix: byUser });
  const recovering = { recover: true, recoverContexts: () => users.all };
  const support = await defineCloudSupport({ db, store, reports, settings, recovering });
  const { ai, agents, model } = support;

  const requests = new OpenRequests();
  const stop = new AbortController();
  const { app, events } = supportApp({
    agents,
    store,
    model,
    context: users.context,
    signIn: { kind: 'key' },
    pageFolder: findPage(import.meta.url),
    requests,
    stop: stop.signal,
  });
  const server = createServer(app);
  const { port } = await listen(server, { port: settings.port, host: process.env.HOST || '0.0.0.0' });

  const close = async () => {
    server.close();
    events.endAll();
    await leaveInTime({ ai, requests, stop, graceMs: settings.graceMs });
    await support.close();
  };
  endInOrder({ close, fail });
  console.log(`The support agent (${model.label}) listens on port ${port}.`);
}

/** Exports telemetry on Cloud Run only, which sets `K_SERVICE`. */
async function exportTelemetry(): Promise<void> {
  if (!process.env.K_SERVICE) return;
  const { enableGoogleCloudTelemetry } = await import('@genkit-ai/google-cloud');
  await enableGoogleCloudTelemetry();
}

function fail(error: unknown): void {
  console.error(error instanceof SetupError ? error.message : error);
  process.exit(1);
}

main().catch(fail);
