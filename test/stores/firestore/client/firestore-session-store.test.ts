import type { WriteBatch } from '@google-cloud/firestore';
import { initializeApp, deleteApp } from 'firebase-admin/app';
import { getFirestore } from 'firebase-admin/firestore';
import { genkit } from 'genkit/beta';
import { FirestoreSessionStore as FirebaseStore } from 'genkitx-agents/firebase';
import {
  FirestoreMemoryStore,
  FirestoreSessionStore,
  type FirestoreSessionStoreOptions,
} from 'genkitx-agents/google-cloud';
import { scriptedModel } from 'genkitx-agents/testing';
import { describe, expect, it } from 'vitest';
import { newProject, openDatabase } from '../support/database.ts';

const SCOPE = { scope: 'user', appName: 'shop', userId: 'ada' } as const;

describe('FirestoreSessionStore', () => {
  const db = openDatabase();

  it('is a store of Genkit’s own agents', async () => {
    const ai = genkit({});
    const model = scriptedModel(ai, { replies: ['one', 'two'] });
    const store = new FirestoreSessionStore({ db, collection: 'agents' });
    const agent = ai.defineAgent({ name: 'support', model: model.name, store });
    const chat = agent.chat();
    await chat.send('hello');
    const second = await chat.send('again');
    expect(second.text).toBeTruthy();
    const { items } = await store.listSessions();
    expect(items).toMatchObject([{ leafCount: 1, status: 'completed' }]);
    const resumed = await store.getSnapshot({ sessionId: items[0]!.sessionId });
    expect(resumed?.state?.messages?.length).toBeGreaterThanOrEqual(4);
  });

  it('takes the database of a Firebase app', async () => {
    const app = initializeApp({ projectId: newProject() }, 'test');
    const store = new FirebaseStore({ firebaseApp: app });
    await store.saveSnapshot('one', () => ({ sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z' }));
    expect((await getFirestore(app).doc('genkit-sessions/global/snapshots/one').get()).exists).toBe(true);
    expect(() => new FirebaseStore({ firebaseApp: app, db })).toThrow(/firebaseApp or db/);
    await store.close();
    await deleteApp(app);
  });

  it.each([
    ['listSessions', (store: FirestoreSessionStore) => store.listSessions()],
    ['listSnapshots', (store: FirestoreSessionStore) => store.listSnapshots({ sessionId: 'chat' })],
    ['getSnapshot', async (store: FirestoreSessionStore) => [await store.getSnapshot({ sessionId: 'chat' })]],
    ['deleteSession', (store: FirestoreSessionStore) => store.deleteSession({ sessionId: 'chat' })],
    ['check', (store: FirestoreSessionStore) => store.check()],
  ])('answers as its first call %s, with a client that has to find its project', async (_, call) => {
    process.env['GOOGLE_CLOUD_PROJECT'] = newProject();
    const store = new FirestoreSessionStore();
    await expect(call(store)).resolves.toBeDefined();
    await store.close();
  });

  it.each([
    ['notes', (store: FirestoreMemoryStore) => store.notes(SCOPE, 'profile')],
    ['revisions', (store: FirestoreMemoryStore) => store.revisions(SCOPE, 'one')],
    ['changes', (store: FirestoreMemoryStore) => store.changes(SCOPE, { since: 0 })],
    ['listJobs', (store: FirestoreMemoryStore) => store.listJobs()],
    ['erase', (store: FirestoreMemoryStore) => store.erase(SCOPE)],
  ])('and so does a memory store as its first call %s', async (_, call) => {
    process.env['GOOGLE_CLOUD_PROJECT'] = newProject();
    const store = new FirestoreMemoryStore();
    await expect(call(store)).resolves.toBeDefined();
    await store.close();
  });

  it('creates its own client without the option, and terminates it', async () => {
    process.env['GOOGLE_CLOUD_PROJECT'] = newProject();
    const store = new FirestoreSessionStore();
    await store.saveSnapshot('one', () => ({ createdAt: '2026-01-01T00:00:00.000Z' }));
    await store.close();
    await expect(store.getSnapshot({ snapshotId: 'one' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    delete process.env['GOOGLE_CLOUD_PROJECT'];
  });

  it('refuses invalid options', () => {
    const bad: unknown[] = [
      { colection: 'x' },
      { collection: 'a/b' },
      { collection: '' },
      { checkpointInterval: 0 },
      { shardSize: 5_000_000 },
      { expireAfterMs: 0 },
      { expireAfterMs: Number.MAX_SAFE_INTEGER },
      { expireAfterMs: 3e14 },
      { encryption: {} },
      { db: 'default' },
    ];
    for (const options of bad) {
      expect(() => new FirestoreSessionStore(options as FirestoreSessionStoreOptions)).toThrow(/FirestoreSessionStore/);
    }
  });

  it('a client that reads whole numbers as bigint is refused with a message that says what to do', () => {
    const bigints = openDatabase(newProject(), { useBigInt: true });
    for (const make of [
      () => new FirestoreSessionStore({ db: bigints }),
      () => new FirestoreMemoryStore({ db: bigints }),
    ]) {
      expect(make).toThrow(
        expect.objectContaining({ status: 'INVALID_ARGUMENT', message: expect.stringContaining('without useBigInt') }),
      );
    }
  });

  it('sessions that expire as late as possible are saved and read', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'late', expireAfterMs: 1e14 });
    await store.saveSnapshot('one', () => ({ sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z' }));
    expect((await store.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('one');
  });

  it('an error of the client without a code, for example without a project, is the cause of a FAILED_PRECONDITION', async () => {
    const client = openDatabase();
    const store = new FirestoreSessionStore({ db: client });
    const cause = new Error('Unable to detect a Project Id in the current environment.');
    client.getAll = async () => Promise.reject(cause);
    client.batch = () =>
      Object.assign(Object.create(null) as WriteBatch, { commit: async () => Promise.reject(cause) });
    for (const call of [
      () => store.getSnapshot({ snapshotId: 'one' }),
      () => store.saveSnapshot('one', () => ({ createdAt: '2026-01-01T00:00:00.000Z' })),
    ]) {
      const message = expect.stringContaining('Check its project') as string;
      await expect(call()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION', message, cause });
    }
  });

  it('an error of a mutator is thrown unchanged, also one with a number as its code', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'mutators' });
    for (const code of [1, 5, 14, 404]) {
      const thrown = Object.assign(new Error('of the mutator'), { code });
      const saving = store.saveSnapshot('one', () => {
        throw thrown;
      });
      expect(await saving.catch((error: unknown) => error)).toBe(thrown);
    }
  });

  it('a document of a newer format is refused with a message that says so', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'newer' });
    await store.saveSnapshot('one', () => ({ sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z' }));
    await db.doc('newer/global/snapshots/one').update({ v: 3 });
    const reading = new FirestoreSessionStore({ db, collection: 'newer' }).getSnapshot({ snapshotId: 'one' });
    await expect(reading).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('Update it'),
    });
  });

  it('the database’s error for a refused request is the cause of the error', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'x'.repeat(2000) });
    await expect(store.getSnapshot({ snapshotId: 'one' })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      cause: { message: expect.stringMatching(/INVALID_ARGUMENT: .*longer than 1500 bytes/) },
    });
  });
});
