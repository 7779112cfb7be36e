import { genkit } from 'genkit';
import { describe, expect, it } from 'vitest';
import {
  defineAgent,
  SessionConflictError,
  SessionService,
  type Json,
  type SessionEventInput,
  type SnapshotStore,
  type StoredSession,
} from 'genkitx-agents';

/** Two store objects on one empty backend; the same where the medium is the object. */
export interface ServiceStores {
  a: SnapshotStore;
  b: SnapshotStore;
  close(): Promise<void>;
}

const ADA = { appName: 'shop', userId: 'ada' };
const EVE = { appName: 'shop', userId: 'eve' };

function said(text: string, author = 'user'): SessionEventInput {
  return { author, content: { role: author === 'user' ? 'user' : 'model', content: [{ text }] } };
}

function delta(stateDelta: Record<string, unknown>, author = 'system'): SessionEventInput {
  return { author, actions: { stateDelta: stateDelta as never } };
}

function texts(session: StoredSession | undefined): (string | undefined)[] {
  return session!.events.map((event) => event.content?.content[0]?.text);
}

const isAborted = expect.objectContaining({ status: 'ABORTED' });

/** The tests of `SessionService` over one store. */
export function sessionServiceSuite(name: string, open: () => Promise<ServiceStores>): void {
  const on = (title: string, body: (services: Services) => Promise<void>) =>
    it(title, async () => {
      const stores = await open();
      try {
        await body({ a: new SessionService(stores.a), b: new SessionService(stores.b), store: stores.a });
      } finally {
        await stores.close();
      }
    });

  describe(`SessionService over ${name}`, () => {
    sessions(on);
    events(on);
    appending(on);
    refusals(on);
    outOfDate(on);
    agents(on);
  });
}

interface Services {
  a: SessionService;
  b: SessionService;
  store: SnapshotStore;
}

type On = (title: string, body: (services: Services) => Promise<void>) => void;

function sessions(on: On): void {
  on('makes sessions, finds them for their user, lists and deletes them', async ({ a, b }) => {
    const first = await a.createSession({ ...ADA, sessionId: 'first', state: { step: 1, 'temp:x': 1 } });
    expect([first.id, first.appName, first.userId, first.state, first.events]).toEqual([
      'first',
      'shop',
      'ada',
      { step: 1 },
      [],
    ]);
    const second = await b.createSession(ADA);
    expect(second.id).toMatch(/^[\da-f-]{36}$/);
    expect((await b.getSession({ ...ADA, sessionId: 'first' }))!.toJSON()).toEqual(first.toJSON());
    await a.appendEvent(first, said('hello'));
    const { sessions: listed } = await b.listSessions(ADA);
    expect(listed.map(({ id }) => id)).toEqual(['first', second.id]);
    expect(listed[0]).toEqual({ ...ADA, id: 'first', lastUpdateTime: first.lastUpdateTime });
    expect((await b.deleteSession({ ...ADA, sessionId: 'first' })).snapshots).toBe(2);
    expect(await a.getSession({ ...ADA, sessionId: 'first' })).toBeUndefined();
    expect((await b.deleteSession({ ...ADA, sessionId: 'first' })).snapshots).toBe(0);
    await expect(a.appendEvent(first, said('late'))).rejects.toMatchObject({ status: 'NOT_FOUND' });
  });

  on('shows a session only to its user in its app', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'mine' });
    const others = [
      EVE,
      { appName: 'Shop', userId: 'ada' },
      { appName: 'ada', userId: 'shop' },
      { appName: 'shop/ada', userId: ' ' },
    ];
    for (const other of others.slice(0, 3)) {
      expect(await b.getSession({ ...other, sessionId: 'mine' })).toBeUndefined();
      expect(await b.listSessions(other)).toEqual({ sessions: [] });
      expect(await b.deleteSession({ ...other, sessionId: 'mine' })).toEqual({ snapshots: 0, shards: 0 });
      await expect(b.createSession({ ...other, sessionId: 'mine' })).rejects.toMatchObject({
        status: 'ALREADY_EXISTS',
      });
    }
    await expect(b.getSession({ ...others[3]!, sessionId: 'mine' })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    await a.appendEvent(session, said('still here'));
    expect(texts(await b.getSession({ ...ADA, sessionId: 'mine' }))).toEqual(['still here']);
  });

  on('of racing creations of one id one is made', async ({ a, b }) => {
    const creations = Array.from({ length: 8 }, (_, i) =>
      (i % 2 ? a : b).createSession({ ...ADA, sessionId: 'one', state: { i } }),
    );
    const results = await Promise.allSettled(creations);
    const made = results.filter((result) => result.status === 'fulfilled');
    expect(made).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ status: 'ALREADY_EXISTS' });
    }
    expect((await a.getSession({ ...ADA, sessionId: 'one' }))!.state).toEqual(made[0]!.value.state);
  });

  on('refuses a value that is not a session or a query', async ({ a, b, store }) => {
    const refused = expect.objectContaining({ status: 'INVALID_ARGUMENT' });
    await expect(a.createSession({ appName: '', userId: 'ada' })).rejects.toEqual(refused);
    await expect(a.createSession({ ...ADA, state: [] as never })).rejects.toEqual(refused);
    await expect(a.createSession({ ...ADA, state: { bad: { x: 1n } } as never })).rejects.toMatchObject({
      key: 'bad',
      path: '/x',
    });
    await expect(a.getSession({ ...ADA, sessionId: 'x', numRecentEvents: -1 })).rejects.toEqual(refused);
    await expect(a.getSession({ ...ADA, sessionId: 'x', afterTimestamp: Number.NaN })).rejects.toEqual(refused);
    const session = await a.createSession(ADA);
    await expect(b.appendEvent(session, said('x'))).rejects.toEqual(refused);
    await expect(a.appendEvent({ ...session.toJSON() } as never, said('x'))).rejects.toEqual(refused);
    const bad = [
      null,
      {},
      { author: ' ' },
      { ...said('x'), id: '' },
      { ...said('x'), timestamp: 'now' },
      { ...said('x'), content: { role: 'system', content: [{ text: 'x' }] } },
      { ...said('x'), content: { role: 'user', content: [] } },
      { ...said('x'), content: { role: 'user', parts: [{ text: 'x' }] } },
      { ...said('x'), actions: { stateDelta: [] } },
      { ...said('x'), actions: { stateDelta: { a: Number.NaN } } },
      { ...said('x'), note: 'x'.repeat(300_000) },
    ];
    for (const event of bad) await expect(a.appendEvent(session, event as never)).rejects.toEqual(refused);
    expect((await store.listSnapshots({ sessionId: session.id })).items).toHaveLength(1);
    expect(() => new SessionService(store, { onStale: 'ignore' as never })).toThrow("'reject' or 'refresh'");
    expect(() => new SessionService(store, { limits: { maxDepth: -1 } })).toThrow('maxDepth');
    const strict = new SessionService(store, { limits: { maxKeyLength: 5 } });
    await expect(strict.createSession({ ...ADA, state: { longer: 1 } })).rejects.toMatchObject({ key: 'longer' });
  });

  on('a session’s state and events can’t be changed in place, and the error says what to do', async ({ a }) => {
    const session = await a.createSession({ ...ADA, state: { cart: { items: [1] } } });
    await a.appendEvent(session, said('hi'));
    const state = session.state as Record<string, { items: number[] }>;
    for (const change of [
      () => (state['step'] = { items: [] }),
      () => delete state['cart'],
      () => state['cart']!.items.push(2),
      () => (state['cart']!.items[0] = 2),
      () => Object.assign(state, { a: 1 }),
      () => Object.defineProperty(state, 'a', { value: 1 }),
      () => ((session as { state: unknown }).state = {}),
    ]) {
      expect(change).toThrow('appendEvent(session, { author, actions: { stateDelta');
    }
    expect(() => (session.events as unknown[]).push({})).toThrow('appendEvent(session, event)');
    expect(session.state).toEqual({ cart: { items: [1] } });
    expect(JSON.parse(JSON.stringify(session))).toEqual(session.toJSON());
  });
}

function events(on: On): void {
  on('appends events in order, applies the delta by prefix, and answers the stored event', async ({ a, b, store }) => {
    const { scopes } = store.capabilities;
    const session = await a.createSession({ ...ADA, sessionId: 'chat', state: { step: 0 } });
    const before = session.lastUpdateTime;
    const shared: Record<string, Json> = scopes ? { 'user:logins': 1, 'app:visits': 7 } : {};
    const stored = await a.appendEvent(session, {
      ...said('hello'),
      id: 'event 1',
      invocationId: 'turn 1',
      timestamp: 1000.5,
      actions: { stateDelta: { step: 1, ['__proto__x']: null, ...shared, 'temp:canary': 'canary' } },
    });
    expect(stored).toEqual({
      id: 'event 1',
      invocationId: 'turn 1',
      author: 'user',
      timestamp: 1000.5,
      content: { role: 'user', content: [{ text: 'hello' }] },
      actions: { stateDelta: { step: 1, ['__proto__x']: null, ...shared } },
    });
    expect(session.state).toEqual({ step: 1, ['__proto__x']: null, ...shared });
    expect(session.lastUpdateTime).toBeGreaterThan(before);
    const second = await a.appendEvent(session, delta({ step: 2 }));
    expect([second.invocationId, second.content]).toEqual([second.id, undefined]);
    const read = await b.getSession({ ...ADA, sessionId: 'chat' });
    expect(read!.toJSON()).toEqual(session.toJSON());
    expect(read!.events).toEqual([stored, second]);
    const all = await store.listSnapshots({ sessionId: 'chat' });
    const raw = [all, await store.getSnapshot({ sessionId: 'chat' })];
    expect(JSON.stringify(raw)).not.toContain('canary');
  });

  on(
    'user and app state is shared at once, temp is not kept, and other users and apps see nothing',
    async ({ a, b, store }) => {
      if (!store.capabilities.scopes) {
        await expect(a.createSession({ ...ADA, sessionId: 'x', state: { 'user:a': 1 } })).rejects.toMatchObject({
          status: 'FAILED_PRECONDITION',
        });
        expect(await a.getSession({ ...ADA, sessionId: 'x' })).toBeUndefined();
        return;
      }
      const one = await a.createSession({
        ...ADA,
        state: { 'user:theme': 'dark', 'app:discount': 5, 'temp:x': 1, plain: 1 },
      });
      const two = await b.createSession(ADA);
      expect(two.state).toEqual({ 'user:theme': 'dark', 'app:discount': 5 });
      expect((await b.createSession(EVE)).state).toEqual({ 'app:discount': 5 });
      expect((await b.createSession({ appName: 'bank', userId: 'ada' })).state).toEqual({});
      await b.appendEvent(two, delta({ 'user:theme': 'light', 'user:size': 'L' }));
      expect((await a.getSession({ ...ADA, sessionId: one.id }))!.state).toEqual({
        plain: 1,
        'user:theme': 'light',
        'user:size': 'L',
        'app:discount': 5,
      });
      await a.deleteSession({ ...ADA, sessionId: two.id });
      expect((await b.createSession(ADA)).state).toEqual({
        'user:theme': 'light',
        'user:size': 'L',
        'app:discount': 5,
      });
    },
  );

  on('answers the last events, and those from a time on', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    for (let i = 0; i < 12; i++) {
      await a.appendEvent(session, {
        ...(i % 3 === 2 ? delta({ i }) : said(`event ${i}`)),
        id: `${i}`,
        timestamp: 100 * i,
      });
    }
    const ids = async (query: object): Promise<string[]> =>
      (await b.getSession({ ...ADA, sessionId: 'chat', ...query }))!.events.map((event) => event.id);
    expect(await ids({})).toEqual(session.events.map((event) => event.id));
    expect(await ids({ numRecentEvents: 3 })).toEqual(['9', '10', '11']);
    expect(await ids({ numRecentEvents: 0 })).toEqual([]);
    expect(await ids({ numRecentEvents: 100 })).toHaveLength(12);
    expect(await ids({ afterTimestamp: 1000 })).toEqual(['10', '11']);
    expect(await ids({ afterTimestamp: 300, numRecentEvents: 2 })).toEqual(['10', '11']);
    expect(await ids({ afterTimestamp: 5000 })).toEqual([]);
    const last = await b.getSession({ ...ADA, sessionId: 'chat', numRecentEvents: 2 });
    expect(texts(last)).toEqual(['event 10', undefined]);
    expect(last!.state).toEqual({ i: 11 });
  });

  on('an event that is appended again is stored once', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    const event = { ...said('once'), id: 'again' };
    const first = await a.appendEvent(session, event);
    expect(await a.appendEvent(session, event)).toEqual(first);
    const other = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    await a.appendEvent(session, said('more'));
    expect(await b.appendEvent(other, { ...event, timestamp: 1 })).toEqual(first);
    expect(texts(other)).toEqual(['once', 'more']);
    await b.appendEvent(other, said('goes on'));
    expect(texts(await a.getSession({ ...ADA, sessionId: 'chat' }))).toEqual(['once', 'more', 'goes on']);
    // An event's id is its session's.
    const elsewhere = await a.createSession({ ...ADA, sessionId: 'elsewhere' });
    expect((await a.appendEvent(elsewhere, { ...said('another'), id: 'again' })).content?.content[0]?.text).toBe(
      'another',
    );
  });

  on('appends to one session object go in the order of the calls', async ({ a, b, store }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => a.appendEvent(session, { ...said(`${i}`), timestamp: 1000 - i })),
    );
    const expected = Array.from({ length: 20 }, (_, i) => `${i}`);
    const times = (await store.listSnapshots({ sessionId: 'chat' })).items.map(({ createdAt }) => createdAt);
    expect(times).toEqual([...new Set(times)].toSorted());
    expect(session.lastUpdateTime).toBe(Date.parse(times.at(-1)!));
    expect(texts(session)).toEqual(expected);
    expect(texts(await b.getSession({ ...ADA, sessionId: 'chat' }))).toEqual(expected);
  });
}

function appending(on: On): void {
  on('an append copies nothing of the events that the session object has', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    for (let i = 0; i < 3; i++) await a.appendEvent(session, said(`event ${i}`));
    const read = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    const before = read.events;
    const kept = [...before];
    await b.appendEvent(read, said('last'));
    expect(read.events.slice(0, 3).every((event, i) => event === kept[i])).toBe(true);
    expect([before.length, texts(read)]).toEqual([3, ['event 0', 'event 1', 'event 2', 'last']]);
  });

  on(
    'an append brings the session object up to date with what others changed of its user and app',
    async (services) => {
      const { a, b, store } = services;
      if (!store.capabilities.scopes) return;
      const session = await a.createSession({ ...ADA, state: { 'user:n': 1, 'user:kept': 1, 'app:n': 1 } });
      const other = await b.createSession(ADA);
      await b.appendEvent(other, delta({ 'user:n': 2, 'user:new': [1], 'app:n': 2 }));
      await a.appendEvent(session, delta({ step: 1, 'app:mine': 1 }));
      expect(session.state).toEqual({
        step: 1,
        'user:n': 2,
        'user:kept': 1,
        'user:new': [1],
        'app:n': 2,
        'app:mine': 1,
      });
      expect((await b.getSession({ ...ADA, sessionId: session.id }))!.state).toEqual(session.state);
    },
  );

  on('what appendEvent answers, and what it was given, is not the session’s own', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    const given = { ...said('hello'), id: 'one', actions: { stateDelta: { cart: ['tea'] } } };
    const answers = [await a.appendEvent(session, given), await a.appendEvent(session, given)];
    for (const { content, actions } of [given, ...answers]) {
      content!.content[0]!.text = 'changed';
      (actions.stateDelta!['cart'] as string[]).push('gin');
    }
    expect([texts(session), session.state]).toEqual([['hello'], { cart: ['tea'] }]);
    await a.appendEvent(session, said('more'));
    expect((await b.getSession({ ...ADA, sessionId: 'chat' }))!.toJSON()).toEqual(session.toJSON());
  });
}

function refusals(on: On): void {
  on('an event whose id is taken on a branch that the session has left is refused, not dropped', async (services) => {
    const { a, b, store } = services;
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    const first = (await store.getSnapshot({ sessionId: 'chat' }))!;
    const event = { ...delta({ paid: 1 }), id: 'payment' };
    await a.appendEvent(session, event);
    await a.appendEvent(session, said('more'));
    // The session continues from its beginning.
    const { snapshotId: parentId, state } = first;
    const createdAt = new Date().toISOString();
    await store.saveSnapshot('rewound', () => ({
      sessionId: 'chat',
      parentId,
      createdAt,
      status: 'completed',
      state: state!,
    }));
    for (const onStale of ['reject', 'refresh'] as const) {
      const fresh = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
      await expect(b.appendEvent(fresh, event, { onStale })).rejects.toMatchObject({
        status: 'ALREADY_EXISTS',
        message: expect.stringContaining('under another id') as string,
      });
      expect([fresh.state, fresh.events]).toEqual([{}, []]);
    }
    const fresh = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    await b.appendEvent(fresh, { ...event, id: 'payment 2' });
    expect(fresh.state).toEqual({ paid: 1 });
  });

  on('a change deep in the state is told by the key of the state that an event would have to set', async ({ a }) => {
    const session = await a.createSession({
      ...ADA,
      state: { cart: ['tea', 'rum'], 'user x': { names: [{ first: 'Ada' }] } },
    });
    const state = session.state as { cart: string[]; 'user x': { names: { first: string }[] } };
    expect(() => state.cart.push('gin')).toThrow('stateDelta: { "cart": value }');
    expect(() => state.cart.sort()).toThrow('stateDelta: { "cart": value }');
    expect(() => (state['user x'].names[0]!.first = 'Eve')).toThrow('stateDelta: { "user x": value }');
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(state['user x']))) {
      expect(() => (value as unknown[]).pop()).toThrow('stateDelta: { "user x": value }');
    }
    expect(() => Object.assign(state, { step: 1 })).toThrow('stateDelta: { "step": value }');
  });

  on('an append to an object that is out of date says how to get one that is not', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    await b.appendEvent((await b.getSession({ ...ADA, sessionId: 'chat' }))!, said('first'));
    const error = await a.appendEvent(session, said('x')).catch((reason: unknown) => reason);
    expect(SessionConflictError.isInstance(error)).toBe(true);
    for (const advice of ['getSession', "onStale: 'refresh'"]) expect((error as Error).message).toContain(advice);
    expect((error as Error).message).not.toContain('snapshotId');
  });

  on('an append refuses a value as createSession does: by its key, where in it, and why', async ({ a }) => {
    const session = await a.createSession(ADA);
    const faults: [Record<string, unknown>, { key: string; path?: string }][] = [
      [{ a: 1, x: 10n }, { key: 'x' }],
      [{ list: { items: [1, new Date()] } }, { key: 'list', path: '/items/1' }],
      [{ big: 'x'.repeat(300_000) }, { key: 'big' }],
      [{ ['k'.repeat(300)]: 1 }, { key: 'k'.repeat(300) }],
    ];
    for (const [stateDelta, fault] of faults) {
      const refused = expect.objectContaining({ name: 'StateError', status: 'INVALID_ARGUMENT', ...fault });
      await expect(a.appendEvent(session, delta(stateDelta))).rejects.toEqual(refused);
      await expect(a.createSession({ ...ADA, state: stateDelta as never })).rejects.toEqual(refused);
    }
    await expect(a.appendEvent(session, delta(new Map() as never))).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    await a.appendEvent(session, delta({ 'temp:x': new Map(), y: undefined, z: 1 }));
    expect([session.state, session.events[0]!.actions]).toEqual([{ z: 1 }, { stateDelta: { z: 1 } }]);
  });

  on('an append takes values as large as the limits say', async ({ a, store }) => {
    const largest = { most: 'x'.repeat(256 * 1024 - 2), step: 1 };
    const session = await a.createSession(ADA);
    await a.appendEvent(session, { ...delta(largest), content: said('hi').content! });
    expect(session.state).toEqual(largest);
    const wide = new SessionService(store, { limits: { maxValueBytes: 400_000 } });
    const other = await wide.createSession(ADA);
    await wide.appendEvent(other, delta({ big: 'x'.repeat(300_000) }));
    expect((await wide.getSession({ ...ADA, sessionId: other.id }))!.state).toEqual({ big: 'x'.repeat(300_000) });
    const many = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`k${i}`, 'x'.repeat(200_000)]));
    await expect(a.appendEvent(session, delta(many))).rejects.toThrow('Split it into several events');
  });
}

function outOfDate(on: On): void {
  on('refuses an append to a session that has gone on, and changes nothing', async ({ a, b, store }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    const other = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    await b.appendEvent(other, said('first'));
    const shared = store.capabilities.scopes ? { 'user:lost': 1 } : {};
    await expect(a.appendEvent(session, delta({ lost: 1, ...shared }))).rejects.toEqual(isAborted);
    const read = await b.getSession({ ...ADA, sessionId: 'chat' });
    expect([read!.state, texts(read)]).toEqual([{}, ['first']]);
    expect(texts(session)).toEqual([]);
  });

  on('refreshes it instead when told so', async ({ a, b }) => {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    const other = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    await b.appendEvent(other, { ...said('first'), actions: { stateDelta: { a: 1 } } });
    await a.appendEvent(session, { ...said('second'), actions: { stateDelta: { b: 2 } } }, { onStale: 'refresh' });
    expect([texts(session), session.state]).toEqual([['first', 'second'], { a: 1, b: 2 }]);
    expect((await b.getSession({ ...ADA, sessionId: 'chat' }))!.toJSON()).toEqual(session.toJSON());
  });

  on('8 writers that refresh lose no event, and each sees its own in order', async ({ a, b, store }) => {
    await a.createSession({ ...ADA, sessionId: 'chat' });
    const write = async (writer: number): Promise<void> => {
      const service = writer % 2 ? a : b;
      const session = (await service.getSession({ ...ADA, sessionId: 'chat' }))!;
      for (let i = 0; i < 5; i++) {
        const shared = store.capabilities.scopes ? { [`user:${writer}`]: i } : {};
        await service.appendEvent(
          session,
          { ...said(`${writer}.${i}`), actions: { stateDelta: shared } },
          { onStale: 'refresh' },
        );
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
    const read = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    const all = texts(read) as string[];
    expect(all).toHaveLength(40);
    for (let writer = 0; writer < 8; writer++) {
      expect(all.filter((text) => text.startsWith(`${writer}.`))).toEqual([0, 1, 2, 3, 4].map((i) => `${writer}.${i}`));
      if (store.capabilities.scopes) expect(read.state[`user:${writer}`]).toBe(4);
    }
    expect((await store.listSessions()).items[0]?.leafCount).toBe(1);
  });

  on(
    'refuses an append while an agent’s turn is under way in the background, and goes on after a failed one',
    async ({ a, store }) => {
      const session = await a.createSession({ ...ADA, sessionId: 'chat' });
      const { snapshotId: parentId } = (await store.getSnapshot({ sessionId: 'chat' }))!;
      const run = {
        sessionId: 'chat',
        parentId,
        createdAt: new Date().toISOString(),
        heartbeatAt: new Date().toISOString(),
      };
      await store.saveSnapshot('run', () => ({ ...run, status: 'pending', state: { messages: [] } }));
      for (const onStale of ['reject', 'refresh'] as const) {
        await expect(a.appendEvent(session, said('x'), { onStale })).rejects.toEqual(isAborted);
      }
      await store.saveSnapshot('run', (current) => ({ ...current!, status: 'failed' }));
      await a.appendEvent(session, said('goes on'), { onStale: 'refresh' });
      expect((await store.getSnapshot({ sessionId: 'chat' }))?.parentId).toBe(parentId);
      expect(texts(session)).toEqual(['goes on']);
    },
  );
}

function agents(on: On): void {
  /** An agent that echoes its input and counts the earlier messages. */
  const agentOn = (store: SnapshotStore) => {
    const ai = genkit({});
    ai.defineModel({ apiVersion: 'v2', name: 'echo' }, async ({ messages }) => ({
      message: {
        role: 'model',
        content: [{ text: messages.map(({ content }) => content[0]?.text).join(', ') }],
      },
      finishReason: 'stop',
    }));
    return defineAgent(ai, { name: 'echo', model: 'echo', store });
  };

  on(
    'an agent goes on with a session that was made by events, and its turns read as events',
    async ({ a, b, store }) => {
      const session = await a.createSession({ ...ADA, sessionId: 'chat', state: { step: 1 } });
      await a.appendEvent(session, said('one'));
      await a.appendEvent(session, delta({ step: 2 }));
      await a.appendEvent(session, said('two', 'helper'));
      const context = { auth: { uid: ADA.userId } };
      const response = await agentOn(store).chat({ sessionId: 'chat' }, { context }).send('three');
      expect(response.text).toBe('one, two, three');
      const read = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
      expect(texts(read)).toEqual(['one', undefined, 'two', 'three', 'one, two, three']);
      expect(read.events.slice(0, 3)).toEqual(session.events);
      expect(read.events.map((event) => event.author)).toEqual(['user', 'system', 'helper', 'user', 'echo']);
      const [turn, reply] = read.events.slice(3);
      expect([turn!.invocationId, reply!.invocationId]).toEqual([response.snapshotId, response.snapshotId]);
      expect(new Set(read.events.map((event) => event.id)).size).toBe(5);
      expect(read.state).toEqual({ step: 2 });
      await expect(a.appendEvent(session, said('stale'))).rejects.toEqual(isAborted);
      await b.appendEvent(read, said('four'));
      expect(texts(await a.getSession({ ...ADA, sessionId: 'chat', numRecentEvents: 3 }))).toEqual([
        'three',
        'one, two, three',
        'four',
      ]);
      expect((await a.getSession({ ...ADA, sessionId: 'chat' }))!.events).toEqual(read.events);
    },
  );

  on('a session that an agent made reads as events once its snapshots name their owner', async ({ a, store }) => {
    const chat = agentOn(store).chat({ sessionId: 'chat' });
    for (const text of ['one', 'two', 'one']) await chat.send(text);
    expect(await a.getSession({ ...ADA, sessionId: 'chat' })).toBeUndefined();
    const { snapshotId } = (await store.getSnapshot({ sessionId: 'chat' }))!;
    await store.saveSnapshot(snapshotId, (current) =>
      Object.assign(current!, { sessionLog: { owner: ADA, author: 'echo' } }),
    );
    const read = (await a.getSession({ ...ADA, sessionId: 'chat' }))!;
    expect(texts(read)).toEqual(['one', 'one', 'two', 'one, one, two', 'one', 'one, one, two, one, one, two, one']);
    expect(read.events.at(-1)?.author).toBe('echo');
    expect(texts(await a.getSession({ ...ADA, sessionId: 'chat', numRecentEvents: 1 }))).toHaveLength(1);
  });

  for (const isToldBy of ['by its messages', 'by its snapshots']) {
    on(`what an agent dropped or summed up is in the log still, ${isToldBy}`, (services) =>
      summedUp(services, isToldBy === 'by its snapshots'),
    );
  }

  async function summedUp({ a, b, store }: Services, isTold: boolean): Promise<void> {
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    for (const text of ['one', 'two', 'three']) await a.appendEvent(session, said(text));
    const leaf = (await store.getSnapshot({ sessionId: 'chat' }))!;
    const summary = { role: 'model' as const, content: [{ text: 'summary' }] };
    const next = { role: 'user' as const, content: [{ text: 'four' }] };
    await store.saveSnapshot('turn', () => ({
      sessionId: 'chat',
      parentId: leaf.snapshotId,
      createdAt: new Date().toISOString(),
      status: 'completed',
      state: { sessionId: 'chat', messages: [summary, ...leaf.state!.messages!.slice(1), next], artifacts: [] },
      ...(isTold && { sessionLog: { messages: { count: 4, kept: 0, added: 1 } } }),
    }));
    const read = (await b.getSession({ ...ADA, sessionId: 'chat' }))!;
    expect(texts(read)).toEqual(['one', 'two', 'three', 'four']);
    expect(read.events.slice(0, 3)).toEqual(session.events);
    await b.appendEvent(read, said('five'));
    expect(texts(await a.getSession({ ...ADA, sessionId: 'chat' }))).toEqual(['one', 'two', 'three', 'four', 'five']);
  }

  on('what was pruned is known by its messages', async ({ a, b, store }) => {
    if (!store.capabilities.prune) return;
    const session = await a.createSession({ ...ADA, sessionId: 'chat' });
    for (const text of ['one', 'two', 'three']) await a.appendEvent(session, said(text));
    await store.prune({ maxChainLength: 1 });
    expect((await store.listSnapshots({ sessionId: 'chat' })).items).toHaveLength(1);
    expect((await b.getSession({ ...ADA, sessionId: 'chat' }))!.events).toEqual(
      session.events.map((event) => ({ ...event, actions: {} })),
    );
  });
}
