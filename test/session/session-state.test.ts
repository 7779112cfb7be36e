import { InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { sessionStateSuite } from './session-state-suite.ts';

sessionStateSuite('InMemorySessionStore', async (options) => {
  const store = new InMemorySessionStore(options);
  return { a: store, b: store, raw: () => allOf(store), close: () => store.close() };
});

/** What is in the store as far as it can be read: its medium is not to be looked into. */
async function allOf(store: SnapshotStore): Promise<string> {
  const all: unknown[] = [];
  for (const { sessionId } of (await store.listSessions()).items) {
    for (const { snapshotId } of (await store.listSnapshots({ sessionId })).items) {
      all.push(await store.getSnapshot({ snapshotId }));
    }
  }
  return JSON.stringify(all);
}
