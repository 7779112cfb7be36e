import type { IncomingMessage, ServerResponse } from 'node:http';
import { firebaseContext, setDebugSkipTokenVerification } from '@genkit-ai/firebase/context';
import { initializeApp } from 'firebase-admin/app';
import { getFirestore } from 'firebase-admin/firestore';
import { UserFacingError } from 'genkit';
import type { RequestData } from 'genkit/context';
import { recoverRuns } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/firebase';
import { processMemoryJobs } from 'genkitx-agents/memory';
import type { ReportState } from '../support/agent/report-agent.ts';
import type { SupportState } from '../support/agent/state.ts';
import { byUser, contextOf, defineCloudSupport } from '../support/cloud/cloud-support.ts';
import { findPage } from '../support/cloud/find-page.ts';
import { readCloudSettings } from '../support/cloud/settings.ts';
import { endInOrder } from '../support/end-in-order.ts';
import { leaveInTime, OpenRequests } from '../support/server/leave-in-time.ts';
import { supportApp } from '../support/server/support-app.ts';
import { Background } from './background.ts';

/** Shared by the functions of this instance. */
export interface Serving {
  answer(request: IncomingMessage, response: ServerResponse): void;
  /** Takes over the runs and memory jobs whose instances ended; resolves when all have ended. */
  recover(): Promise<void>;
}

/** Sets the instance up, once. */
export async function startServing(): Promise<Serving> {
  await exportTelemetry();
  const firebaseApp = initializeApp();
  const db = getFirestore(firebaseApp);
  // After an outage gRPC would pause for up to two minutes.
  db.settings({ 'grpc.max_reconnect_backoff_ms': 2_000 });
  const store = new FirestoreSessionStore<SupportState>({ firebaseApp, snapshotPathPrefix: byUser });
  const reports = new FirestoreSessionStore<ReportState>({
    firebaseApp,
    collection: 'reports',
    snapshotPathPrefix: byUser,
  });
  const settings = readCloudSettings(process.env);
  const background = new Background(db);
  const support = await defineCloudSupport({ db, store, reports, settings });
  const { ai, agents, model } = support;
  const requests = new OpenRequests();
  const stop = new AbortController();
  // The functions emulator sets an option to accept unverified tokens. Tokens of the Auth emulator can be verified, so verify all tokens.
  setDebugSkipTokenVerification(false);
  // Verifies the ID token of the user who is signed in.
  const verify = firebaseContext();
  const context = async (request: RequestData) => {
    const caller = await verify(request);
    if (!caller.auth) throw new UserFacingError('UNAUTHENTICATED', 'Sign in, and send your ID token.');
    await background.note(caller.auth.uid);
    return caller;
  };
  const { app, events } = supportApp({
    agents,
    store,
    model,
    context,
    signIn: { kind: 'firebase', apiKey: process.env.WEB_API_KEY ?? '' },
    pageFolder: findPage(import.meta.url),
    requests,
    stop: stop.signal,
  });
  const close = async () => {
    events.endAll();
    await leaveInTime({ ai, requests, stop, graceMs: settings.graceMs });
    await support.close();
  };
  endInOrder({ close, fail });

  return {
    answer: (request, response) => void app(request, response),
    recover: async () => {
      for (const uid of await background.users()) {
        const context = contextOf(uid);
        const { runs } = await recoverRuns(ai, { context });
        await Promise.all(
          runs.map(({ agent, snapshotId }) =>
            agents[agent as keyof typeof agents].waitForSnapshot(snapshotId, { context }),
          ),
        );
        await processMemoryJobs(ai, { context });
      }
    },
  };
}

/** Exports telemetry in the cloud only, where `K_SERVICE` is set, and not in the emulator. */
async function exportTelemetry(): Promise<void> {
  if (!process.env.K_SERVICE || process.env.FUNCTIONS_EMULATOR) return;
  const { enableFirebaseTelemetry } = await import('@genkit-ai/firebase');
  await enableFirebaseTelemetry();
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
