import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import { memoryManager } from 'genkitx-agents/memory';
import { afterAll, expect, it } from 'vitest';
import { ADA, put } from '../../../conformance/memory/support/drafts.ts';
import { clearProject, newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const db = openDatabase(project);
afterAll(() => clearProject(project));

const context = { auth: { uid: 'ada' } };
const LONG_MS = 60_000;

/** Memories, the first of them nearest to every text, and a manager with an embedder. */
async function setUp(collection: string, count: number) {
  const store = new FirestoreMemoryStore({ db, collection });
  for (let start = 0; start < count; start += 100) {
    await store.commit(
      ADA,
      Array.from({ length: 100 }, (_, i) => put(`m${start + i}`, {}, [1, (start + i) / 1000])),
    );
  }
  const ai = genkit({});
  ai.defineModel({ name: 'quiet', apiVersion: 'v2' }, async () => ({
    message: { role: 'model', content: [{ text: 'yes' }] },
    finishReason: 'stop',
  }));
  ai.defineEmbedder({ name: 'same' }, async (documents) => ({
    embeddings: documents.map(() => ({ embedding: [1, 0] })),
  }));
  const memory = memoryManager(ai, {
    store,
    appName: 'shop',
    embedder: 'same',
    worker: false,
    extract: () => [],
    generate: { everyTurns: 1000, onIdleMs: false },
  });
  const readsOf = async (call: () => Promise<unknown>) => {
    const { reads } = store.stats();
    await call();
    return store.stats().reads - reads;
  };
  return { ai, store, memory, scope: memory.scopeFor('user', { context }), readsOf };
}

it('a search by meaning reads what it returns and ten more, in a turn and for a new fact', async () => {
  const { ai, memory, scope, readsOf } = await setUp('search', 100);
  const search = (k: number) => memory.search({ scope, query: 'What is this?', k, deadlineMs: LONG_MS });
  await search(10);
  // The memories, and the head, for the index and for the query: one read if they are in one request.
  expect(await readsOf(() => search(10))).toBeLessThanOrEqual(20 + 2);
  expect(await readsOf(() => search(50))).toBeLessThanOrEqual(50 + 2);
  const attached = memory.attach({ scope: 'user', preload: { deadlineMs: LONG_MS }, tools: [] });
  const agent = defineAgent(ai, { name: 'bot', model: 'quiet', store: new InMemorySessionStore(), memory: attached });
  const chat = agent.chat({}, { context });
  await chat.send('Which tea do I like?');
  expect(await readsOf(() => chat.send('Which tea do I like?'))).toBeLessThanOrEqual(20 + 2);
  const create = (text: string) => memory.create({ scope, memory: text, wait: true });
  await create('The user has a red hat.');
  // 20 are compared with the new fact. The rest is the job, the commit, and the changes since.
  expect(await readsOf(() => create('The user has a blue hat.'))).toBeLessThanOrEqual(20 + 40);
});

it('a query by vector with a filter reads more only if too few of the nearest match', async () => {
  const { store, readsOf } = await setUp('filtered', 300);
  await store.commit(ADA, [
    ...[250, 251].map((i) => put(`m${i}`, { topics: ['rare'] })),
    ...[1, 3, 5, 7, 9].map((i) => put(`m${i}`, { kind: 'procedural' })),
  ]);
  const query = (k: number, filter: object) => store.query(ADA, { vector: [1, 0], k, filter });
  const idsOf = async (found: ReturnType<typeof query>) => (await found).items.map(({ memory }) => memory.id);
  const [declarative, rare] = [{ kind: 'declarative' }, { topics: ['rare'] }];
  expect(await idsOf(query(5, declarative))).toEqual(['m0', 'm2', 'm4', 'm6', 'm8']);
  expect(await idsOf(query(2, rare))).toEqual(['m250', 'm251']);
  // 5 of which 3 match, then twice as many as needed.
  expect(await readsOf(() => query(5, declarative))).toBe(1 + 5 + 17);
  // None of the first matches, so all are read.
  expect(await readsOf(() => query(2, rare))).toBe(1 + 2 + 300);
});
