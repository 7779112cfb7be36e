/** A mistyped option of a call is refused before anything is written or removed, in all stores: they share the check. */
import { FileSessionStore, InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { Firestore } from '@google-cloud/firestore';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';

type Call = (store: SnapshotStore, options: object) => unknown;
const createdAt = new Date().toISOString();

const CALLS: Readonly<Record<string, [Call, mistyped: object]>> = {
  prune: [(store, options) => store.prune({ idleMs: 0 }, options), { dryrun: true }],
  deleteSession: [
    (store, options) => store.deleteSession({ sessionId: 'one', ...options }),
    { expectedLeafID: 'another' },
  ],
  listSessions: [(store, options) => store.listSessions(options), { ownerID: 'ada' }],
  listSnapshots: [(store, options) => store.listSnapshots({ sessionId: 'one', ...options }), { max: 1 }],
  saveSnapshot: [
    (store, options) => store.saveSnapshot(undefined, () => ({ sessionId: 'one', createdAt }), options),
    { expectedLeafID: null },
  ],
  onSnapshotStateChange: [
    async (store, options) => store.onSnapshotStateChange('a', () => {}, options),
    { snapshotId: 'a' },
  ],
};

const STORES: Readonly<Record<string, () => SnapshotStore>> = {
  'in memory': () => new InMemorySessionStore(),
  'on files': () => new FileSessionStore(temporaryFolder(), { durability: 'fast' }),
  // The call is refused before the database is asked.
  'on Firestore': () => new FirestoreSessionStore({ db: new Firestore({ projectId: 'none' }), collection: 'c' }),
};

describe('a mistyped option', () => {
  for (const [name, open] of Object.entries(STORES)) {
    it(`of a call of a store ${name} is refused, with the name that was meant`, async () => {
      const store = open();
      const isLocal = name !== 'on Firestore';
      if (isLocal)
        await store.saveSnapshot('a', () => ({ sessionId: 'one', createdAt }), { session: { ownerId: 'eve' } });
      for (const [call, [run, mistyped]] of Object.entries(CALLS)) {
        const option = Object.keys(mistyped)[0]!;
        await expect(
          Promise.resolve().then(() => run(store, mistyped)),
          call,
        ).rejects.toMatchObject({
          status: 'INVALID_ARGUMENT',
          message: expect.stringContaining(`${call} has no option '${option}'`),
        });
        if (isLocal) await run(store, { context: { auth: { uid: 'ada' } } });
        if (isLocal) await store.saveSnapshot('a', () => ({ sessionId: 'one', createdAt }));
      }
      await store.close();
    });
  }

  it('of a lookup is not: Genkit’s runtime hands on what its client has sent', async () => {
    const store = new InMemorySessionStore();
    await store.saveSnapshot('a', () => ({ sessionId: 'one', createdAt }));
    const lookup = { sessionId: 'one', metadataOnly: true, waitMs: 1 };
    expect((await store.getSnapshot(lookup))?.snapshotId).toBe('a');
  });
});
