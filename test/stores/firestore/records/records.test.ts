import { Timestamp, type DocumentData, type DocumentReference, type Firestore } from '@google-cloud/firestore';
import type { Json } from 'genkitx-agents';
import { FirestoreSessionStore, type FirestoreSessionStoreOptions } from 'genkitx-agents/google-cloud';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { allDocuments, measureAtRest } from '../support/at-rest.ts';
import { newProject, openDatabase } from '../support/database.ts';
import { applyTtlPolicy, DAY, passTime } from '../support/time.ts';
import { trafficOf, trafficSoFar, type Traffic } from '../support/transport.ts';
import { makeTurn } from '../../make-turn.ts';

const NOTE = { sessionId: 'chat', kind: 'note', key: 'one' };

let db: Firestore;
let project: string;
const open = (options: FirestoreSessionStoreOptions = {}): FirestoreSessionStore =>
  new FirestoreSessionStore({ db, ...options });
const write = (store: FirestoreSessionStore, rest: object = {}): Promise<string | null> =>
  store.writeRecord({ ...NOTE, value: 1, ...rest });
const valuesOf = async (store: FirestoreSessionStore, sessionId = 'chat'): Promise<Json[]> =>
  (await store.readRecords({ sessionId, kind: 'note' })).map(({ value }) => value);
const recordDocuments = async (): Promise<{ ref: DocumentReference; data: DocumentData }[]> =>
  (await allDocuments(db))
    .filter(({ ref }) => ref.parent.id === 'records')
    .map((document) => ({ ref: document.ref, data: document.data() }));
const groupsLeft = async (): Promise<string[]> => (await allDocuments(db)).map(({ ref }) => ref.parent.id).toSorted();

type Send = (name: string, ...rest: unknown[]) => Promise<unknown>;
const sends = new WeakMap<Firestore, Send>();

/** Runs `listener` before each request of a client. Returns a function that sends a request without it. */
function onRequest(of: Firestore, listener: (...request: Parameters<Send>) => unknown): Send {
  const client = of as unknown as { request: Send };
  const send = sends.get(of) ?? client.request.bind(of);
  sends.set(of, send);
  client.request = async (...request) => {
    await listener(...request);
    return send(...request);
  };
  return send;
}

beforeAll(() => void trafficSoFar());
beforeEach(async () => {
  project = newProject();
  db = openDatabase(project);
  // A client's first request sets up its connection.
  await db.doc('warm/up').get();
});

describe('the cost of session records, counted on the wire', () => {
  let store: FirestoreSessionStore;
  const NONE = { reads: 0, writes: 0, deletes: 0, rpcs: 0 };
  const costs = async (work: () => Promise<unknown>, expected: Partial<Traffic>): Promise<void> => {
    const { bytes: _, ...used } = await trafficOf(work);
    expect(used, work.toString()).toEqual({ ...NONE, ...expected });
  };
  beforeEach(async () => {
    store = open();
    await store.saveSnapshot('one', () => makeTurn());
  });

  it('a write is one write, with any expected revision; a removal is one delete', async () => {
    await costs(() => write(store), { writes: 1, rpcs: 1 });
    await costs(() => write(store, { key: 'two', expectedRevision: null }), { writes: 1, rpcs: 1 });
    const [{ revision: expectedRevision } = { revision: '' }] = await open().readRecords({ ...NOTE, keys: ['one'] });
    // Another process must read the record once, to find the write of the revision.
    await costs(() => write(store, { key: 'two', expectedRevision: null }).catch(() => {}), { reads: 1, rpcs: 2 });
    await costs(() => write(store, { expectedRevision }), { writes: 1, rpcs: 1 });
    const other = open();
    const [{ revision } = { revision: '' }] = await other.readRecords({ ...NOTE, keys: ['one'] });
    await costs(() => write(other, { expectedRevision: revision }), { writes: 1, rpcs: 1 });
    await costs(() => write(store, { expectedRevision: revision }).catch(() => {}), { reads: 1, rpcs: 2 });
    await costs(() => write(store, { value: undefined }), { deletes: 1, rpcs: 1 });
  });

  it('a write that names a snapshot is a read and a write', async () => {
    await costs(() => write(store, { ifSnapshot: 'one' }), { reads: 1, writes: 1, rpcs: 2 });
    const revision = await write(store, { key: 'three', expectedRevision: null });
    const compaction = { key: 'three', ifSnapshot: 'one', expectedRevision: revision };
    await costs(() => write(store, compaction), { reads: 1, writes: 1, rpcs: 2 });
    await costs(() => write(store, { ifSnapshot: 'one', value: undefined }), { reads: 1, deletes: 1, rpcs: 2 });
  });

  it('a record that is created for a snapshot, and then replaced, is two reads and two writes', async () => {
    let expectedRevision: string | null = null;
    const create = async () => (expectedRevision = await write(store, { ifSnapshot: 'one', expectedRevision }));
    await costs(create, { reads: 1, writes: 1, rpcs: 2 });
    await costs(() => write(store, { value: 2, expectedRevision }), { reads: 1, writes: 1, rpcs: 2 });
    expect(await valuesOf(open())).toEqual([2]);
  });

  it('a lookup by keys is a read for each key and one request; all of a kind are a read for each record', async () => {
    for (const key of ['a', 'b', 'c']) await write(store, { key });
    await write(store, { kind: 'other' });
    await costs(() => open().readRecords({ ...NOTE, keys: ['a', 'c', 'none'] }), { reads: 3, rpcs: 1 });
    await costs(() => open().readRecords(NOTE), { reads: 3, rpcs: 1 });
    await costs(() => open().readRecords({ ...NOTE, keys: [] }), {});
  });

  it('read together with the session, in any order, they are one more read in the same request', async () => {
    await write(store);
    const resume = (of: FirestoreSessionStore): (() => Promise<unknown>)[] => [
      () => of.getSnapshot({ sessionId: 'chat' }),
      () => of.readRecords({ ...NOTE, keys: ['one'] }),
    ];
    for (const calls of [resume(store), resume(store).toReversed()]) {
      await costs(() => Promise.all(calls.map((call) => call())), { reads: 3, rpcs: 1 });
    }
    const cold = open();
    const alone = await trafficOf(() => open().getSnapshot({ sessionId: 'chat' }));
    await costs(() => Promise.all(resume(cold).map((call) => call())), { reads: alone.reads + 1, rpcs: alone.rpcs });
    expect(await Promise.all(resume(cold).map((call) => call()))).toMatchObject([
      { snapshotId: 'one' },
      [{ key: 'one', value: 1 }],
    ]);
  });

  it('stats() equals the traffic on the wire', async () => {
    const other = open();
    const { bytes: _, ...used } = await trafficOf(async () => {
      const expectedRevision = await write(other, { ifSnapshot: 'one' });
      await write(other, { expectedRevision });
      await Promise.all([other.getSnapshot({ sessionId: 'chat' }), other.readRecords({ ...NOTE, keys: ['one'] })]);
      await write(other, { ifSnapshot: 'one', value: undefined });
    });
    expect(other.stats()).toMatchObject(used);
  });

  it('a turn costs no more for them, and no field of them is indexed', async () => {
    const before = await measureAtRest(db);
    for (const key of ['a', 'b']) await write(store, { key });
    expect((await measureAtRest(db)).indexEntries).toBe(before.indexEntries);
    await costs(() => store.saveSnapshot('two', () => makeTurn({ parentId: 'one' })), { writes: 2, rpcs: 1 });
  });
});

describe('records go with their session', () => {
  it('a session that begins again during an interrupted deletion has none of the old ones', async () => {
    const [late, other] = [open(), open()];
    await late.saveSnapshot('one', () => makeTurn());
    for (const key of ['one', 'two']) await write(late, { key });
    await interruptDeletion();
    // Written while the session does not exist: it waits for the next one.
    await write(other, { key: 'new', value: 'new' });
    await other.saveSnapshot('two', () => makeTurn());
    expect(await valuesOf(other)).toEqual(['new']);
    // The old snapshot exists until the deletion is finished, and its records are removed with it.
    await write(late, { key: 'late', ifSnapshot: 'one', value: 'late' });
    await other.prune({ idleMs: 1e15 });
    expect(await valuesOf(open())).toEqual(['new']);
    expect((await open().getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('two');
  });

  it('an interrupted deletion is finished by the next deletion, and by prune', async () => {
    for (const finish of [
      (store: FirestoreSessionStore) => store.deleteSession({ sessionId: 'chat' }),
      (store: FirestoreSessionStore) => store.prune({ idleMs: 1e15 }),
    ]) {
      const store = open();
      await store.saveSnapshot('one', () => makeTurn());
      await write(store, { ifSnapshot: 'one' });
      await write(store, { key: 'two' });
      await interruptDeletion();
      await finish(open());
      expect(await groupsLeft()).toEqual([]);
    }
  });

  it('prune removes records of sessions that did not begin for an hour, and no others', async () => {
    const store = open();
    await store.saveSnapshot('one', () => makeTurn());
    for (const sessionId of ['chat', 'old', 'recent']) await write(store, { sessionId, value: sessionId });
    for (const sessionId of ['chat', 'old']) await passHour(sessionId);
    await store.prune({ idleMs: 1e15 }, { dryRun: true });
    expect(await valuesOf(store, 'old')).toEqual(['old']);
    await store.prune({ idleMs: 1e15 });
    const left = await Promise.all(['chat', 'old', 'recent'].map((sessionId) => valuesOf(store, sessionId)));
    expect(left).toEqual([['chat'], [], ['recent']]);
  });

  it('prune keeps the records of a session whose pointer was lost', async () => {
    const store = open();
    await store.saveSnapshot('one', () => makeTurn());
    await write(store);
    await passHour('chat');
    await db.doc('genkit-sessions-pointers/global/pointers/chat').delete();
    await expect(open().prune({ idleMs: 1e15 })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    expect(await valuesOf(store)).toEqual([1]);
  });

  it('erase removes them, and says how many', async () => {
    const store = open();
    await write(store);
    await write(store, { sessionId: 'other' });
    expect(await store.erase()).toMatchObject({ records: 2, sessions: 0 });
    expect(await groupsLeft()).toEqual([]);
  });

  /** The process ends after it has marked the session as removed. */
  async function interruptDeletion(): Promise<void> {
    const dying = openDatabase(project);
    let commits = 0;
    onRequest(dying, (name) => {
      if (name === 'commit' && ++commits > 1) throw new Error('the process ends');
    });
    const deletion = new FirestoreSessionStore({ db: dying }).deleteSession({ sessionId: 'chat' });
    await expect(deletion).rejects.toMatchObject({ cause: { message: 'the process ends' } });
  }

  /** Makes the records of a session an hour older. */
  async function passHour(sessionId: string): Promise<void> {
    const written = Timestamp.fromMillis(Date.now() - 3_600_000);
    for (const { ref, data } of await recordDocuments()) {
      if (String(data['name']).includes(`["${sessionId}"`)) await ref.update({ written });
    }
  }
});

describe('records of sessions that expire', () => {
  const expiring = (): FirestoreSessionStore => open({ expireAfterMs: DAY });
  let store: FirestoreSessionStore;
  beforeEach(async () => {
    store = expiring();
    await store.saveSnapshot('one', () => makeTurn());
  });

  it('live as long as their session does, and no longer', async () => {
    await passTime(db, 0.6 * DAY);
    store = expiring();
    const revision = await write(store, { ifSnapshot: 'one' });
    await write(expiring(), { key: 'two', value: 2 });
    await store.saveSnapshot('two', () => makeTurn({ parentId: 'one' }));
    await passTime(db, 0.6 * DAY);
    for (const reader of [store, expiring()]) expect(await valuesOf(reader)).toEqual([1, 2]);
    await write(expiring(), { key: 'three', value: 3 });
    await passTime(db, 0.5 * DAY);
    for (const isRemoved of [false, true]) {
      if (isRemoved) await applyTtlPolicy(db);
      for (const one of [store, expiring()]) {
        expect(await valuesOf(one)).toEqual([]);
        await expect(write(one, { expectedRevision: revision })).rejects.toMatchObject({ status: 'ABORTED' });
        await expect(write(one, { ifSnapshot: 'two' })).rejects.toMatchObject({ status: 'ABORTED' });
      }
    }
  });

  it.each([false, true])(
    'do not belong to the session that begins again (pointer removed: %s), which has later ones',
    async (isRemoved) => {
      for (const key of ['one', 'two']) await write(store, { key, value: 'old' });
      await passTime(db, 2 * DAY);
      if (isRemoved) await applyTtlPolicy(db);
      await write(expiring(), { key: 'three', value: 'new' });
      await write(expiring(), { key: 'two', value: 'new', expectedRevision: null });
      await expiring().saveSnapshot('anew', () => makeTurn());
      for (const one of [store, expiring()]) expect(await valuesOf(one)).toEqual(['new', 'new']);
      await store.prune({ idleMs: 1e15 });
      expect((await groupsLeft()).filter((group) => group === 'records')).toHaveLength(2);
    },
  );

  it.each(['removeExpired', 'prune'] as const)('are removed by %s', async (way) => {
    await store.saveSnapshot('kept', () => makeTurn({ sessionId: 'kept' }));
    await write(store, { ifSnapshot: 'one' });
    await write(store, { key: 'two' });
    await passTime(db, 2 * DAY);
    await store.saveSnapshot('kept', () => makeTurn({ sessionId: 'kept' }));
    await write(store, { sessionId: 'kept' });
    const pointer = await db.doc('genkit-sessions-pointers/global/pointers/chat').get();
    await applyTtlPolicy(db);
    await write(store, { key: 'three', value: 'next' });
    await (way === 'prune' ? store.prune({ idleMs: 1e15 }) : store.removeExpired(pointer));
    expect(await groupsLeft()).toEqual(['pointers', 'records', 'records', 'snapshots']);
    expect([await valuesOf(store), await valuesOf(store, 'kept')]).toEqual([['next'], [1]]);
  });
});

describe('a record in the database', () => {
  it('has its names as bytes, and no field with a part of its value', async () => {
    await write(open(), { key: 'a/b', value: { 'a.b': [[1]], __proto__x: '\uD800' } });
    const [document] = await allDocuments(db);
    expect(document!.ref.path).toMatch(/^genkit-sessions-records\/global\/records\/r[\w-]{60}$/);
    expect(Object.keys(document!.data()).toSorted()).toEqual([
      'name',
      'owner',
      'revision',
      'until',
      'v',
      'value',
      'written',
    ]);
    expect(String(document!.get('name'))).toContain('["chat","note","a/b"]');
  });

  it('that is damaged is DATA_LOSS, one of a newer version is refused, and either can be written again', async () => {
    const faults = [
      [{ value: Buffer.from('broken') }, 'DATA_LOSS', /record "one" of kind "note" of session "chat" .*write it again/],
      [{ v: 3 }, 'FAILED_PRECONDITION', /newer version/],
    ] as const;
    for (const [fault, status, message] of faults) {
      const store = open();
      const revision = await write(store);
      const [document] = await allDocuments(db);
      await document!.ref.update(fault);
      await expect(store.readRecords(NOTE)).rejects.toMatchObject({ status, message: expect.stringMatching(message) });
      const aborted = write(open(), { expectedRevision: `${revision}x` });
      await expect(aborted).rejects.toMatchObject({ status: status === 'DATA_LOSS' ? 'ABORTED' : status });
      await write(store, { value: 2 });
      expect(await valuesOf(store)).toEqual([2]);
      await document!.ref.update(fault);
      expect(await write(store, { value: undefined })).toBeNull();
      expect(await allDocuments(db)).toEqual([]);
    }
  });
});

describe('a write whose answer is lost', () => {
  it.each([{}, { expectedRevision: null }, { ifSnapshot: 'one', expectedRevision: null }])(
    'is made once, and acknowledged when the client sends it again (%o)',
    async (expected) => {
      const store = open();
      await store.saveSnapshot('one', () => makeTurn());
      const send = onRequest(db, async (name, ...rest) => {
        if (name !== 'commit') return;
        onRequest(db, () => {});
        await send(name, ...rest);
        // The client restarts a transaction; it sends any other commit again.
        if ('ifSnapshot' in expected) throw Object.assign(new Error('the connection is lost'), { code: 14 });
      });
      const revision = await write(store, expected);
      const all = await open().readRecords(NOTE);
      expect(all).toEqual([{ kind: 'note', key: 'one', value: 1, revision }]);
    },
  );
});

describe('a write that names a snapshot', () => {
  let store: FirestoreSessionStore;
  let other: FirestoreSessionStore;
  beforeEach(async () => {
    store = open();
    await store.saveSnapshot('one', () => makeTurn());
    const elsewhere = openDatabase(project);
    other = new FirestoreSessionStore({ db: elsewhere });
  });
  const remove = (): Promise<unknown> => other.deleteSession({ sessionId: 'chat' });

  it('is refused when the session is deleted between its read and its commit', async () => {
    const expectedRevision = await write(store);
    let reads = 0;
    onRequest(db, async (name) => {
      if (name === 'commit') ({ reads } = await trafficOf(remove));
    });
    const late = write(store, { value: 2, expectedRevision, ifSnapshot: 'one' });
    await expect(late).rejects.toMatchObject({ status: 'ABORTED' });
    expect(reads).toBeGreaterThan(0);
    expect(await allDocuments(db)).toEqual([]);
  });

  it('creates a record before a deletion that begins meanwhile, and the record is removed with the session', async () => {
    let deletion: Promise<unknown> | undefined;
    onRequest(db, (name) => {
      if (name === 'commit') deletion ??= remove();
    });
    await write(store, { expectedRevision: null, ifSnapshot: 'one' });
    await deletion;
    expect(deletion).toBeDefined();
    expect(await allDocuments(db)).toEqual([]);
  });
});
