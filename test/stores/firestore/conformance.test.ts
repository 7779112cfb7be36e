import { randomUUID } from 'node:crypto';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { sessionStoreConformance } from 'genkitx-agents/testing';
import { afterAll, describe, it } from 'vitest';
import { openDatabase } from './support/database.ts';

// Two clients, as two processes would have them.
const [first, second] = [openDatabase('demo-conformance'), openDatabase('demo-conformance')];

afterAll(async () => {
  await Promise.all([first.terminate(), second.terminate()]);
});

for (const { options, effort, tenants } of [
  { options: {}, effort: 0.06, tenants: true },
  // Small ones, so that much of what large sessions need happens.
  { options: { checkpointInterval: 3, shardSize: 1024 }, effort: 0.1, tenants: false },
  { options: { checkpointInterval: 1 }, effort: 0.02, tenants: false },
]) {
  sessionStoreConformance({
    name: `FirestoreSessionStore ${JSON.stringify(options)}`,
    runner: { describe, it },
    capabilities: new FirestoreSessionStore({ db: first }).capabilities,
    effort,
    tenants,
    open: async (stage) => {
      const collection = `kit-${randomUUID()}`;
      const open = (db = first) => new FirestoreSessionStore({ db, collection, ...options, ...stage });
      const stores = [open(), open(second)] as const;
      const opened = [...stores];
      return {
        a: stores[0],
        b: stores[1],
        reopen: async () => {
          const store = open();
          opened.push(store);
          return store;
        },
        close: async () => {
          await Promise.all(opened.map((store) => store.close()));
        },
      };
    },
  });
}
