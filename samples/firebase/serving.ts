import type { IncomingMessage, ServerResponse } from 'node:http';
import { firebaseContext, setDebugSkipTokenVerification } from '@genkit-ai/firebase/context';
import { initializeApp } from 'firebase-admin/app';
import { getFirestore } from 'firebase-admin/firestore';
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

/** What the functions of this instance share. */
export interface Serving {
  answer(request: IncomingMessage, response: ServerResponse): void;
  /** Takes over the runs whose instances ended; resolves when they have an end. */
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
  const settings = readCloudSettings(process.env);
  const { ai, agent } = await defineCloudSupport({ db, store, settings });
  const background = new Background(db);
  const requests = new OpenRequests();
  const stop = new AbortController();
  // The functions emulator asks for tokens to be believed unread; verifying those of the Auth emulator works as well, and nobody can ask for it.
  setDebugSkipTokenVerification(false);
  // Verifies the ID token of the user who is signed in.
  const context = firebaseContext<AgentInput | undefined>(async ({ auth }, input) => {
    if (!auth) throw new UserFacingError('UNAUTHENTICATED', 'Sign in, and send your ID token.');
    if (input?.detach) await background.note(auth.uid);
  });
  const router = agentRouter({ support: agent }, { context, stopSignal: stop.signal });
  const close = async () => {
    await leaveInTime({ ai, requests, stop, graceMs: settings.graceMs });
    await store.close();
    await db.terminate();
  };
  endInOrder({ close, fail });

  return {
    answer: (request, response) => {
      requests.add(response);
      router(request, response);
    },
    recover: async () => {
      for (const uid of await background.users()) {
        const context = contextOf(uid);
        const { runs } = await recoverRuns(ai, { context });
        await Promise.all(runs.map(({ snapshotId }) => agent.waitForSnapshot(snapshotId, { context })));
      }
    },
  };
}

/** The cloud names the service; in the emulator nobody would read it. */
async function exportTelemetry(): Promise<void> {
  if (!process.env.K_SERVICE || process.env.FUNCTIONS_EMULATOR) return;
  const { enableFirebaseTelemetry } = await import('@genkit-ai/firebase');
  await enableFirebaseTelemetry();
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
