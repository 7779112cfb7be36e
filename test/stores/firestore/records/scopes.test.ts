import type { Firestore } from '@google-cloud/firestore';
import type { ScopeChange, ScopeId, ScopeRecord } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { allDocuments } from '../support/at-rest.ts';
import { newProject, openDatabase } from '../support/database.ts';
import { Proxy } from '../support/proxy.ts';
import { beforeCommit, trafficOf, trafficSoFar, type Traffic } from '../support/transport.ts';
import { makeTurn } from '../../make-turn.ts';

const APP: ScopeId = { scope: 'app', appName: 'shop' };
const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };

function increment(id: ScopeId): ScopeChange {
  return { id, change: (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1 }) };
}

function unchanged(id: ScopeId): ScopeChange {
  return { id, change: (record) => record };
}

describe('what scopes cost, counted on the wire', () => {
  let db: Firestore;
  let store: FirestoreSessionStore;
  let saves = 0;
  const save = (scopes?: ScopeChange[]): Promise<Traffic> => {
    const id = `turn-${++saves}`;
    const parentId = saves > 1 ? { parentId: `turn-${saves - 1}` } : {};
    return trafficOf(() =>
      store.saveSnapshot(id, () => makeTurn({ ...parentId, state: {} }), { ...(scopes && { scopes }) }),
    );
  };
  beforeAll(async () => {
    trafficSoFar();
    db = openDatabase();
    // A client's first request sets up its connection.
    await db.doc('warm/up').get();
    store = new FirestoreSessionStore({ db });
    await save([increment(ADA), increment(APP)]);
  });

  it('a save without scopes has no more reads and writes', async () => {
    expect(await save()).toMatchObject({ reads: 0, writes: 2, deletes: 0, rpcs: 1 });
    expect(await save([])).toMatchObject({ reads: 0, writes: 2, deletes: 0, rpcs: 1 });
  });

  it('a save does not read known records, and writes the changed ones', async () => {
    await new FirestoreSessionStore({ db }).saveSnapshot('aside', () => makeTurn({ sessionId: 'other' }), {
      scopes: [increment(ADA), increment(APP)],
    });
    await store.readScopes({ scopes: [ADA, APP] });
    expect(await save([increment(ADA), increment(APP)])).toMatchObject({ reads: 0, writes: 4, deletes: 0, rpcs: 1 });
    expect(await save([increment(ADA), increment(APP)])).toMatchObject({ reads: 0, writes: 4, deletes: 0, rpcs: 1 });
    expect(await save([{ id: ADA, change: () => ({}) }])).toMatchObject({ reads: 0, writes: 2, deletes: 1, rpcs: 1 });
    expect(await save([increment(ADA)])).toMatchObject({ reads: 0, writes: 3, deletes: 0, rpcs: 1 });
    expect(await store.readScopes({ scopes: [ADA, APP] })).toEqual([{ n: 1 }, { n: 4 }]);
  });

  it('a save also writes unchanged records, because a commit checks only the documents that it writes', async () => {
    expect(await save([increment(ADA), unchanged(APP)])).toMatchObject({ reads: 0, writes: 4, deletes: 0, rpcs: 1 });
    expect(await save([unchanged(ADA), unchanged(APP)])).toMatchObject({ reads: 0, writes: 4, deletes: 0, rpcs: 1 });
    const none: ScopeId = { scope: 'app', appName: 'none' };
    const empty = [{ id: none, change: () => ({}) }];
    expect(await save(empty)).toMatchObject({ reads: 1, writes: 2, deletes: 1, rpcs: 2 });
    expect(await save(empty)).toMatchObject({ reads: 0, writes: 2, deletes: 1, rpcs: 1 });
  });

  it('a save of a process that does not know a record reads it, once', async () => {
    const ofNew = (id: string, scopes: ScopeChange[]): Promise<Traffic> =>
      trafficOf(() =>
        new FirestoreSessionStore({ db }).saveSnapshot(id, () => makeTurn({ sessionId: id }), { scopes }),
      );
    const { reads, writes, rpcs } = await ofNew('fresh', []);
    const used = await ofNew('fresh too', [increment(ADA), increment(APP)]);
    expect(used).toMatchObject({ reads: reads + 2, writes: writes + 2, rpcs: rpcs + 1 });
  });

  it('a heartbeat with a known record writes one more document, without a read', async () => {
    await store.saveSnapshot('beating', () => makeTurn({ status: 'pending' }));
    let beats = 0;
    const beat = (scopes: ScopeChange[]): Promise<Traffic> => {
      const heartbeatAt = `${++beats}`;
      return trafficOf(() => store.saveSnapshot('beating', (current) => ({ ...current!, heartbeatAt }), { scopes }));
    };
    expect(await beat([])).toMatchObject({ reads: 1, writes: 1 });
    await store.readScopes({ scopes: [APP] });
    expect(await beat([increment(APP)])).toMatchObject({ reads: 1, writes: 2 });
  });

  it('records are read with one request, and each one once', async () => {
    const read = await trafficOf(() => store.readScopes({ scopes: [APP, ADA, APP] }));
    expect(read).toMatchObject({ reads: 2, rpcs: 1 });
    expect(await trafficOf(() => store.readScopes({ scopes: [] }))).toMatchObject({ reads: 0, rpcs: 0 });
  });

  it('a save that is skipped reads no record', async () => {
    const skipped = trafficOf(() => store.saveSnapshot('turn-1', () => null, { scopes: [increment(APP)] }));
    expect(await skipped).toMatchObject({ reads: 1, writes: 0 });
  });
});

describe('a record that another process has changed since it was read', () => {
  let db: Firestore;
  let [here, there]: FirestoreSessionStore[] = [];
  let saves = 0;
  const save = (store: FirestoreSessionStore, change: ScopeChange['change'], id = ADA): Promise<string | null> => {
    const snapshot = `save-${++saves}`;
    return store.saveSnapshot(snapshot, () => makeTurn({ sessionId: snapshot }), { scopes: [{ id, change }] });
  };
  const read = async (store: FirestoreSessionStore): Promise<ScopeRecord> =>
    (await store.readScopes({ scopes: [ADA] }))[0]!;
  beforeAll(() => void (db = openDatabase()));
  beforeEach(() => {
    const collection = `stale-${saves}`;
    [here, there] = [new FirestoreSessionStore({ db, collection }), new FirestoreSessionStore({ db, collection })];
  });

  it('is changed in its new version', async () => {
    await save(here!, () => ({ n: 1 }));
    await save(there!, (record) => ({ ...record, theirs: true }));
    await save(here!, (record) => ({ ...record, n: Number(record['n']) + 1 }));
    expect(await read(here!)).toEqual({ n: 2, theirs: true });
  });

  it('gets a value back that it had when it was read', async () => {
    await save(here!, () => ({ theme: 'dark' }));
    await save(there!, () => ({ theme: 'light' }));
    await save(here!, (record) => ({ ...record, theme: 'dark' }));
    expect(await read(there!)).toEqual({ theme: 'dark' });
  });

  it('does not refuse a save for a reason that is outdated', async () => {
    await save(here!, () => ({ locked: true }));
    await save(there!, () => ({}));
    const unlocked: ScopeChange['change'] = (record) => {
      if (record['locked']) throw new Error('locked');
      return { used: true };
    };
    await save(here!, unlocked);
    expect(await read(there!)).toEqual({ used: true });
    await save(there!, () => ({ locked: true }));
    await expect(save(here!, unlocked)).rejects.toThrow('locked');
  });

  it('may have been removed by that process or by this one, created again, or erased with all others', async () => {
    const increased = async (store: FirestoreSessionStore): Promise<ScopeRecord> => {
      await save(store, (record) => ({ n: Number(record['n'] ?? 0) + 1 }));
      return read(there!);
    };
    expect(await increased(here!)).toEqual({ n: 1 });
    await there!.deleteScope({ scope: ADA });
    expect(await increased(here!)).toEqual({ n: 1 });
    await there!.deleteScope({ scope: ADA });
    await save(there!, () => ({ n: 10 }));
    expect(await increased(here!)).toEqual({ n: 11 });
    await here!.deleteScope({ scope: ADA });
    const first = await trafficOf(() => increased(here!));
    expect(first).toMatchObject({ deletes: 0 });
    expect(await read(there!)).toEqual({ n: 1 });
    await here!.erase();
    expect(await increased(here!)).toEqual({ n: 1 });
    await there!.erase();
    expect(await increased(here!)).toEqual({ n: 1 });
  });

  it('may be one that did not exist', async () => {
    expect(await read(here!)).toEqual({});
    await save(there!, () => ({ n: 1 }));
    await save(here!, (record) => ({ ...record, mine: true }));
    expect(await read(here!)).toEqual({ n: 1, mine: true });
  });

  it('is distinguished from that of another tenant', async () => {
    const collection = `tenants-${saves}`;
    const snapshotPathPrefix = (options?: { context?: { tenant?: string } }): string => options!.context!.tenant!;
    const store = new FirestoreSessionStore({ db, collection, snapshotPathPrefix: snapshotPathPrefix as never });
    const counted: ScopeChange = increment(ADA);
    for (const [i, tenant] of ['a', 'b', 'a', 'b', 'a'].entries()) {
      await store.saveSnapshot(`s${i}`, () => makeTurn(), { context: { tenant }, scopes: [counted] });
    }
    const of = (tenant: string) => store.readScopes({ context: { tenant }, scopes: [ADA] });
    expect([await of('a'), await of('b')]).toEqual([[{ n: 3 }], [{ n: 2 }]]);
  });
});

describe('a record in the database', () => {
  const db = openDatabase();

  const write = async (collection: string, record: ScopeRecord): Promise<FirestoreSessionStore> => {
    const store = new FirestoreSessionStore({ db, collection });
    await store.saveSnapshot(`turn-${collection}`, () => makeTurn(), { scopes: [{ id: ADA, change: () => record }] });
    return store;
  };
  const documentIn = async (collection: string) =>
    (await allDocuments(db)).find((document) => document.ref.path.startsWith(`${collection}-scopes/`))!;

  it('has its names as bytes, and no field with a part of its values', async () => {
    await write('layout', { theme: 'dark', list: [[1]] });
    const document = await documentIn('layout');
    expect(document.ref.path).toMatch(/^layout-scopes\/global\/scopes\/r[\w-]{43}$/);
    expect(Object.keys(document.data()).toSorted()).toEqual(['by', 'record', 'scope', 'v']);
    expect(String(document.get('scope'))).toContain('["user","shop","ada"]');
  });

  it('that is damaged is DATA_LOSS, one of a newer version is refused, and either can be removed', async () => {
    const faults = [
      [{ record: Buffer.from('broken') }, 'DATA_LOSS', 'deleteScope'],
      [{ v: 3 }, 'FAILED_PRECONDITION', 'newer version'],
    ] as const;
    for (const [fault, status, says] of faults) {
      const store = await write(status, { n: 1 });
      const { ref } = await documentIn(status);
      await ref.update(fault);
      const refusal = expect.objectContaining({
        status,
        message: expect.stringMatching(`^${status}: The state of user "ada" of app "shop" .*${says}`) as string,
      });
      await expect(store.readScopes({ scopes: [APP, ADA] })).rejects.toEqual(refusal);
      const save = store.saveSnapshot('next', () => makeTurn(), { scopes: [increment(ADA)] });
      await expect(save).rejects.toEqual(refusal);
      expect(await store.getSnapshot({ snapshotId: 'next' })).toBeUndefined();
      expect(await store.deleteScope({ scope: ADA })).toBe(true);
      expect(await store.readScopes({ scopes: [ADA] })).toEqual([{}]);
    }
  });

  it('of several that are too large for one commit is refused, and nothing is saved; a large state is written with some of them', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'large' });
    const large = (seed: number): string => {
      let text = '';
      for (let at = seed * 7919 + 1; text.length < 500_000; at = (at * 48_271) % 2_147_483_647) text += at.toString(36);
      return text;
    };
    const changes = Array.from({ length: 8 }, (_, i): ScopeChange => {
      const text = large(i);
      return { id: { scope: 'app', appName: `app ${i}` }, change: () => ({ text }) };
    });
    const all = store.saveSnapshot('all', () => makeTurn(), { scopes: changes });
    await expect(all).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect(await store.getSnapshot({ snapshotId: 'all' })).toBeUndefined();
    const messages = Array.from({ length: 12 }, (_, i) => ({ role: 'user' as const, content: [{ text: large(i) }] }));
    await store.saveSnapshot('some', () => makeTurn({ state: { messages } }), { scopes: changes.slice(0, 4) });
    const records = await store.readScopes({ scopes: changes.map(({ id }) => id) });
    expect(records.map((record) => 'text' in record)).toEqual([1, 1, 1, 1, 0, 0, 0, 0].map(Boolean));
    const saved = await new FirestoreSessionStore({ db, collection: 'large' }).getSnapshot({ sessionId: 'chat' });
    expect(saved?.state?.messages).toEqual(messages);
  });
});

describe('a commit whose answer is lost', () => {
  /** Saves a turn through a connection that breaks after the commit, before its answer; `meanwhile` runs in between. */
  async function saveBroken(
    save: (store: FirestoreSessionStore) => Promise<unknown>,
    meanwhile: (other: FirestoreSessionStore) => Promise<unknown>,
  ): Promise<{ other: FirestoreSessionStore; answer: unknown; end: () => Promise<unknown> }> {
    const proxy = await Proxy.open();
    const project = newProject();
    const db = openDatabase(project, {}, `127.0.0.1:${proxy.port}`);
    const direct = openDatabase(project);
    const [store, other] = [new FirestoreSessionStore({ db }), new FirestoreSessionStore({ db: direct })];
    await store.saveSnapshot('first', () => makeTurn(), { scopes: [increment(ADA)] });
    let isArmed = true;
    beforeCommit(() => {
      if (isArmed) proxy.mute();
      isArmed = false;
    });
    const saving = save(store);
    while ((await other.readScopes({ scopes: [ADA] }))[0]!['n'] !== 2);
    await meanwhile(other);
    await proxy.cut();
    await proxy.restore();
    const end = async (): Promise<void> => {
      await Promise.all([db.terminate(), direct.terminate()]);
      await proxy.cut();
    };
    return { other, answer: await saving, end };
  }

  const second = (store: FirestoreSessionStore): Promise<unknown> =>
    store.saveSnapshot('second', (current) => current ?? makeTurn({ parentId: 'first', status: 'pending' }), {
      scopes: [increment(ADA), increment(APP)],
    });

  it('is sent again and counts once', async () => {
    const { other, answer, end } = await saveBroken(second, async () => {});
    expect(answer).toBe('second');
    expect(await other.readScopes({ scopes: [ADA, APP] })).toEqual([{ n: 2 }, { n: 1 }]);
    await end();
  });

  it('counts once when other writers rewrite the snapshot and change the records in between', async () => {
    const { other, answer, end } = await saveBroken(second, (others) =>
      others.saveSnapshot('second', (current) => ({ ...current!, heartbeatAt: 'now' }), { scopes: [increment(ADA)] }),
    );
    expect(answer).toBe('second');
    expect(await other.readScopes({ scopes: [ADA, APP] })).toEqual([{ n: 3 }, { n: 1 }]);
    await end();
  });

  it('counts once when other writers change only a record', async () => {
    const { other, answer, end } = await saveBroken(second, (others) =>
      others.saveSnapshot('third', () => makeTurn({ sessionId: 'other' }), { scopes: [increment(ADA)] }),
    );
    expect(answer).toBe('second');
    expect(await other.readScopes({ scopes: [ADA, APP] })).toEqual([{ n: 3 }, { n: 1 }]);
    await end();
  });
});
