import { FirestoreSessionStore as GenkitStore } from '@genkit-ai/google-cloud/beta';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect, it } from 'vitest';
import { allDocuments } from '../support/at-rest.ts';
import { openDatabase } from '../support/database.ts';

const turn = (sessionId?: string): SessionSnapshotInput => ({
  ...(sessionId && { sessionId }),
  createdAt: '2026-01-01T00:00:00.000Z',
  status: 'completed',
  state: { custom: {} },
});

it.each(['ann', 'acme/users/ann'])(
  'a collection of Genkit’s own store is not changed, and every call for sessions says to use another (tenant %s)',
  async (tenant) => {
    const db = openDatabase();
    const options = { db, collection: 'genkit', snapshotPathPrefix: () => tenant };
    await new GenkitStore(options).saveSnapshot('theirs', () => ({ ...turn('chat'), sessionId: 'chat' }));
    const theirs = async (): Promise<unknown[]> =>
      (await allDocuments(db))
        .filter(({ ref }) => ref.parent.id !== 'records')
        .map((document) => [document.ref.path, document.data()]);
    const before = await theirs();
    const calls: ((store: FirestoreSessionStore) => Promise<unknown>)[] = [
      (store) => store.getSnapshot({ sessionId: 'chat' }),
      (store) => store.getSnapshot({ sessionId: 'other' }),
      (store) => store.getSnapshot({ snapshotId: 'theirs' }),
      (store) => store.getSnapshot({ snapshotId: 'other/é' }),
      (store) => store.getSnapshotMetadata({ snapshotId: 'other' }),
      (store) => store.saveSnapshot('theirs', () => turn('chat')),
      (store) => store.saveSnapshot('ours', () => turn('new')),
      (store) => store.saveSnapshot('ours', () => turn()),
      (store) => store.listSessions(),
      (store) => store.listSnapshots({ sessionId: 'chat' }),
      (store) => store.deleteSession({ sessionId: 'chat' }),
      (store) => store.deleteSessions({ sessionIds: ['chat'] }),
      (store) => store.prune({ idleMs: 0 }),
      (store) => store.erase(),
    ];
    for (const call of calls) {
      await expect(call(new FirestoreSessionStore(options)), call.toString()).rejects.toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringMatching(
          /migratingStore\(\{ from, to \}\).*another collection|another collection.*migratingStore/,
        ),
      });
    }
    expect(await theirs()).toEqual(before);
    // Records have collections of their own.
    const store = new FirestoreSessionStore(options);
    await store.writeRecord({ sessionId: 'chat', kind: 'note', key: 'a', value: 1 });
    expect(await store.readRecords({ sessionId: 'chat' })).toMatchObject([{ value: 1 }]);
    expect(await store.listScopes()).toEqual({ items: [] });
    expect(await theirs()).toEqual(before);
    const ours = new FirestoreSessionStore({ ...options, snapshotPathPrefix: () => 'bob' });
    await ours.saveSnapshot('ours', () => turn('new'));
  },
);
