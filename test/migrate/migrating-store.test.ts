import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore as GenkitFileStore, InMemorySessionStore as GenkitMemoryStore } from 'genkit/beta';
import {
  copySessions,
  exportSessions,
  genkit,
  InMemorySessionStore,
  listGenkitDirectory,
  migratingStore,
  SessionConflictError,
  z,
  type PageOptions,
  type RecordStore,
  type ScopeRecord,
  type SessionSnapshotInput,
  type SessionStore,
} from 'genkitx-agents';
import { applyRetention, eraseUser, exportUser, piiRules, redacting } from 'genkitx-agents/privacy';
import { GenkitError, type Part } from 'genkit';
import { logger } from 'genkit/logging';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FOREIGN_CAPABILITIES } from '../../src/store/contract.ts';
import { sessionStoreConformance } from '../conformance/index.ts';
import { itemsOf } from '../../src/store/list/items-of.ts';
import { collect } from '../support/collect.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function turn(n: number, plan: Partial<SessionSnapshotInput> = {}): SessionSnapshotInput {
  const messages = Array.from({ length: n }, (_, i) => ({
    role: 'user' as const,
    content: [{ text: `message ${i}` }],
  }));
  const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString();
  return { sessionId: 'chat', status: 'completed', createdAt, state: { sessionId: 'chat', messages }, ...plan };
}

/** A chat of three turns in Genkit's own file store, with a branch that is older than its latest leaf. */
async function genkitChat(directory: string, prefix?: string): Promise<GenkitFileStore> {
  const store = new GenkitFileStore(directory, prefix === undefined ? {} : { snapshotPathPrefix: () => prefix });
  await store.saveSnapshot('one', () => turn(1));
  await store.saveSnapshot('side', () => turn(2, { parentId: 'one' }));
  await store.saveSnapshot('two', () => turn(3, { parentId: 'one' }));
  await store.saveSnapshot('three', () => turn(4, { parentId: 'two' }));
  return store;
}

function contentOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map((entry) => [
      join(entry.parentPath, entry.name),
      readFileSync(join(entry.parentPath, entry.name), 'utf8'),
    ]),
  );
}

for (const [name, makeFrom] of Object.entries({
  'Genkit’s store': () => new GenkitMemoryStore(),
  'one of ours': () => new InMemorySessionStore(),
})) {
  const { capabilities } = migratingStore({ from: makeFrom(), to: new InMemorySessionStore() });
  sessionStoreConformance({
    name: `migratingStore from ${name}, empty,`,
    runner: { describe, it },
    // An old store that can't delete has none of these sessions, so they can be deleted.
    manifest: { capabilities: { ...capabilities, delete: true }, tenants: true, branching: true },
    effort: 0.02,
    subjects: [
      'lookups and errors',
      'lineage',
      'leaf rule',
      'conditional saves',
      'watchers',
      'lists',
      ...(capabilities.prune ? (['deleting and pruning'] as const) : []),
      'scopes',
      'session records',
      'model',
    ],
    open: async (options) => {
      const make = (): SessionStore => migratingStore({ from: makeFrom(), to: new InMemorySessionStore(options) });
      const store = make();
      return { a: store, b: store, reopen: async () => make(), close: async () => {} };
    },
  });
}

describe('migratingStore', () => {
  it('continues a conversation of Genkit’s own store, and does not change a byte of that store', async () => {
    const directory = temporaryFolder();
    const from = await genkitChat(directory);
    const before = contentOf(directory);
    const ai = genkit({});
    const model = ai.defineModel({ name: 'counter' }, async ({ messages }) => ({
      message: { role: 'model', content: [{ text: `${messages.length} messages` }] },
    }));
    const to = new InMemorySessionStore();
    const agent = ai.defineAgent({ name: 'moved', model, store: migratingStore({ from, to }) });
    const first = await agent.chat({ sessionId: 'chat' }).send('hello');
    const second = await agent.chat({ sessionId: 'chat' }).send('again');
    expect([first.text, second.text]).toEqual(['5 messages', '7 messages']);
    expect((await to.listSnapshots({ sessionId: 'chat' })).items.map(({ parentId }) => parentId)).toEqual([
      'three',
      first.snapshotId,
    ]);
    expect(contentOf(directory)).toEqual(before);
    expect((await from.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('three');
  });

  it('reads a snapshot from the store that has it, the new one first', async () => {
    const from = await genkitChat(temporaryFolder());
    const to = new InMemorySessionStore();
    const store = migratingStore({ from, to });
    expect((await store.getSnapshot({ snapshotId: 'side' }))?.state?.messages).toHaveLength(2);
    expect((await store.getSnapshotMetadata({ sessionId: 'chat' }))?.snapshotId).toBe('three');
    await to.saveSnapshot('three', () => turn(9, { parentId: 'two' }));
    expect((await store.getSnapshot({ snapshotId: 'three' }))?.state?.messages).toHaveLength(9);
    expect(await store.getSnapshot({ snapshotId: 'four' })).toBeUndefined();
  });

  it('treats an expected leaf in the old store as no leaf in the new one, once', async () => {
    const store = migratingStore({ from: await genkitChat(temporaryFolder()), to: new InMemorySessionStore() });
    const save = (id: string, expectedLeafId: string | null): Promise<string | null> =>
      store.saveSnapshot(id, () => turn(5, { parentId: 'three' }), { expectedLeafId });
    await expect(save('late', 'two')).rejects.toThrow(
      expect.objectContaining({ status: 'ABORTED', actualLeafId: 'three' }) as Error,
    );
    await expect(save('blind', null)).rejects.toThrow(SessionConflictError);
    const racers = await Promise.allSettled(['a', 'b', 'c'].map((id) => save(id, 'three')));
    expect(racers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await expect(save('slow', 'three')).rejects.toThrow(SessionConflictError);
  });

  it('rewrites the leaf of the old store in the new one, by the rules of a rewrite, and no other snapshot', async () => {
    const from = new GenkitMemoryStore();
    await from.saveSnapshot('run', () => turn(1, { status: 'pending' }));
    const to = new InMemorySessionStore();
    const store = migratingStore({ from, to });
    await store.saveSnapshot('run', (current) => ({ ...current!, status: 'aborted', parentId: 'elsewhere' }));
    expect(await to.getSnapshot({ sessionId: 'chat' })).toMatchObject({ snapshotId: 'run', status: 'aborted' });
    expect(await to.getSnapshot({ snapshotId: 'run' })).not.toHaveProperty('parentId');
    expect((await from.getSnapshot({ snapshotId: 'run' }))?.status).toBe('pending');

    const chat = migratingStore({ from: await genkitChat(temporaryFolder()), to: new InMemorySessionStore() });
    const revive = chat.saveSnapshot('three', (current) => ({ ...current!, status: 'pending' }));
    await expect(revive).rejects.toThrow(expect.objectContaining({ status: 'FAILED_PRECONDITION' }) as Error);
    await expect(chat.saveSnapshot('one', (current) => current!)).rejects.toThrow('copySessions');
    expect((await chat.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('three');
  });

  it('lists the sessions and the snapshots of both, each once, on pages of any size', async () => {
    const from = new InMemorySessionStore();
    const to = new InMemorySessionStore();
    for (const id of ['a', 'b', 'c', 'd']) await from.saveSnapshot(`${id} 1`, () => turn(1, { sessionId: id }));
    for (const id of ['c', 'e'])
      await to.saveSnapshot(`${id} 2`, () => turn(2, { sessionId: id, parentId: `${id} 1` }));
    await to.saveSnapshot('c 1', () => turn(1, { sessionId: 'c' }));
    const store = migratingStore({ from, to });
    for (const limit of [1, 2, 3, 100]) {
      const sessions: string[] = [];
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const page = await store.listSessions({ limit, ...(cursor && { cursor }) });
        sessions.push(...page.items.map(({ sessionId }) => sessionId));
        cursor = page.nextCursor;
      }
      expect(sessions).toEqual(['c', 'e', 'd', 'b', 'a']);
    }
    const { items } = await store.listSnapshots({ sessionId: 'c' });
    expect(items.map(({ snapshotId }) => snapshotId)).toEqual(['c 2', 'c 1']);
    expect((await store.listSnapshots({ sessionId: 'a' })).items).toHaveLength(1);
  });

  it('deletes in both stores', async () => {
    const both = migratingStore({ from: new InMemorySessionStore(), to: new InMemorySessionStore() });
    await both.saveSnapshot('one', () => turn(1));
    expect(await both.deleteSession({ sessionId: 'chat' })).toEqual({ snapshots: 1, shards: 0 });
  });

  it('deletes and exports nothing if the old store can’t list and delete, and says what to do', async () => {
    const from = await genkitChat(temporaryFolder());
    await from.saveSnapshot('old', () => turn(1, { sessionId: 'old' }));
    const to = new InMemorySessionStore();
    const store = migratingStore({ from, to });
    const session = { ownerId: 'ada' };
    await store.saveSnapshot('four', () => turn(5, { parentId: 'three' }), { session });
    await store.saveSnapshot('new', () => turn(1, { sessionId: 'new' }), { session });
    expect(store.capabilities).toMatchObject({ list: true, incompleteLists: true, delete: false, prune: false });
    const redacted = redacting(store, { rules: piiRules(), secret: 'x'.repeat(40) });
    for (const refused of [
      () => store.deleteSession({ sessionId: 'chat' }),
      () => store.deleteSession({ sessionId: 'chat', expectedLeafId: 'four' }),
      () => store.deleteSession({ sessionId: 'old' }),
      () => store.prune({ idleMs: 0 }),
      () => applyRetention(store, { idleMs: 0 }),
      () => eraseUser(store, { userId: 'ada' }),
      () => eraseUser(redacted, { userId: 'ada' }),
      () => exportUser(store, { userId: 'ada' }).next(),
      () => exportSessions(store).next(),
      () => copySessions(store, new InMemorySessionStore()),
    ]) {
      const error = await refused().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error, String(refused)).toMatchObject({ status: 'FAILED_PRECONDITION' });
      expect((error as Error).message).toMatch(/copySessions/);
    }
    expect((await store.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('four');
    const listed = async () => (await store.listSessions({ ownerId: 'ada' })).items.map(({ sessionId }) => sessionId);
    expect(await listed()).toEqual(['new', 'chat']);
    expect(await store.deleteSession({ sessionId: 'new' })).toEqual({ snapshots: 1, shards: 0 });
    expect(await listed()).toEqual(['chat']);
  });

  it('erases and exports a user’s sessions of both stores if the old one is one of ours', async () => {
    const from = new InMemorySessionStore();
    const store = migratingStore({ from, to: new InMemorySessionStore() });
    const session = { ownerId: 'ada' };
    await from.saveSnapshot('one', () => turn(1), { session });
    await store.saveSnapshot('two', () => turn(2, { parentId: 'one' }), { session });
    await from.saveSnapshot('old', () => turn(1, { sessionId: 'old' }), { session });
    let end = '';
    for await (const line of exportUser(store, { userId: 'ada' })) end = line;
    expect(JSON.parse(end)).toMatchObject({ kind: 'end', sessions: 2, snapshots: 3 });
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({ sessions: 2, snapshots: 3 });
    expect((await from.listSessions()).items).toEqual([]);
  });

  it('notifies of a snapshot in the old store until the new one has it', async () => {
    const from = new InMemorySessionStore();
    await from.saveSnapshot('run', () => turn(1, { status: 'pending' }));
    const store = migratingStore({ from, to: new InMemorySessionStore() });
    const heard: (string | undefined)[] = [];
    const end = store.onSnapshotStateChange('run', ({ status }) => heard.push(status));
    await expect.poll(() => heard.at(-1)).toBe('pending');
    await store.saveSnapshot('run', (current) => ({ ...current!, status: 'completed' }));
    await expect.poll(() => heard.at(-1)).toBe('completed');
    await from.saveSnapshot('run', (current) => ({ ...current!, status: 'aborted' }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard.filter((status) => status !== 'pending')).toEqual(['completed']);
    end();
  });

  it('refuses values that are not stores', () => {
    expect(() => migratingStore({ from: {} as SessionStore, to: new InMemorySessionStore() })).toThrow('from must be');
    expect(() => migratingStore({ from: new GenkitMemoryStore(), to: new GenkitMemoryStore() as never })).toThrow(
      'capabilities',
    );
  });
});

describe('migratingStore with values of users and apps', () => {
  it('exports a value in both stores that can’t be read in to as unreadable, and everything else', async () => {
    const from = new InMemorySessionStore();
    const to = new InMemorySessionStore();
    const ada = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    for (const [id, store] of Object.entries({ old: from, new: to }))
      await store.saveSnapshot(id, () => turn(1, { sessionId: id }), {
        scopes: [{ id: ada, change: () => ({ size: 1 }) }],
      });
    to.readScopes = async () => {
      throw new GenkitError({ status: 'DATA_LOSS', message: 'lost key' });
    };
    const lines = (await collect(exportSessions(migratingStore({ from, to })))).map(
      (line) => JSON.parse(line) as object,
    );
    expect(lines.at(-1)).toMatchObject({ kind: 'end', sessions: 2, scopes: 0, unreadable: 1 });
  });

  it('keeps a save whose removal in from fails, and logs what to do', async () => {
    const from = new InMemorySessionStore();
    const to = new InMemorySessionStore();
    const ada = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    await from.saveSnapshot('old', () => turn(1), { scopes: [{ id: ada, change: () => ({ size: 1 }) }] });
    from.deleteScope = async () => {
      throw new GenkitError({ status: 'UNAVAILABLE', message: 'down' });
    };
    const log = vi.spyOn(logger, 'error').mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    const store = migratingStore({ from, to });
    const emptied = { scopes: [{ id: ada, change: () => ({}) }] };
    expect(await store.saveSnapshot('new', () => turn(2, { parentId: 'old' }), emptied)).toBe('new');
    expect(String(log.mock.lastCall?.[0])).toContain('Remove them with deleteScope.');
  });

  it('takes the answer to a tool of a session in from again after a turn that failed', async () => {
    const from = new InMemorySessionStore();
    const ai = genkit({});
    ai.defineInterrupt({ name: 'ask', description: 'Asks.', inputSchema: z.object({}) });
    const replies: (() => Part)[] = [
      () => ({ toolRequest: { name: 'ask', ref: '1', input: {} } }),
      () => {
        throw new Error('The model is down.');
      },
      () => ({ text: 'thanks' }),
    ];
    const model = ai.defineModel({ name: 'scripted' }, async () => ({
      message: { role: 'model', content: [replies.shift()!()] },
      finishReason: 'stop',
    }));
    const old = ai.defineAgent({ name: 'old', model, tools: ['ask'], store: from });
    const { sessionId = '' } = await old.chat().send('go');
    const store = migratingStore({ from, to: new InMemorySessionStore() });
    const moved = ai.defineAgent({ name: 'moved', model, tools: ['ask'], store });
    const answer = async () => {
      const chat = await moved.loadChat({ sessionId });
      return chat.resume({ respond: [chat.interrupts[0]!.respond('yes')] });
    };
    await expect(answer()).rejects.toThrow();
    expect((await answer()).text).toBe('thanks');
  });

  it('keeps the values of users and apps that are only in from, and removes them from both', async () => {
    const from = new InMemorySessionStore();
    const to = new InMemorySessionStore();
    const store = migratingStore({ from, to });
    const ada = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    const shop = { scope: 'app', appName: 'shop' } as const;
    const set = (values: ScopeRecord) => ({
      scopes: [{ id: ada, change: (record: ScopeRecord) => ({ ...record, ...values }) }],
    });
    await from.saveSnapshot('old', () => turn(1), {
      session: { ownerId: 'ada' },
      scopes: [
        { id: ada, change: () => ({ size: 42, seat: 1 }) },
        { id: shop, change: () => ({ sale: 5 }) },
      ],
    });
    expect(await store.readScopes({ scopes: [ada, shop] })).toEqual([{ size: 42, seat: 1 }, { sale: 5 }]);
    const listed = () => collect(itemsOf((page: PageOptions) => store.listScopes(page), { limit: 1 }));
    expect(await listed()).toEqual(expect.arrayContaining([ada, shop]));

    await store.saveSnapshot('new', () => turn(2, { parentId: 'old' }), set({ seat: 2 }));
    expect(await store.readScopes({ scopes: [ada] })).toEqual([{ size: 42, seat: 2 }]);
    expect(await from.readScopes({ scopes: [ada] })).toEqual([{ size: 42, seat: 1 }]);
    expect(await listed()).toHaveLength(2);

    await store.saveSnapshot('empty', () => turn(3, { parentId: 'new' }), {
      scopes: [{ id: ada, change: () => ({}) }],
    });
    expect(await store.readScopes({ scopes: [ada] })).toEqual([{}]);

    await store.saveSnapshot('again', () => turn(4, { parentId: 'empty' }), set({ seat: 3 }));
    await from.saveSnapshot('beside', () => turn(1, { sessionId: 'other' }), set({ size: 43 }));
    expect(await store.deleteScope({ scope: ada })).toBe(true);
    expect([await from.readScopes({ scopes: [ada] }), await to.readScopes({ scopes: [ada] })]).toEqual([[{}], [{}]]);
  });

  it('erases and exports the values of a user that are only in from', async () => {
    const from = new InMemorySessionStore();
    const store = migratingStore({ from, to: new InMemorySessionStore() });
    const ada = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    await from.saveSnapshot('old', () => turn(1), { scopes: [{ id: ada, change: () => ({ size: 42 }) }] });
    const lines: unknown[] = [];
    for await (const line of exportUser(store, { userId: 'ada' })) lines.push(JSON.parse(line));
    expect(lines).toContainEqual({ kind: 'scope', scope: ada, values: { size: 42 } });
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({ scopes: 1 });
    expect((await from.listScopes()).items).toEqual([]);
  });

  it('starts a user’s state from the values in from', async () => {
    const from = new InMemorySessionStore();
    await from.saveSnapshot('old', () => turn(1), {
      scopes: [{ id: { scope: 'user', appName: 'shop', userId: 'ada' }, change: () => ({ visits: 4 }) }],
    });
    const ai = genkit({});
    const agent = ai.defineCustomAgent<object>(
      {
        name: 'counting',
        appName: 'shop',
        store: migratingStore({ from, to: new InMemorySessionStore() }),
        scopes: { user: z.object({ visits: z.number() }) },
      },
      async (sess) => {
        await sess.run(async () => {
          const visits = Number(sess.session.state.get('user:visits') ?? 0) + 1;
          sess.session.state.set('user:visits', visits);
        });
        return {
          message: { role: 'model', content: [{ text: String(Number(sess.session.state.get('user:visits'))) }] },
        };
      },
    );
    const context = { auth: { uid: 'ada' } };
    expect((await agent.chat({}, { context }).send('Hi')).text).toBe('5');
    expect((await agent.chat({}, { context }).send('Hi')).text).toBe('6');
  });
});

describe('migratingStore with session records', () => {
  const note = { sessionId: 'chat', kind: 'note' };

  /** A chat in the old store with the records `both` and `old`, of which the new store has `both` too, and `new`. */
  async function records() {
    const [from, to] = [new InMemorySessionStore(), new InMemorySessionStore()];
    await from.saveSnapshot('one', () => turn(1));
    for (const key of ['both', 'old']) await from.writeRecord({ ...note, key, value: `old ${key}` });
    for (const key of ['both', 'new']) await to.writeRecord({ ...note, key, value: `new ${key}` });
    const store = migratingStore({ from, to });
    const revisionOf = async (key: string): Promise<string> =>
      (await store.readRecords({ ...note, keys: [key] }))[0]!.revision;
    return { from, to, store, revisionOf };
  }

  const read = async (store: RecordStore, keys?: string[]): Promise<unknown[]> =>
    (await store.readRecords({ ...note, ...(keys && { keys }) })).map(({ value }) => value);

  it('reads the records of both stores, the new one first, in one order', async () => {
    const { store, from } = await records();
    await from.writeRecord({ ...note, kind: 'another', key: 'z', value: 'old z' });
    expect(await read(store)).toEqual(['new both', 'new new', 'old old']);
    expect(await read(store, ['old', 'both'])).toEqual(['new both', 'old old']);
    const all = await store.readRecords({ sessionId: 'chat' });
    expect(all.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['another z', 'note both', 'note new', 'note old']);
  });

  it('replaces a record of the old store in the new one, by the revision that it was read with', async () => {
    const { store, from, revisionOf } = await records();
    const expectedRevision = await revisionOf('old');
    const write = (value: string, expected: string | null): Promise<string | null> =>
      store.writeRecord({ ...note, key: 'old', value, expectedRevision: expected });
    for (const stale of [null, 'unknown']) {
      await expect(write('lost', stale)).rejects.toThrow(expect.objectContaining({ status: 'ABORTED' }) as Error);
    }
    const racers = await Promise.allSettled(['a', 'b', 'c'].map((value) => write(value, expectedRevision)));
    expect(racers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected']);
    await expect(write('late', expectedRevision)).rejects.toThrow('Read it again');
    const winner = ['a', 'b', 'c'][racers.findIndex(({ status }) => status === 'fulfilled')];
    expect(await read(store, ['old'])).toEqual([winner]);
    expect(await read(from, ['old'])).toEqual(['old old']);
  });

  it('removes a record in both stores, so that the old one does not come back', async () => {
    const { store, from, to, revisionOf } = await records();
    for (const key of ['both', 'old']) {
      const expectedRevision = await revisionOf(key);
      expect(await store.writeRecord({ ...note, key, value: undefined, expectedRevision })).toBeNull();
    }
    expect(await read(store)).toEqual(['new new']);
    expect(await read(from)).toEqual([]);
    await store.deleteSession({ sessionId: 'chat' });
    expect(await read(to)).toEqual([]);
  });

  it('writes for a snapshot of either store, and not for one that was deleted', async () => {
    const { store, to } = await records();
    await to.saveSnapshot('two', () => turn(2, { parentId: 'one' }));
    for (const ifSnapshot of ['one', 'two'])
      await store.writeRecord({ ...note, key: 'new', value: ifSnapshot, ifSnapshot });
    expect(await read(to, ['new'])).toEqual(['two']);
    await store.deleteSession({ sessionId: 'chat' });
    for (const ifSnapshot of ['one', 'two']) {
      const late = store.writeRecord({ ...note, key: 'new', value: 'late', ifSnapshot });
      await expect(late).rejects.toThrow('no longer has the snapshot');
    }
  });

  it('leaves no record of a write for a session of the old store that is deleted meanwhile', async () => {
    for (const when of ['before', 'after'] as const) {
      const { to, store } = await records();
      const sound = to.writeRecord.bind(to);
      to.writeRecord = async (options) => {
        to.writeRecord = sound;
        if (when === 'before') await store.deleteSession({ sessionId: 'chat' });
        const revision = await sound(options);
        if (when === 'after') await store.deleteSession({ sessionId: 'chat' });
        return revision;
      };
      const write = store.writeRecord({ ...note, key: 'new', value: 'late', ifSnapshot: 'one' });
      await expect(write).rejects.toThrow(expect.objectContaining({ status: 'ABORTED' }) as Error);
      expect(await read(store)).toEqual([]);
    }
  });

  it('leaves no record of a write that comes while the deletion is between the two stores', async () => {
    for (const between of ['from', 'to'] as const) {
      const stores = await records();
      const { [between]: reached, store } = stores;
      const sound = reached.deleteSession.bind(reached);
      reached.deleteSession = async (options) => {
        const result = await sound(options);
        await store.writeRecord({ ...note, key: 'new', value: 'late', ifSnapshot: 'one' }).catch(() => {});
        return result;
      };
      await store.deleteSession({ sessionId: 'chat' });
      expect(await read(store)).toEqual([]);
    }
  });

  it('writes to the new store if the old one keeps no records, and fails if the new one keeps none', async () => {
    const from = await genkitChat(temporaryFolder());
    const store = migratingStore({ from, to: new InMemorySessionStore() });
    await store.writeRecord({ ...note, key: 'a', value: 1, expectedRevision: null, ifSnapshot: 'three' });
    await store.writeRecord({ ...note, key: 'b', value: 2 });
    expect(await store.writeRecord({ ...note, key: 'b', value: undefined })).toBeNull();
    expect(await read(store)).toEqual([1]);
    const without = { ...FOREIGN_CAPABILITIES, durable: true };
    const none = migratingStore({
      from,
      to: Object.assign(new GenkitMemoryStore(), { capabilities: without }) as never,
    });
    expect(none.capabilities.records).toBe(false);
    await expect(none.readRecords(note)).rejects.toThrow('does not keep session records');
  });
});

describe('copySessions', () => {
  it('moves the whole data of Genkit’s own file store: ids, order, leaf, branches', async () => {
    const directory = temporaryFolder();
    const from = await genkitChat(directory, 'tenants/ada');
    await from.saveSnapshot('alone', () => turn(1, { sessionId: 'other', state: {} }));
    const to = new InMemorySessionStore();
    const seen: number[] = [];
    const result = await copySessions(from, to, {
      list: listGenkitDirectory(directory, { prefix: 'tenants/ada' }),
      onProgress: ({ sessions }) => seen.push(sessions),
    });
    expect(result).toEqual({ sessions: 2, snapshots: 5, scopes: 0, records: 0, diverged: [], partial: [] });
    expect(seen).toEqual([1, 2]);
    for (const snapshotId of ['one', 'side', 'two', 'three', 'alone']) {
      const snapshot = (await from.getSnapshot({ snapshotId }))!;
      expect(await to.getSnapshot({ snapshotId })).toEqual({ updatedAt: snapshot.createdAt, ...snapshot });
    }
    expect((await to.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('three');
    expect(existsSync(join(directory, 'tenants', 'ada', 'one.json'))).toBe(true);
  });

  it('continues after an interruption, and writes no snapshot twice', async () => {
    const from = new InMemorySessionStore();
    for (let n = 1; n <= 30; n++) {
      const parentId = n === 1 ? {} : { parentId: `turn ${n - 1}` };
      await from.saveSnapshot(`turn ${n}`, () => turn(n, parentId), {
        session: { ownerId: 'ada', title: 'A chat' },
        scopes: [{ id: { scope: 'user', appName: 'shop', userId: `user ${n}` }, change: () => ({ n }) }],
      });
    }
    const note = { sessionId: 'chat', kind: 'note', key: 'a' };
    for (const key of ['a', 'b', 'c']) await from.writeRecord({ ...note, key, value: { of: key } });
    const to = new InMemorySessionStore();
    await to.writeRecord({ ...note, value: 'newer' });
    let calls = 0;
    const failing = new Proxy(from, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        if (name !== 'getSnapshot') return member.bind(target);
        return (lookup: { snapshotId?: string }) => {
          if (++calls === 12) throw new Error('interrupted');
          return target.getSnapshot(lookup);
        };
      },
    });
    await expect(copySessions(failing, to)).rejects.toThrow('interrupted');
    expect(await copySessions(from, to)).toEqual({
      sessions: 1,
      snapshots: 19,
      scopes: 0,
      records: 2,
      diverged: [],
      partial: [],
    });
    expect(await copySessions(from, to)).toMatchObject({ snapshots: 0, records: 0 });
    expect(await to.listSnapshots({ sessionId: 'chat' })).toEqual(await from.listSnapshots({ sessionId: 'chat' }));
    expect((await to.listSessions()).items).toEqual((await from.listSessions()).items);
    const [record] = await to.readScopes({ scopes: [{ scope: 'user', appName: 'shop', userId: 'user 7' }] });
    expect(record).toEqual({ n: 7 });
    expect((await to.listScopes()).items).toHaveLength(30);
    const records = await to.readRecords({ sessionId: 'chat' });
    expect(records.map(({ key, value }) => [key, value])).toEqual([
      ['a', 'newer'],
      ['b', { of: 'b' }],
      ['c', { of: 'c' }],
    ]);
  });

  it('completes a session that continued in the new store, and reports one that continued in both', async () => {
    const from = new InMemorySessionStore();
    const to = new InMemorySessionStore();
    for (const sessionId of ['one line', 'two lines']) {
      await from.saveSnapshot(`${sessionId} a`, () => turn(1, { sessionId }));
      await from.saveSnapshot(`${sessionId} b`, () => turn(2, { sessionId, parentId: `${sessionId} a` }));
      await to.saveSnapshot(`${sessionId} c`, () => turn(3, { sessionId, parentId: `${sessionId} b` }));
    }
    await from.saveSnapshot('two lines d', () => turn(3, { sessionId: 'two lines', parentId: 'two lines b' }));
    const result = await copySessions(from, to);
    expect(result).toEqual({ sessions: 1, snapshots: 2, scopes: 0, records: 0, diverged: ['two lines'], partial: [] });
    expect((await to.getSnapshot({ sessionId: 'one line' }))?.snapshotId).toBe('one line c');
    expect((await to.listSnapshots({ sessionId: 'two lines' })).items).toHaveLength(1);
  });

  it('names a session that continued in the new store and has other branches in the old one, which stay there', async () => {
    const directory = temporaryFolder();
    const from = await genkitChat(directory);
    const to = new InMemorySessionStore();
    const store = migratingStore({ from, to });
    await store.saveSnapshot('four', () => turn(5, { parentId: 'three' }));
    const list = listGenkitDirectory(directory);
    const copied = { sessions: 0, scopes: 0, records: 0, diverged: [], partial: ['chat'] };
    expect(await copySessions(from, to, { list })).toEqual({ ...copied, snapshots: 3 });
    expect(await copySessions(from, to, { list })).toEqual({ ...copied, snapshots: 0 });
    expect((await to.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('four');
    expect(await to.getSnapshot({ snapshotId: 'side' })).toBeUndefined();
    expect((await store.getSnapshot({ snapshotId: 'side' }))?.snapshotId).toBe('side');
  });

  it('says what to do if the old store can’t list', async () => {
    await expect(copySessions(new GenkitMemoryStore(), new InMemorySessionStore())).rejects.toThrow(
      'listGenkitDirectory',
    );
    const missing = copySessions(new GenkitMemoryStore(), new InMemorySessionStore(), {
      list: listGenkitDirectory(join(temporaryFolder(), 'nothing')),
    });
    await expect(missing).rejects.toThrow(expect.objectContaining({ status: 'NOT_FOUND' }) as Error);
  });
});
