import { firebaseContext } from '@genkit-ai/firebase/context';
import { initializeApp } from 'firebase-admin/app';
import { getFirestore } from 'firebase-admin/firestore';
import { onRequest } from 'firebase-functions/https';
import { onSchedule } from 'firebase-functions/scheduler';
import { UserFacingError } from 'genkit';
import { recoverRuns, type AgentInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/firebase';
import { agentRouter } from 'genkitx-agents/server';
import type { SupportState } from '../support/agent/state.ts';
import { byUser, contextOf, defineCloudSupport } from '../support/cloud/cloud-support.ts';
import { leaveInTime, OpenRequests } from '../support/cloud/leave-in-time.ts';
import { readCloudSettings } from '../support/cloud/settings.ts';
import { endInOrder } from '../support/end-in-order.ts';
import { Background } from './background.ts';

// Functions have the name of their service in the environment; while they are deployed, and in the emulator, nobody would read it.
if (process.env.K_SERVICE && !process.env.FUNCTIONS_EMULATOR) {
  const { enableFirebaseTelemetry } = await import('@genkit-ai/firebase');
  await enableFirebaseTelemetry();
}

const firebaseApp = initializeApp();
const db = getFirestore(firebaseApp);
// After an outage gRPC would pause for up to two minutes.
db.settings({ 'grpc.max_reconnect_backoff_ms': 2_000 });
const store = new FirestoreSessionStore<SupportState>({ firebaseApp, snapshotPathPrefix: byUser });
const settings = readCloudSettings(process.env);
const { ai, agent } = await defineCloudSupport({ db, store, settings });
const background = new Background(db);

const requests = new OpenRequests();
const stop = new AbortController();
const router = agentRouter(
  { support: agent },
  {
    // Verifies the ID token of the user who is signed in.
    context: firebaseContext<AgentInput | undefined>(async ({ auth }, input) => {
      if (!auth) throw new UserFacingError('UNAUTHENTICATED', 'Sign in, and send your ID token.');
      if (input?.detach) await background.note(auth.uid);
    }),
    stopSignal: stop.signal,
  },
);

/** The agent: `POST <url of the function>/support`. */
export const agents = onRequest({ cors: true, invoker: 'public', timeoutSeconds: 300 }, (request, response) => {
  endInTime();
  requests.add(response);
  router(request, response);
});

/**
 * Takes over the background runs whose instances ended, and sees them through: a function has its processor while it answers, so a run that
 * goes on after the answer goes on slowly, or not at all.
 */
export const recover = onSchedule({ schedule: 'every 2 minutes', timeoutSeconds: 300 }, async () => {
  endInTime();
  for (const uid of await background.users()) {
    const context = contextOf(uid);
    const { runs } = await recoverRuns(ai, { context });
    await Promise.all(runs.map(({ snapshotId }) => agent.waitForSnapshot(snapshotId, { context })));
  }
});

let endsInTime = false;

/** By the first request the framework and Genkit have said what is to happen on SIGTERM: both would end the process at once. */
function endInTime(): void {
  if (endsInTime) return;
  endsInTime = true;
  const close = async () => {
    await leaveInTime({ ai, requests, stop, graceMs: settings.graceMs });
    await store.close();
    await db.terminate();
  };
  const fail = (error: unknown) => {
    console.error(error);
    process.exit(1);
  };
  endInOrder({ close, fail });
}
