import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { assertFails, initializeTestEnvironment } from '@firebase/rules-unit-testing';
import { deleteDoc, doc, getDoc, setDoc } from 'firebase/firestore';
import { genkit } from 'genkitx-agents';
import { FirestoreMemoryStore, type FirestoreUsage } from 'genkitx-agents/google-cloud';
import { memoryManager, type MemoryQuery } from 'genkitx-agents/memory';
import { afterAll, describe, expect, it } from 'vitest';
import { ADA, BOB, isoOf, note, put, source, START } from '../../../conformance/memory/support/drafts.ts';
import { scale } from '../../../support/scale.ts';
import { childScript } from '../../../support/child-script.ts';
import { textOfDocuments } from '../support/all-text.ts';
import { clearProject, emulatorHost, newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const db = openDatabase(project);
afterAll(() => clearProject(project));

/** The use of Firestore by a call. */
async function costOf(store: FirestoreMemoryStore, call: () => Promise<unknown>): Promise<Partial<FirestoreUsage>> {
  const before = store.stats();
  await call();
  const after = store.stats();
  const [reads, writes, deletes, rpcs] = (['reads', 'writes', 'deletes', 'rpcs'] as const).map(
    (key) => after[key] - before[key],
  );
  return { reads: reads!, writes: writes!, deletes: deletes!, rpcs: rpcs! };
}

it('memory once: corroborations by 2 processes are all counted, those by memory managers are all counted, 12 jobs are done once each', async () => {
  const store = new FirestoreMemoryStore({ db });
  await store.commit(ADA, [put('seat', { times: 0 })]);
  for (let i = 0; i < 12; i++) {
    const scope = { scope: 'user', appName: 'shop', userId: `u${i % 4}` } as const;
    await store.addJob({ id: `job ${i}`, scope, input: i, sourceId: `chat ${i}` }, { maxJobs: 100 });
  }
  const script = await childScript(new URL('../processes/memory-writer.ts', import.meta.url));
  const run = promisify(execFile);
  // All sources of a process are added to one queue at once, which the emulator does slowly.
  const [times, sources] = [scale(4, 25), scale(2, 25)];
  await Promise.all(
    ['w1', 'w2'].map((owner) => run(process.execPath, [script, project, owner, String(times), String(sources)])),
  );
  const [memory] = await store.get(ADA, ['seat']);
  expect([memory?.['times'], memory?.revision, await store.revision(ADA)]).toEqual([
    2 * times,
    2 * times + 1,
    2 * times + 1,
  ]);
  const managed = new FirestoreMemoryStore({ db, collection: 'managed' });
  const { items } = await managed.query({ scope: 'user', appName: 'chat', userId: 'user0' });
  await managed.close();
  expect(items.map((hit) => [hit.memory.revision, new Set(hit.memory.sources.map(({ id }) => id)).size])).toEqual([
    [2 * sources, 2 * sources],
  ]);
  const counts: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const { notes } = await store.notes({ scope: 'user', appName: 'shop', userId: `u${i}` }, 'count');
    counts.push(...notes.map(({ value }) => value));
  }
  expect(counts).toEqual(Array.from({ length: 12 }, () => 1));
  await store.close();
});

it('costs what the docs say', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'cost' });
  await store.commit(ADA, [put('one'), put('two'), note('profile', 'it', 1)]);
  const cost = (call: () => Promise<unknown>): Promise<Partial<FirestoreUsage>> => costOf(store, call);
  expect(await cost(() => store.revision(ADA))).toEqual({ reads: 1, writes: 0, deletes: 0, rpcs: 1 });
  expect(await cost(() => store.changes(ADA, { since: 1 }))).toEqual({ reads: 1, writes: 0, deletes: 0, rpcs: 1 });
  // The head with the revision, and the note.
  expect(await cost(() => store.notes(ADA, 'profile', { keys: ['it'] }))).toEqual({
    reads: 2,
    writes: 0,
    deletes: 0,
    rpcs: 1,
  });
  // Read: the head and the memory; written: the head, the memory and its revision.
  expect(await cost(() => store.commit(ADA, [put('one')]))).toEqual({ reads: 2, writes: 3, deletes: 0, rpcs: 2 });
  expect(await cost(() => store.commit(ADA, [note('profile', 'it', 2)]))).toEqual({
    reads: 1,
    writes: 2,
    deletes: 0,
    rpcs: 2,
  });
  // Also read: the job and its queue; also written: the job if it is kept, else the queue.
  for (const id of ['one', 'two']) await store.addJob({ id, scope: ADA, input: 1, sourceId: id }, { maxJobs: 9 });
  await store.claimJob({ owner: 'w', leaseMs: 60_000 });
  const job = { id: 'one', owner: 'w' };
  expect(await cost(() => store.commit(ADA, [note('profile', 'it', 3)], { job: { ...job, keep: true } }))).toEqual({
    reads: 3,
    writes: 3,
    deletes: 0,
    rpcs: 2,
  });
  expect(await cost(() => store.commit(ADA, [note('profile', 'it', 4)], { job }))).toEqual({
    reads: 3,
    writes: 3,
    deletes: 1,
    rpcs: 2,
  });
  await store.changeJob('two', { owner: undefined, to: 'remove' });
  // The head, which has the floor of the last erasure, and the memories.
  expect(await cost(() => store.get(ADA, ['one']))).toEqual({ reads: 2, writes: 0, deletes: 0, rpcs: 1 });
  expect(await cost(() => store.query(ADA))).toEqual({ reads: 3, writes: 0, deletes: 0, rpcs: 2 });
  expect(await cost(() => store.query(ADA, { asOf: isoOf(Date.now()) }))).toEqual({
    reads: 3,
    writes: 0,
    deletes: 0,
    rpcs: 2,
  });
  // The head, the memory and its revision.
  expect(await cost(() => store.revisions(ADA, 'one'))).toEqual({ reads: 3, writes: 0, deletes: 0, rpcs: 2 });
  // The head, two memories, and a revision.
  expect(await cost(() => store.bySource(ADA, 'chat-1'))).toEqual({ reads: 4, writes: 0, deletes: 0, rpcs: 3 });
  expect(await cost(() => store.claimJob({ owner: 'w', leaseMs: 1000 }))).toEqual({
    reads: 1,
    writes: 0,
    deletes: 0,
    rpcs: 1,
  });
  await store.commit(
    BOB,
    Array.from({ length: 100 }, (_, i) => put(`m${i}`)),
  );
  await store.commit(
    BOB,
    Array.from({ length: 100 }, (_, i) => put(`m${i}`)),
  );
  await store.commit(
    BOB,
    Array.from({ length: 100 }, (_, i) => put(`m${i}`)),
  );
  const { rpcs } = await cost(() => store.erase(BOB));
  const small = await cost(() => store.erase(ADA));
  // 300 documents with a request to read and one to remove them more than a few documents take.
  expect(rpcs! - small.rpcs!).toBeLessThanOrEqual(2);
  await store.close();
});

it('reads no vectors to find the nearest, the last and the changed memories', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'vectors' });
  const vectorOf = (i: number) => Array.from({ length: 768 }, (_, at) => (at === i ? 1 : 0.01));
  await store.commit(
    ADA,
    [0, 1, 2].map((i) => put(`m${i}`, {}, vectorOf(i))),
  );
  const bytesOf = async (call: () => Promise<unknown>) => {
    const { bytesRead } = store.stats();
    await call();
    return store.stats().bytesRead - bytesRead;
  };
  const nearest = () => store.query(ADA, { vector: vectorOf(1), k: 2 });
  const { items } = await nearest();
  expect(items.map(({ memory }) => memory.id)).toEqual(['m1', expect.any(String)]);
  expect(items[0]!.similarity).toBeCloseTo(1, 6);
  // A vector takes 6 KB.
  expect(await bytesOf(nearest)).toBeLessThan(6_000);
  expect(await bytesOf(() => store.query(ADA, { k: 3 }))).toBeLessThan(6_000);
  expect(await bytesOf(() => store.changes(ADA, { since: 0 }))).toBeLessThan(6_000);
  await store.close();
});

/** Erases ADA's memories in a process that ends after all are marked as erased, before any is removed. */
async function eraseAndDie(store: FirestoreMemoryStore): Promise<void> {
  const real = db.batch.bind(db);
  let batches = 0;
  db.batch = () => {
    if (batches++ > 0) throw new Error('the process ends here');
    return real();
  };
  try {
    await expect(store.erase(ADA)).rejects.toThrow('the process ends here');
  } finally {
    db.batch = real;
  }
}

it('finishes an interrupted erasure, and does not return erased memories', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'broken' });
  await store.commit(
    ADA,
    [put('seat', { text: 'CANARY' }), put('meal', { text: 'CANARY' }), note('profile', 'it', 'CANARY')],
    { now: START },
  );
  await store.commit(ADA, [put('seat', { text: 'CANARY again' })]);
  await eraseAndDie(store);
  // It has the same id as an erased one.
  await store.commit(ADA, [put('seat', { text: 'new' })]);
  expect(await store.get(ADA, ['seat'])).toMatchObject([{ text: 'new', revision: 1 }]);
  expect((await store.notes(ADA, 'profile')).notes).toEqual([]);
  expect((await store.changes(ADA, { since: 0 })).changed).toMatchObject([{ text: 'new' }]);
  await store.sweep();
  expect(await textOfDocuments(db, 'broken')).not.toContain('CANARY');
  expect((await store.query(ADA)).items).toMatchObject([{ memory: { text: 'new' } }]);
  expect(await store.revisions(ADA, 'seat')).toHaveLength(1);
  await store.close();
});

it('reads no memory and no revision of a scope that was marked as erased, by any method', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'marked' });
  const ids = Array.from({ length: 90 }, (_, i) => `m${i}`);
  const near = [1, 0];
  const old = (id: string, text: string) => put(id, { text, sources: [source('old')] }, near);
  await store.commit(
    ADA,
    ids.map((id) => old(id, 'CANARY')),
    { now: START },
  );
  await store.commit(ADA, [old('m1', 'CANARY again'), old('m2', 'CANARY again')], { now: START + 1000 });
  const { nextCursor } = await store.query(ADA, { k: 10 });
  await eraseAndDie(store);
  const textsOf = async (query?: MemoryQuery) => (await store.query(ADA, query)).items.map(({ memory }) => memory.text);
  const filter = { includeInvalid: true };
  const readAll = async () => ({
    get: (await store.get(ADA, ids)).map(({ text }) => text),
    last: await textsOf(),
    'a page': await store.query(ADA, { k: 1 }),
    'the next page': await textsOf({ cursor: nextCursor! }),
    'by a topic': await textsOf({ k: 1, filter: { ...filter, topics: ['said'] } }),
    near: await textsOf({ vector: near, k: 1 }),
    'all that are near': await textsOf({ vector: near, filter }),
    'after the first commit': await textsOf({ asOf: isoOf(START) }),
    'after the second commit': await textsOf({ asOf: isoOf(START + 1000) }),
    'near after the first commit': await textsOf({ vector: near, asOf: isoOf(START) }),
    revisions: (await store.revisions(ADA, 'm1')).map(({ text }) => text),
    source: (await store.bySource(ADA, 'old')).map(({ text }) => text),
    changes: (await store.changes(ADA, { since: 0 })).changed.map(({ text }) => text),
  });
  const nothing = Object.fromEntries(Object.keys(await readAll()).map((method) => [method, [] as unknown]));
  expect(await readAll()).toEqual({ ...nothing, 'a page': { items: [] } });
  // It is farther than the erased ones, and has the id of one of them.
  await store.commit(ADA, [put('m1', { text: 'new', sources: [source('new')] }, [0.1, 1])], { now: START + 5000 });
  const [hit] = (await store.query(ADA)).items;
  expect(await readAll()).toEqual({
    ...nothing,
    get: ['new'],
    last: ['new'],
    'a page': { items: [hit] },
    'by a topic': ['new'],
    near: ['new'],
    'all that are near': ['new'],
    revisions: ['new'],
    changes: ['new'],
  });
  // The second version of the new memory is as old, by its number, as an erased one.
  await store.commit(ADA, [put('m1', { text: 'newer' })]);
  expect((await store.revisions(ADA, 'm1')).map(({ text, revision }) => [text, revision])).toEqual([
    ['new', 1],
    ['newer', 2],
  ]);
  await store.close();
});

it('brings back no memory of a scope that was marked as erased, with any commit', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'marked-commits' });
  const memory = memoryManager(genkit({}), { store, appName: 'shop' });
  const scope = memory.scopeFor('user', { context: { auth: { uid: 'ada' } } });
  await store.commit(ADA, [put('rash', { text: 'CANARY' }), put('seat', { text: 'CANARY' })], { now: START });
  const revision = await store.revision(ADA);
  const [read] = await store.get(ADA, ['seat']);
  // A turn has used it, so the next commit of a job writes when it was last used.
  memory.noteUse(scope, ['rash', 'seat']);
  await eraseAndDie(store);
  const putBack = store.commit(ADA, [{ op: 'put', memory: read! }], { expectedRevision: revision });
  await expect(putBack).rejects.toMatchObject({ status: 'ABORTED' });
  await memory.create({ scope, memory: 'The user is back' });
  const { items } = await store.query(ADA, { filter: { includeInvalid: true } });
  expect(items.map((hit) => hit.memory.text)).toEqual(['The user is back']);
  await expect(memory.restore({ scope, id: 'seat' })).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await store.sweep();
  expect(await textOfDocuments(db, 'marked-commits')).not.toContain('CANARY');
  expect((await store.query(ADA)).items.map((hit) => hit.memory.text)).toEqual(['The user is back']);
  await store.close();
});

it('refuses a commit that keeps its job, if the job is removed meanwhile', async () => {
  const own = openDatabase(project);
  const store = new FirestoreMemoryStore({ db: own, collection: 'kept' });
  const other = new FirestoreMemoryStore({ db, collection: 'kept' });
  await other.addJob({ id: 'one', scope: ADA, input: 1, sourceId: 'chat' }, { maxJobs: 9 });
  await other.claimJob({ owner: 'w', leaseMs: 60_000 });
  const getAll = own.getAll.bind(own);
  let reads = 0;
  own.getAll = async (...args) => {
    const found = await getAll(...args);
    if (reads++ === 0) await other.changeJob('one', { owner: 'w', to: 'remove' });
    return found;
  };
  const job = { id: 'one', owner: 'w', keep: true };
  await expect(store.commit(ADA, [put('late')], { job })).rejects.toMatchObject({ status: 'ABORTED' });
  expect(reads).toBe(2);
  expect((await other.query(ADA)).items).toEqual([]);
});

it('sweeps a scope that is erased meanwhile, and does not write its name again', async () => {
  const own = openDatabase(project);
  const store = new FirestoreMemoryStore({ db: own, collection: 'swept' });
  const other = new FirestoreMemoryStore({ db, collection: 'swept' });
  await store.commit(ADA, [put('brief', { expiresAt: isoOf(START + 1) })], { now: START });
  const getAll = own.getAll.bind(own);
  let reads = 0;
  own.getAll = async (...args) => {
    if (reads++ === 0) await other.erase(ADA);
    return getAll(...args);
  };
  await store.sweep({ now: START + 10 });
  expect(reads).toBeGreaterThan(0);
  expect((await other.listScopes()).items).toEqual([]);
});

describe.each(['firestore.rules', 'docs/firestore-read-own.rules'])('%s', (path) => {
  it('lets no client read or write a memory, a note or a job', async () => {
    const [host, port] = emulatorHost().split(':') as [string, string];
    const rules = readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
    const projectId = newProject();
    const environment = await initializeTestEnvironment({ projectId, firestore: { rules, host, port: Number(port) } });
    const client = environment.authenticatedContext('ann').firestore();
    const scope = 'genkit-memories/ann/scopes/x';
    const paths = [scope, ...['memories', 'revisions', 'notes'].map((name) => `${scope}/${name}/y`)];
    for (const one of [...paths, 'genkit-memories-jobs/ann/jobs/x', 'genkit-memories-jobs/ann/queues/x']) {
      await assertFails(getDoc(doc(client, one)));
      await assertFails(setDoc(doc(client, one), { v: 1 }));
      await assertFails(deleteDoc(doc(client, one)));
    }
    await environment.cleanup();
  });
});
