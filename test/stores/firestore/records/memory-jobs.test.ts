import { genkit } from 'genkitx-agents';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import { memoryManager, type MemoryScopeId, type MemoryStore } from 'genkitx-agents/memory';
import { logger } from 'genkit/logging';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { hashName } from '../../../../stores/firestore/memory/memory-documents.ts';
import { ADA, BOB, START } from '../../../conformance/memory/support/drafts.ts';
import { encryptionWith } from '../../../privacy/encryption/support.ts';
import { beforeCommits } from '../support/between-calls.ts';
import { clearProject, newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const db = openDatabase(project);
afterAll(() => clearProject(project));
afterEach(() => void vi.restoreAllMocks());

const MINUTE = 60_000;

function add(store: MemoryStore, id: string, scope: MemoryScopeId = ADA): Promise<unknown> {
  return store.addJob({ id, scope, input: id, sourceId: id }, { maxJobs: 99, now: START });
}

async function claim(store: MemoryStore, scope?: MemoryScopeId, now = START): Promise<string | undefined> {
  const job = await store.claimJob({ owner: 'w', leaseMs: MINUTE, now, ...(scope && { scope }) });
  return job?.id;
}

const user = (name: string): MemoryScopeId => ({ scope: 'user', appName: 'shop', userId: name });
const jobsOf = (collection: string) => db.collection(`${collection}-jobs`).doc('global').collection('jobs');

it('an erasure removes the last jobs of a scope and their queue with one commit', async () => {
  const own = openDatabase(project);
  const store = new FirestoreMemoryStore({ db: own, collection: 'one-commit' });
  await add(store, 'one');
  beforeCommits(own, async (commit) => {
    if (commit === 2) throw new Error('the process ends here');
  });
  // The scope has only jobs, so there must be no second commit.
  await store.erase(ADA).catch(() => {});
  const other = new FirestoreMemoryStore({ db, collection: 'one-commit' });
  await add(other, 'two');
  expect(await claim(other)).toBe('two');
});

it('an erasure removes more jobs than one commit takes, and those that are added meanwhile', async () => {
  const own = openDatabase(project);
  const [store, other] = [own, db].map((client) => new FirestoreMemoryStore({ db: client, collection: 'many' }));
  await add(store!, 'first');
  const first = (await jobsOf('many').get()).docs[0]!.data();
  const batch = db.batch();
  for (let i = 0; i < 320; i++) batch.create(jobsOf('many').doc(`job ${i}`), first);
  await batch.commit();
  beforeCommits(own, async (commit) => {
    if (commit === 2) await add(other!, 'added');
  });
  expect(await store!.erase(ADA)).toMatchObject({ jobs: 322 });
  expect((await jobsOf('many').get()).size).toBe(0);
  expect((await store!.listScopes()).items).toEqual([]);
});

it('a claim removes jobs without documents from a queue', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'gone' });
  const names = Array.from({ length: 6 }, (_, i) => `user ${i}`);
  for (const name of names) for (const n of [1, 2]) await add(store, `${name} ${n}`, user(name));
  await add(store, 'last of user 5', user('user 5'));
  for (const name of names)
    for (const n of [1, 2])
      await jobsOf('gone')
        .doc(hashName(`${name} ${n}`))
        .delete();
  await add(store, 'of bob', BOB);
  expect(new Set([await claim(store), await claim(store)])).toEqual(new Set(['last of user 5', 'of bob']));
  expect(await claim(store)).toBeUndefined();
  expect((await store.listScopes()).items).toHaveLength(2);
});

it('a waiting call ends although the documents of earlier jobs are missing', async () => {
  const store = new FirestoreMemoryStore({ db, collection: 'waits' });
  const memory = memoryManager(genkit({}), { store, appName: 'shop', worker: false, extract: () => [] });
  const scope = memory.scopeFor('user', { context: { auth: { uid: 'ada' } } });
  await add(store, 'gone');
  await jobsOf('waits').doc(hashName('gone')).delete();
  const { status } = await memory.create({ scope, memory: 'The user likes rain.', wait: true });
  expect([status, (await memory.list({ scope })).items.length]).toEqual(['committed', 1]);
});

it.each([
  ['encrypted under a lost key', 'FAILED_PRECONDITION', undefined],
  ['damaged', 'DATA_LOSS', { job: Buffer.from('junk') }],
  ['of a newer format', 'FAILED_PRECONDITION', { v: 99 }],
])('jobs that are %s do not block jobs of other scopes', async (how, status, change) => {
  const warn = vi.spyOn(logger, 'warn').mockReturnValue();
  const collection = how.replaceAll(' ', '-');
  const open = (...secrets: string[]) =>
    new FirestoreMemoryStore({ db, collection, encryption: encryptionWith(...secrets) });
  const [before, store] = [open('lost'), open('new')];
  // More than a claim reads at once.
  const names = Array.from({ length: 7 }, (_, i) => `user ${i}`);
  for (const name of names) await add(before, `of ${name}`, user(name));
  if (change) for (const { ref } of (await jobsOf(collection).get()).docs) await ref.update(change);
  await add(store, 'of bob', BOB);
  expect([await claim(store), await claim(store)]).toEqual(['of bob', undefined]);
  const messages = warn.mock.calls.map(([message]) => String(message)).toSorted();
  expect(messages.map((message) => /user "(user \d)" of app "shop"/.exec(message)?.[1])).toEqual(names);
  // The scopes are not read, and not reported, again soon.
  const { reads } = store.stats();
  expect([await claim(store), store.stats().reads - reads, warn.mock.calls.length]).toEqual([undefined, 1, 7]);
  expect((await store.listJobs()).items.map(({ id }) => id)).toEqual(['of bob']);
  const refusal = { status, message: expect.stringContaining('user "user 3" of app "shop"') as string };
  await expect(claim(store, user('user 3'))).rejects.toMatchObject(refusal);
  await expect(store.listJobs({ scope: user('user 3') })).rejects.toMatchObject(refusal);
  expect(await store.erase(user('user 3'))).toMatchObject({ jobs: 1 });
  if (change) return;
  // With the key they run after a while, or when their scope gets a new job.
  const repaired = open('new', 'lost');
  await add(repaired, 'another', user('user 2'));
  expect(await claim(repaired)).toBe('of user 2');
  expect(await claim(repaired)).toBeUndefined();
  const later = await claim(repaired, undefined, START + 15 * MINUTE);
  expect(later).toMatch(/^of user [01456]$|^of bob$/);
  expect((await repaired.listJobs()).items).toHaveLength(8);
});
