import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore as GenkitStore } from '@genkit-ai/google-cloud/beta';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { allDocuments } from './support/at-rest.ts';
import { openDatabase } from './support/database.ts';

const message = (n: number): object => ({ role: 'user', content: [{ text: `message ${n} `.repeat(20) }] });

function turn(n: number, parentId?: string): SessionSnapshotInput {
  return {
    sessionId: 'chat',
    createdAt: new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString(),
    status: 'completed',
    ...(parentId !== undefined && { parentId }),
    state: { messages: Array.from({ length: n + 1 }, (_, i) => message(i)) as never, custom: { n } },
  };
}

describe('a database that Genkit’s own Firestore store wrote', () => {
  let db: Firestore;
  let collection: string;
  let runs = 0;
  const open = (): FirestoreSessionStore => new FirestoreSessionStore({ db, collection });

  beforeAll(() => void (db = openDatabase()));
  afterAll(() => db.terminate());
  beforeEach(async () => {
    collection = `genkit-${runs++}`;
    const genkit = new GenkitStore({ db, collection, checkpointInterval: 4 });
    for (let n = 0; n < 10; n++)
      await genkit.saveSnapshot(`turn ${n}`, () => turn(n, n > 0 ? `turn ${n - 1}` : undefined));
  });

  it('is opened: every snapshot is there by its id, the leaf by its session, and the lists', async () => {
    const store = open();
    for (let n = 0; n < 10; n++) {
      const found = await store.getSnapshot({ snapshotId: `turn ${n}` });
      expect(found).toMatchObject({ ...turn(n), snapshotId: `turn ${n}` });
    }
    expect((await store.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('turn 9');
    const { items } = await store.listSnapshots({ sessionId: 'chat' });
    expect(items.map((item) => item.snapshotId)).toEqual(Array.from({ length: 10 }, (_, n) => `turn ${n}`));
    const sessions = await store.listSessions();
    expect(sessions.items).toMatchObject([{ sessionId: 'chat', leafId: 'turn 9', leafCount: 1, snapshotCount: 10 }]);
  });

  it('goes on and branches', async () => {
    const store = open();
    await store.saveSnapshot('turn 10', () => turn(10, 'turn 9'), { expectedLeafId: 'turn 9' });
    await store.saveSnapshot('branch', () => turn(4, 'turn 3'));
    for (const reader of [store, open()]) {
      expect((await reader.getSnapshot({ snapshotId: 'turn 10' }))?.state).toEqual(turn(10).state);
      expect((await reader.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('branch');
      for (let n = 0; n < 10; n++) {
        expect((await reader.getSnapshot({ snapshotId: `turn ${n}` }))?.state).toEqual(turn(n).state);
      }
      const { items } = await reader.listSnapshots({ sessionId: 'chat' });
      expect(items.map((item) => item.snapshotId).slice(-3)).toEqual(['turn 9', 'turn 10', 'branch']);
    }
  });

  it('a rewritten snapshot leaves those that stand on it as they were', async () => {
    const store = open();
    await store.saveSnapshot('turn 5', (current) => ({ ...current!, state: { custom: { rewritten: true } } }));
    await store.saveSnapshot('turn 4', (current) => ({ ...current!, state: { custom: { rewritten: true } } }));
    for (const reader of [store, open()]) {
      for (let n = 0; n < 10; n++) {
        const { state } = (await reader.getSnapshot({ snapshotId: `turn ${n}` }))!;
        expect(state).toEqual(n === 4 || n === 5 ? { custom: { rewritten: true } } : turn(n).state);
      }
    }
  });

  it('is pruned without harm to what stays', async () => {
    const store = open();
    expect(await store.prune({ maxChainLength: 3 }, { dryRun: true })).toMatchObject({ snapshots: 7 });
    expect(await store.prune({ maxChainLength: 3 })).toMatchObject({ snapshots: 7 });
    for (const reader of [store, open()]) {
      for (let n = 0; n < 10; n++) {
        const found = await reader.getSnapshot({ snapshotId: `turn ${n}` });
        expect(found?.state).toEqual(n < 7 ? undefined : turn(n).state);
      }
    }
  });

  it('is deleted whole', async () => {
    const { snapshots } = await open().deleteSession({ sessionId: 'chat' });
    expect(snapshots).toBe(10);
    const left = (await allDocuments(db)).filter((document) => document.ref.path.startsWith(collection));
    expect(left.map((document) => document.ref.path)).toEqual([]);
  });
});
