import type { Firestore } from '@google-cloud/firestore';
import { defineAgent, genkit, type SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreMemoryStore, FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { memoryManager } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, it } from 'vitest';
import { scriptedModel } from '../../../support/scripted-model.ts';
import { afterReads } from '../support/between-calls.ts';
import { openDatabase } from '../support/database.ts';
import { trafficOf, trafficSoFar } from '../support/transport.ts';

const ADA = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
const turn: SessionSnapshotInput = { sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' };

describe('reads of one tick', () => {
  let db: Firestore;
  beforeEach(async () => {
    trafficSoFar();
    db = openDatabase();
    // A client's first request sets up its connection.
    await db.doc('warm/up').get();
  });

  it('of a turn, from its session and its memories, are one request: memories add reads, but no request', async () => {
    const ai = genkit();
    const { name: model } = scriptedModel(ai, { otherwise: 'Fine.' });
    const store = new FirestoreMemoryStore({ db });
    const memory = memoryManager(ai, { store, appName: 'shop', extract: () => [], worker: false });
    const costs = [];
    for (const [name, options] of [['plain', {}] as const, ['remembering', { memory: memory.attach() }] as const]) {
      const sessions = new FirestoreSessionStore({ db, collection: name });
      const chat = defineAgent(ai, { name, model, store: sessions, ...options }).chat(
        {},
        { context: { auth: { uid: 'ada' } } },
      );
      await chat.send('One.');
      await chat.send('Two.');
      const { reads, writes, rpcs } = await trafficOf(() => chat.send('Three.'));
      costs.push({ reads, writes, rpcs });
    }
    await memory.close();
    const [plain, remembering] = costs;
    expect(plain).toEqual({ reads: 1, writes: 2, rpcs: 2 });
    expect(remembering).toEqual({ ...plain, reads: 2 });
  });

  it('count for the store that made them, and the request for the first store', async () => {
    const [sessions, memories] = [new FirestoreSessionStore({ db }), new FirestoreMemoryStore({ db })];
    await sessions.saveSnapshot('one', () => turn);
    const before = sessions.stats();
    const { reads, rpcs } = await trafficOf(() =>
      Promise.all([sessions.getSnapshot({ snapshotId: 'one' }), memories.revision(ADA)]),
    );
    expect({ reads, rpcs }).toEqual({ reads: 2, rpcs: 1 });
    expect(sessions.stats()).toMatchObject({ reads: before.reads + 1, rpcs: before.rpcs + 1 });
    expect(memories.stats()).toMatchObject({ reads: 1, rpcs: 0 });
  });

  it('of 50 sessions are 5 requests, and each gets its own', async () => {
    const store = new FirestoreSessionStore({ db });
    const ids = Array.from({ length: 50 }, (_, i) => `turn ${i}`);
    await Promise.all(ids.map((id) => store.saveSnapshot(id, () => ({ ...turn, sessionId: `chat ${id}` }))));
    const { rpcs } = await trafficOf(async () => {
      const found = await Promise.all(ids.map((snapshotId) => store.getSnapshot({ snapshotId })));
      expect(found.map((snapshot) => snapshot?.snapshotId)).toEqual(ids);
    });
    expect(rpcs).toBe(5);
  });

  it('of one document are one request, and all calls get it', async () => {
    const store = new FirestoreSessionStore({ db });
    await store.saveSnapshot('one', () => turn);
    const before = store.stats().reads;
    const { rpcs, reads } = await trafficOf(async () => {
      const found = await Promise.all([1, 2, 3].map(() => store.getSnapshot({ snapshotId: 'one' })));
      expect(found.map((snapshot) => snapshot?.snapshotId)).toEqual(['one', 'one', 'one']);
    });
    expect({ rpcs, reads, counted: store.stats().reads - before }).toEqual({ rpcs: 1, reads: 1, counted: 1 });
  });

  it('of more documents than one request takes are several requests', async () => {
    const store = new FirestoreSessionStore({ db });
    const scopes = Array.from({ length: 90 }, (_, i) => ({ ...ADA, userId: `user ${i}` }));
    const { rpcs } = await trafficOf(() => store.readScopes({ scopes }));
    expect(rpcs).toBe(3);
  });

  it('end well when the store that began the request is closed at once', async () => {
    const [sessions, memories] = [new FirestoreSessionStore({ db }), new FirestoreMemoryStore({ db })];
    await sessions.saveSnapshot('one', () => turn);
    const read = sessions.getSnapshot({ snapshotId: 'one' });
    for (let i = 0; i < 8; i++) await Promise.resolve();
    const closing = sessions.close();
    expect(await memories.revision(ADA)).toBe(0);
    expect((await read)?.snapshotId).toBe('one');
    await expect(sessions.getSnapshot({ snapshotId: 'one' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await closing;
  });

  it.each([4, 6, 8, 20])('end well when the client is terminated %i promises later', async (count) => {
    const store = new FirestoreSessionStore({ db });
    await store.saveSnapshot('one', () => turn);
    const read = store.getSnapshot({ snapshotId: 'one' });
    for (let i = 0; i < count; i++) await Promise.resolve();
    await db.terminate();
    expect((await read)?.snapshotId).toBe('one');
  });

  it('wait as long as each store allows', async () => {
    const memories = new FirestoreMemoryStore({ db, requestTimeoutMs: 1 });
    const sessions = new FirestoreSessionStore({ db });
    await sessions.saveSnapshot('one', () => turn);
    afterReads(db, () => new Promise((resolve) => setTimeout(resolve, 50)));
    const revision = memories.revision(ADA).catch((error: unknown) => error);
    expect((await sessions.getSnapshot({ snapshotId: 'one' }))?.snapshotId).toBe('one');
    expect(await revision).toMatchObject({ status: 'UNAVAILABLE' });
  });
});
