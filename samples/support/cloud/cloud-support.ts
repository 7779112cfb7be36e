import type { Firestore } from '@google-cloud/firestore';
import { GenkitError, type ActionContext } from 'genkit';
import { genkit, type BackgroundOptions, type SnapshotPathPrefix, type SnapshotStore } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import { defineSupportAgent } from '../agent/support-agent.ts';
import { geminiModel, offlineModel } from '../models/choose-model.ts';
import { FirestoreOrderBook } from './firestore-order-book.ts';
import type { CloudSettings } from './settings.ts';

export interface CloudSupportOptions {
  /** Where refunds are kept. */
  db: Firestore;
  /** Where conversations are kept. */
  store: SnapshotStore<SupportState>;
  settings: CloudSettings;
  /** How this instance looks for runs whose instances ended; it does not unless told. */
  recovering?: Pick<BackgroundOptions, 'recover' | 'recoverContexts'>;
}

/** The support agent as an instance of many serves it. */
export async function defineCloudSupport({ db, store, settings, recovering }: CloudSupportOptions) {
  const { geminiApiKey, offlinePaceMs, leaseMs } = settings;
  const model = geminiApiKey ? await geminiModel(geminiApiKey) : offlineModel(offlinePaceMs);
  const ai = genkit({ plugins: model.plugins });
  const agent = defineSupportAgent(ai, {
    book: new FirestoreOrderBook(db),
    model,
    store,
    running: {
      // A turn that its instance has to stop is there to be gone on from.
      onAbort: 'keep',
      background: { leaseMs, heartbeatIntervalMs: Math.max(1, Math.floor(leaseMs / 4)), ...recovering },
    },
  });
  return { ai, agent, model };
}

/** Each user has conversations of their own: for `snapshotPathPrefix`. Who is nobody has none. */
export const byUser: SnapshotPathPrefix = (options) => {
  const uid = options?.context?.auth?.['uid'] as unknown;
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new GenkitError({
    status: 'UNAUTHENTICATED',
    message: 'Conversations belong to a user, and nobody is signed in.',
  });
};

/** The context of a user's own requests, for what is done on their behalf without one. */
export function contextOf(uid: string): ActionContext {
  return { auth: { uid } };
}
