import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore as GenkitFirestoreStore } from '@genkit-ai/google-cloud/beta';
import { copySessions, InMemorySessionStore, migratingStore } from 'genkitx-agents';
import { listGenkitCollection } from 'genkitx-agents/google-cloud';
import { afterAll, expect, it } from 'vitest';

const db = new Firestore({ projectId: 'demo-migrate' });
afterAll(() => db.terminate());

it('reads and copies what Genkit’s own Firestore store wrote, nested tenant prefixes included', async () => {
  const prefix = 'tenants/acme/ada';
  const from = new GenkitFirestoreStore({ db, collection: 'old-sessions', snapshotPathPrefix: () => prefix });
  const ids: string[] = [];
  for (let n = 1; n <= 28; n++) {
    const messages = Array.from({ length: n }, (_, i) => ({ role: 'user' as const, content: [{ text: `${i}` }] }));
    const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString();
    const parentId = ids.at(-1);
    const id = await from.saveSnapshot(undefined, () => ({
      sessionId: 'chat',
      status: 'completed',
      createdAt,
      ...(parentId !== undefined && { parentId }),
      state: { messages },
    }));
    ids.push(id!);
  }
  const to = new InMemorySessionStore();
  const store = migratingStore({ from, to });
  expect((await store.getSnapshot({ sessionId: 'chat' }))?.state?.messages).toHaveLength(28);
  const list = listGenkitCollection(db, { collection: 'old-sessions', prefix });
  expect(await copySessions(from, to, { list })).toEqual({
    sessions: 1,
    snapshots: 28,
    scopes: 0,
    records: 0,
    diverged: [],
    partial: [],
  });
  expect((await to.listSnapshots({ sessionId: 'chat' })).items.map(({ snapshotId }) => snapshotId)).toEqual(ids);
  expect((await to.getSnapshot({ snapshotId: ids[26]! }))?.state?.messages).toHaveLength(27);
});
