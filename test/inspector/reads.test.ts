/** The page's reads, over real HTTP and real stores, and their number of requests of the store. */
import { FileSessionStore, InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { afterEach, describe, expect, it } from 'vitest';
import type { ChangesPage } from '../../src/inspector/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { counting } from './support/counting.ts';
import { open, type Visitor } from './support/open.ts';
import { message, saveTurns, turn } from './support/sessions.ts';

let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
});

async function visit(options: Parameters<typeof open>[0]): Promise<Visitor> {
  const { visitor, close } = await open(options);
  ends.push(close);
  return visitor;
}

const STORES: [string, () => SnapshotStore][] = [
  ['in memory', () => new InMemorySessionStore()],
  ['in files', () => new FileSessionStore(temporaryFolder(), { durability: 'fast' })],
];

describe.each(STORES)('sessions %s', (_, newStore) => {
  it('are found by words, status, agent, age, size and tokens', async () => {
    const store = newStore();
    ends.push(() => store.close());
    const session = { agent: 'support', title: 'Lost Parcel', ownerId: 'ada' };
    await store.saveSnapshot('a1', () => turn('a', { usage: { inputTokens: 90, outputTokens: 10 } }), { session });
    await store.saveSnapshot('b1', () => turn('b', { status: 'failed' }), { session: { agent: 'booking' } });
    await saveTurns(store, 'c', 5);
    const visitor = await visit({ store });
    const found = async (conditions: object) =>
      (await visitor.get('sessions', conditions)).items.map(({ sessionId }) => sessionId);
    expect(await found({})).toEqual(['c', 'b', 'a']);
    expect(await found({ search: 'parcel LOST' })).toEqual(['a']);
    expect(await found({ search: 'ADA' })).toEqual(['a']);
    expect(await found({ search: 'nothing' })).toEqual([]);
    expect(await found({ status: 'failed' })).toEqual(['b']);
    expect(await found({ agent: 'support', search: 'a' })).toEqual(['a']);
    expect(await found({ minSnapshots: 5 })).toEqual(['c']);
    expect(await found({ minTokens: 100 })).toEqual(['a']);
    expect(await found({ since: '2999-01-01T00:00:00Z' })).toEqual([]);
    expect(await found({ until: '2999-01-01T00:00:00Z' })).toHaveLength(3);
    expect((await visitor.get('sessions', { search: 'parcel' })).items[0]).toMatchObject({
      tokens: 100,
      title: 'Lost Parcel',
    });
    const first = await visitor.get('sessions', { limit: 2 });
    const second = await visitor.get('sessions', { limit: 2, cursor: first.nextCursor! });
    expect([...first.items, ...second.items].map(({ sessionId }) => sessionId)).toEqual(['c', 'b', 'a']);
    expect(second.nextCursor).toBeUndefined();
  });

  it('of a dead background run are expired in the list, in the filter and on their own page', async () => {
    const store = newStore();
    ends.push(() => store.close());
    const run = (heartbeatAt: string) => ({ status: 'pending' as const, heartbeatAt });
    await store.saveSnapshot('d1', () => turn('dead', run('2026-01-01T00:00:00Z')));
    await store.saveSnapshot('l1', () => turn('alive', run(new Date().toISOString())));
    const visitor = await visit({ store });
    const found = async (conditions: object) =>
      (await visitor.get('sessions', conditions)).items.map(({ sessionId, status }) => [sessionId, status]);
    const [dead, alive] = [
      ['dead', 'expired'],
      ['alive', 'pending'],
    ];
    expect(await found({})).toEqual([alive, dead]);
    expect(await found({ status: 'expired' })).toEqual([dead]);
    expect(await found({ status: 'pending' })).toEqual([alive]);
  });

  it('show a snapshot, its differences to another, and the turns that changed a value', async () => {
    const store = newStore();
    ends.push(() => store.close());
    const custom = [{ orderId: 'A' }, { orderId: 'A', list: [1] }, { orderId: 'B', list: [1, 2] }, { list: [2] }];
    const ids: string[] = [];
    const messages: ReturnType<typeof message>[] = [];
    for (const [i, value] of custom.entries()) {
      messages.push(message(`says ${i}`), message(`replies ${i}`, 'model'));
      const artifacts = i > 1 ? [{ name: 'a.md', parts: [{ text: `v${i}` }] }] : [];
      const state = { messages: [...messages], custom: value, artifacts };
      const parentId = ids.at(-1);
      ids.push(
        (await store.saveSnapshot(undefined, () => turn('s', { state, ...(parentId !== undefined && { parentId }) })))!,
      );
    }
    const visitor = await visit({ store });
    const [first, , third, last] = ids as [string, string, string, string];
    const shown = await visitor.get('snapshot', { snapshotId: third });
    expect(shown).toMatchObject({
      node: { snapshotId: third, sessionId: 's', status: 'completed' },
      custom: custom[2],
    });
    expect(shown.messages).toEqual(messages.slice(0, 6));
    expect(shown.stateBytes).toBeGreaterThan(100);
    expect((await visitor.get('snapshot', { sessionId: 's' })).node.snapshotId).toBe(last);

    const diff = await visitor.get('diff', { from: first, to: third });
    expect(diff.messages).toEqual({ same: 2, removed: [], added: messages.slice(2, 6) });
    expect(diff.custom).toContainEqual({ path: '/orderId', before: 'A', after: 'B' });
    expect(diff.custom).toContainEqual({ path: '/list', after: [1, 2] });
    const { custom: listed, artifacts } = await visitor.get('diff', { from: third, to: last });
    expect(listed).toContainEqual({ path: '/orderId', before: 'B' });
    expect(listed.some(({ path }) => path.startsWith('/list'))).toBe(true);
    expect(diff.artifacts).toMatchObject([{ path: '/a.md', after: { name: 'a.md' } }]);
    expect(artifacts).toEqual([{ path: '/a.md/parts/0/text', before: 'v2', after: 'v3' }]);

    const changes = await visitor.get('changes', { snapshotId: last, path: '/orderId' });
    expect(changes.items.map(({ node, before, after }) => [node.snapshotId, before, after])).toEqual([
      [last, 'B', undefined],
      [third, 'A', 'B'],
      [first, undefined, 'A'],
    ]);
    // Page by page: the same.
    const pages: unknown[] = [];
    for (let snapshotId: string | undefined = last; snapshotId !== undefined;) {
      const page: ChangesPage = await visitor.get('changes', { snapshotId, path: '/orderId', limit: 2 });
      pages.push(...page.items);
      snapshotId = page.nextSnapshotId;
    }
    expect(pages).toEqual(changes.items);
  });
});

describe('a session of 1,000 turns', () => {
  it('takes at most 5 requests of the store to appear', async () => {
    const { store, calls } = counting(new InMemorySessionStore());
    await saveTurns(store, 's', 1000);
    const visitor = await visit({ store });
    calls.length = 0;
    // The requests of the page: the list, the tree, the newest snapshot, and its model input.
    const { items } = await visitor.get('start', {});
    const { nodes, nextCursor } = await visitor.get('tree', { sessionId: 's' });
    const view = await visitor.get('snapshot', { snapshotId: items[0]!.leafId });
    const seen = await visitor.get('seen', { snapshotId: items[0]!.leafId });
    expect(nodes).toHaveLength(1000);
    expect(nextCursor).toBeUndefined();
    expect(view.messages).toHaveLength(2000);
    expect(seen.ranges.at(-1)).toEqual({ from: 1998, to: 2000, as: 'turn' });
    expect(calls).toEqual(['listSessions', 'listSnapshots', 'getSnapshot', 'getSnapshot']);
  });
});

describe('a session of 10,000 snapshots', () => {
  it('is one answer, of 10 requests of the store, or the same in pages', async () => {
    const { store, calls } = counting(new InMemorySessionStore());
    await saveTurns(store, 's', 10_000, { isSmall: true, branchEvery: 50 });
    const visitor = await visit({ store });
    calls.length = 0;
    const { nodes, nextCursor } = await visitor.get('tree', { sessionId: 's' });
    expect(calls).toEqual(Array(10).fill('listSnapshots'));
    expect(nodes).toHaveLength(10_000);
    expect(nextCursor).toBeUndefined();
    const parents = new Set(nodes.map(({ parentId }) => parentId));
    expect(nodes.filter(({ snapshotId }) => !parents.has(snapshotId)).length).toBeGreaterThan(150);
    const paged: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await visitor.get('tree', { sessionId: 's', limit: 3333, ...(cursor !== undefined && { cursor }) });
      paged.push(...page.nodes);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(paged).toEqual(nodes);
  });
});

describe('an error', () => {
  it('has a status and a text: missing snapshots, invalid parameters, stores that can’t list', async () => {
    const own = new InMemorySessionStore();
    const visitor = await visit({ store: own });
    await expect(visitor.get('snapshot', { snapshotId: 'x' })).rejects.toMatchObject({
      httpStatus: 404,
      status: 'NOT_FOUND',
    });
    await expect(visitor.get('snapshot', {})).rejects.toMatchObject({ httpStatus: 400 });
    await expect(visitor.get('snapshot', { snapshotId: 'x', sessionId: 'y' })).rejects.toMatchObject({
      httpStatus: 400,
    });
    await expect(visitor.get('tree', {} as never)).rejects.toThrow('sessionId is missing');
    await expect(visitor.get('sessions', { limit: 0 })).rejects.toThrow('limit must be a whole number from 1 to 1000');
    await expect(visitor.get('sessions', { since: 'soon' })).rejects.toThrow('since must be a time');
    await expect(visitor.get('sessions', { status: 'odd' as never })).rejects.toThrow('status must be one of');
    await expect(visitor.get('changes', { snapshotId: 'x', path: 'y' })).rejects.toThrow('JSON Pointer');
    await expect(visitor.get('memory/scopes', {})).rejects.toThrow('has no memories');
    const foreign = { getSnapshot: async () => undefined, saveSnapshot: async () => null };
    const limited = await visit({ store: foreign });
    expect(await limited.get('start', {})).toMatchObject({ items: [], info: { capabilities: { list: false } } });
    await expect(limited.get('sessions', {})).rejects.toThrow('copySessions');
  });

  it('of the store is shown with its own message, because the page is for developers', async () => {
    const store = new InMemorySessionStore();
    store.listSessions = () => Promise.reject(new Error('disk /dev/sda1 is gone'));
    const visitor = await visit({ store });
    const { status, text } = await visitor.raw('api/sessions');
    const { error } = JSON.parse(text) as { error: object };
    expect(status).toBe(500);
    expect(error).toMatchObject({ status: 'INTERNAL', message: 'disk /dev/sda1 is gone' });
  });
});

describe('tenants', () => {
  it('are chosen by the page only if the context is a function', async () => {
    const store = new InMemorySessionStore({
      snapshotPathPrefix: (options) => String((options as { context?: { tenant?: string } }).context?.tenant),
    });
    for (const tenant of ['one', 'two']) {
      await store.saveSnapshot('a', () => turn(`of ${tenant}`, {}), { context: { tenant } });
    }
    const many = await visit({ store, context: (tenant) => ({ tenant: tenant ?? 'one' }) });
    expect((await many.get('start', {})).info.hasTenants).toBe(true);
    expect((await many.get('sessions', {})).items).toMatchObject([{ sessionId: 'of one' }]);
    expect((await many.get('sessions', { tenant: 'two' })).items).toMatchObject([{ sessionId: 'of two' }]);
    const one = await visit({ store, context: { tenant: 'one' } });
    expect((await one.get('sessions', { tenant: 'two' })).items).toMatchObject([{ sessionId: 'of one' }]);
  });

  it('must be named for a store that refuses calls without one: the page still opens, to ask for the name', async () => {
    const store = new InMemorySessionStore({
      snapshotPathPrefix: (options) => (options as { context: { tenant?: string } }).context.tenant as string,
    });
    await store.saveSnapshot('a', () => turn('s', {}), { context: { tenant: 'one' } });
    const visitor = await visit({ store, context: (tenant) => ({ tenant }) });
    expect(await visitor.get('start', {})).toMatchObject({
      items: [],
      info: { hasTenants: true },
      error: { message: expect.stringContaining('snapshotPathPrefix') },
    });
    expect(await visitor.get('start', { tenant: 'one' })).toMatchObject({ items: [{ sessionId: 's' }] });
  });
});
