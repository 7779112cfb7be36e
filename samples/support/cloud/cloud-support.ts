import type { Firestore } from '@google-cloud/firestore';
import { GenkitError, type ActionContext } from 'genkit';
import { genkit, type BackgroundOptions, type SnapshotPathPrefix, type SnapshotStore } from 'genkitx-agents';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import { customerMemory } from '../agent/customer-memory.ts';
import { defineAgents } from '../agent/define-agents.ts';
import type { ReportState } from '../agent/report-agent.ts';
import type { SupportState } from '../agent/state.ts';

import { geminiModel, offlineModel, STEP_PACES } from '../models/choose-model.ts';
import { FirestoreOrderBook } from './firestore-order-book.ts';
import type { CloudSettings } from './settings.ts';

export interface CloudSupportOptions {
  /** The database of refunds and memories. `close` terminates it, and closes the stores. */
  db: Firestore;
  /** The store of conversations. */
  store: SnapshotStore<SupportState>;
  /** The store of reports. */
  reports: SnapshotStore<ReportState>;
  settings: CloudSettings;
  /** How this instance finds and takes over runs whose instances ended. Default: it does not. */
  recovering?: Pick<BackgroundOptions, 'recover' | 'recoverContexts'>;
}

/** The agents of one of many instances. */
export async function defineCloudSupport({ db, store, reports, settings, recovering }: CloudSupportOptions) {
  const { geminiApiKey, offlinePaceMs, leaseMs } = settings;
  const model = geminiApiKey ? await geminiModel(geminiApiKey) : offlineModel(offlinePaceMs);
  const ai = genkit({ plugins: model.plugins });
  // The same tenants as the conversations, so that memories of a user's conversations are in the user's own tenant.
  const memories = new FirestoreMemoryStore({ db, pathPrefix: byUser });
  const memory = customerMemory(ai, { store: memories, model, redact: async (text) => text });
  const agents = defineAgents(ai, {
    book: new FirestoreOrderBook(db),
    model,
    memory,
    store,
    reports,
    stepMs: STEP_PACES * offlinePaceMs,
    background: { leaseMs, heartbeatIntervalMs: Math.max(1, Math.floor(leaseMs / 4)), ...recovering },
  });
  const close = async () => {
    await memory.close();
    await memories.close();
    await store.close();
    await reports.close();
    await db.terminate();
  };
  return { ai, agents, model, close };
}

/** A `snapshotPathPrefix` with a tenant for each user. Refuses a caller who is not signed in. */
export const byUser: SnapshotPathPrefix = (options) => {
  const uid = options?.context?.auth?.['uid'] as unknown;
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new GenkitError({
    status: 'UNAUTHENTICATED',
    message: 'Conversations belong to a user. Sign in first.',
  });
};

/**
 * The context of a user's own requests, for work on the user's behalf without a request.
 *
 * @param email The verified e-mail address, which identifies the user's orders.
 */
export function contextOf(uid: string, email?: string): ActionContext {
  return { auth: { uid, ...(email !== undefined && { email }) } };
}
