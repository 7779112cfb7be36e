import assert from 'node:assert/strict';
import type {
  Page,
  PageOptions,
  SessionDetails,
  SessionSnapshotInput,
  SnapshotStatus,
  SnapshotStore,
} from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { second, snapshot } from '../support/snapshots.ts';

/** Reads all items, page by page. */
async function all<T>(limit: number, list: (options: PageOptions) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page: Page<T> = await list({ limit, ...(cursor !== undefined && { cursor }) });
    assert.ok(page.items.length <= limit, `${page.items.length} items on a page of ${limit}`);
    assert.ok(page.items.length > 0 || items.length === 0, 'a page without items after a page with a nextCursor');
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

/** Lists of a session's snapshots (in the order of their first saves) and of sessions (newest first), and their pages. */
export const lists: Subject = {
  name: 'lists',
  usesNames: true,
  tests(kit) {
    if (!kit.capabilities.list) {
      kit.test('a store that can’t list has no such methods', async ({ a }) => {
        equal(['listSnapshots' in a.store, 'listSessions' in a.store], [false, false], 'the methods');
      });
      return;
    }
    snapshots(kit);
    sessions(kit);
    if (kit.capabilities.details) details(kit);
    pages(kit);
  },
};

function snapshots(kit: Kit): void {
  kit.test('a list without a session is refused', async ({ a }) => {
    const list = (a.store as Partial<SnapshotStore>).listSnapshots!.bind(a.store) as (options?: object) => unknown;
    for (const options of [undefined, {}, { sessionId: ' ' }]) {
      await refuses('INVALID_ARGUMENT', () => list(options));
    }
  });

  kit.test('snapshots are listed in the order of their first saves, without their states', async ({ a, b }) => {
    const ids = ['m', 'a', 'z', 'b'];
    const plans = ids.map((id, i) => ({
      sessionId: 'chat',
      parentId: ids[i - 1],
      createdAt: second(-i),
      messages: 40,
    }));
    for (const [i, { parentId, ...plan }] of plans.entries()) {
      await (i % 2 === 0 ? a : b).save(ids[i], snapshot({ ...plan, ...(parentId && { parentId }) }));
    }
    const later = { updatedAt: second(99), extra: 1 };
    await b.save('a', (current) => ({ ...current!, ...later }));
    await a.save('alone', snapshot());
    const expected = plans.map(({ sessionId, parentId, createdAt }, i) => {
      const metadata = {
        snapshotId: ids[i]!,
        sessionId,
        createdAt,
        updatedAt: createdAt,
        status: 'completed' as const,
      };
      return Object.assign(metadata, parentId && { parentId }, ids[i] === 'a' && later);
    });
    for (const handle of [a, b]) equal((await handle.listSnapshots({ sessionId: 'chat' })).items, expected, 'the list');
  });

  kit.test('a session that does not exist has an empty list; an invalid sessionId is refused', async ({ a }) => {
    const page = await a.listSnapshots({ sessionId: 'nothing' });
    equal([page.items, page.nextCursor], [[], undefined], 'the page');
    for (const sessionId of ['', ' ', 'x'.repeat(1025), 7, undefined]) {
      await refuses('INVALID_ARGUMENT', () => a.listSnapshots({ sessionId: sessionId as string }));
    }
  });
}

function sessions(kit: Kit): void {
  kit.test('sessions are listed by their last write, the newest first, each with its summary', async ({ a, b }) => {
    const save = (
      id: string,
      sessionId: string,
      parentId?: string,
      status: SnapshotStatus = 'completed',
    ): Promise<unknown> =>
      a.save(id, snapshot({ sessionId, createdAt: second(id.length), status, ...(parentId && { parentId }) }));
    await save('a', 'tree');
    await save('bb', 'tree', 'a');
    await save('c', 'other', undefined, 'pending');
    await save('ccc', 'tree', 'a', 'failed');
    await a.save('alone', snapshot());
    const tree = {
      sessionId: 'tree',
      leafId: 'ccc',
      leafCount: 2,
      snapshotCount: 3,
      createdAt: second(1),
      updatedAt: second(3),
    };
    const other = {
      sessionId: 'other',
      leafId: 'c',
      leafCount: 1,
      snapshotCount: 1,
      createdAt: second(1),
      updatedAt: second(1),
    };
    const before = [
      { ...tree, status: 'failed' },
      { ...other, status: 'pending' },
    ];
    for (const handle of [a, b]) equal((await handle.listSessions()).items, before, 'the sessions');
    await b.save('c', (current) => ({ ...current!, status: 'aborted', updatedAt: second(77) }));
    const after = [
      { ...other, status: 'aborted', updatedAt: second(77) },
      { ...tree, status: 'failed' },
    ];
    for (const handle of [a, b]) equal((await handle.listSessions()).items, after, 'the sessions after a rewrite');
  });
}

function details(kit: Kit): void {
  kit.test('a session keeps the owner of its first save, and the agent and title saved last', async ({ a, b }) => {
    const turn = (parentId?: string): SessionSnapshotInput =>
      snapshot({ sessionId: 'chat', ...(parentId && { parentId }) });
    await a.save('one', turn(), { session: { ownerId: 'ada', agent: 'support' } });
    await b.save('two', turn('one'), { session: { ownerId: 'eve', agent: 'sales', title: 'Shoes' } });
    await a.save('three', turn('two'));
    await b.save('three', (current) => current!, { session: { title: 'Blue shoes' } });
    await a.save('alone', snapshot(), { session: { ownerId: 'ada' } });
    const about = async (handle: typeof a): Promise<unknown> =>
      (await handle.listSessions()).items.map(({ ownerId, agent, title }) => ({ ownerId, agent, title }));
    for (const handle of [a, b]) {
      equal(await about(handle), [{ ownerId: 'ada', agent: 'sales', title: 'Blue shoes' }], 'the details');
    }
    await a.save('first', snapshot({ sessionId: 'late' }));
    await b.save('second', snapshot({ sessionId: 'late', parentId: 'first' }), { session: { ownerId: 'eve' } });
    equal((await a.listSessions({ ownerId: 'eve' })).items, [], 'the sessions of an owner named too late');
    if (!kit.capabilities.delete) return;
    await a.deleteSession('late');
    await a.deleteSession('chat');
    await b.save('one', turn(), { session: { ownerId: 'eve' } });
    equal(
      await about(a),
      [{ ownerId: 'eve', agent: undefined, title: undefined }],
      'of a session that was deleted and created again',
    );
  });

  kit.test('ownerId lists only the sessions of one owner, on pages of any size', async ({ a, b }) => {
    const owners = ['ada', 'eve', undefined, 'Ada', 'ada/../eve'];
    for (let i = 0; i < 15; i++) {
      const ownerId = owners[i % owners.length];
      await (i % 2 === 0 ? a : b).save(`turn ${i}`, snapshot({ sessionId: `chat ${i}` }), { session: { ownerId } });
    }
    for (const [i, ownerId] of owners.entries()) {
      if (ownerId === undefined) continue;
      for (const limit of [1, 2, 3, 100]) {
        const found = await all(limit, (options) => b.listSessions({ ...options, ownerId }));
        const expected = [i + 10, i + 5, i].map((n) => `chat ${n}`);
        equal(
          found.map((item) => item.sessionId),
          expected,
          `the sessions of ${ownerId} in pages of ${limit}`,
        );
      }
    }
    equal((await a.listSessions({ ownerId: 'bob' })).items, [], 'the sessions of another');
  });

  kit.test('usage is the sum of the existing snapshots', async ({ a, b }) => {
    const turn = (usage: unknown, parentId?: string): SessionSnapshotInput =>
      Object.assign(snapshot({ sessionId: 'chat', createdAt: second(0), ...(parentId && { parentId }) }), { usage });
    const sum = async (): Promise<unknown> => (await b.listSessions()).items[0]?.usage;
    await a.save('one', turn({ inputTokens: 10, outputTokens: 2, constructor: 3, custom: { calls: 1 } }));
    await b.save('two', turn({ inputTokens: 5, totalTokens: 5.5 }, 'one'));
    equal(await sum(), { inputTokens: 15, outputTokens: 2, constructor: 3, totalTokens: 5.5 }, 'the sum');
    await a.save('two', turn({ inputTokens: 7 }, 'one'));
    equal(await sum(), { inputTokens: 17, outputTokens: 2, constructor: 3 }, 'the sum after a rewrite');
    if (!kit.capabilities.prune) return;
    await a.prune({ maxChainLength: 1 });
    equal(await sum(), { inputTokens: 7 }, 'the sum after pruning');
  });

  kit.test('usage includes the largest summaryUsage of the snapshots', async ({ a, b }) => {
    const save = (id: string, parentId: string | undefined, usages: object): Promise<unknown> =>
      a.save(id, { ...snapshot({ sessionId: 'chat', ...(parentId && { parentId }) }), ...usages });
    const sum = async (): Promise<unknown> => (await b.listSessions()).items[0]?.usage;
    await save('one', undefined, { summaryUsage: { inputTokens: 100, custom: {} } });
    equal(await sum(), { inputTokens: 100 }, 'the usage without a sum');
    await save('two', 'one', { usage: { inputTokens: 5 }, summaryUsage: { inputTokens: 100, outputTokens: 10 } });
    await save('branch', 'one', { usage: { inputTokens: 5 }, summaryUsage: { inputTokens: 100 } });
    await save('three', 'two', { usage: { totalTokens: 1 } });
    await save('three', 'two', { usage: { totalTokens: 1 }, summaryUsage: { inputTokens: 200, outputTokens: 10 } });
    equal(await sum(), { inputTokens: 210, outputTokens: 10, totalTokens: 1 }, 'the usage');
  });

  kit.test('invalid details are refused before the mutator runs', async ({ a }) => {
    for (const session of ['ada', 7, { owner: 'ada' }, { ownerId: ' ' }, { title: 7 }, { agent: 'x'.repeat(1025) }]) {
      const options = { session: session as SessionDetails };
      await refuses('INVALID_ARGUMENT', () => a.save('one', () => assert.fail('the mutator ran'), options));
    }
    await refuses('INVALID_ARGUMENT', () => a.listSessions({ ownerId: ' ' }));
  });
}

function pages(kit: Kit): void {
  kit.test('pages of any size add up to the list, and the last one has no nextCursor', async ({ a, b }) => {
    const ids = Array.from({ length: 12 }, (_, i) => `turn ${i}`);
    for (const id of ids) await a.save(id, snapshot({ sessionId: 'chat' }));
    for (const id of ids) await a.save(`in ${id}`, snapshot({ sessionId: `session ${id}` }));
    const sessionIds = [...ids.map((id) => `session ${id}`).toReversed(), 'chat'];
    for (const limit of [1, 2, 3, 4, 5, 6, 11, 12, 13, 1000]) {
      const turns = await all(limit, (options) => b.listSnapshots({ ...options, sessionId: 'chat' }));
      equal(
        turns.map((item) => item.snapshotId),
        ids,
        `snapshots in pages of ${limit}`,
      );
      const found = await all(limit, (options) => b.listSessions(options));
      equal(
        found.map((item) => item.sessionId),
        sessionIds,
        `sessions in pages of ${limit}`,
      );
    }
  });

  kit.test('a page has at most 100 items by default', async ({ a }) => {
    for (let i = 0; i < 101; i++) await a.save(`turn ${i}`, snapshot({ sessionId: 'chat' }));
    const first = await a.listSnapshots({ sessionId: 'chat' });
    const { nextCursor: cursor } = first;
    assert.ok(cursor, 'no nextCursor');
    const second = await a.listSnapshots({ sessionId: 'chat', cursor });
    equal([first.items.length, second.items.length, second.nextCursor], [100, 1, undefined], 'the pages');
  });

  kit.test('a save between two pages neither hides nor repeats a snapshot', async ({ a, b }) => {
    for (const id of ['one', 'two', 'three']) await a.save(id, snapshot({ sessionId: 'chat' }));
    const first = await a.listSnapshots({ sessionId: 'chat', limit: 2 });
    await b.save('four', snapshot({ sessionId: 'chat' }));
    await b.save('one', snapshot({ sessionId: 'chat', custom: { rewritten: true } }));
    const rest = await a.listSnapshots({ sessionId: 'chat', cursor: first.nextCursor! });
    equal(
      [...first.items, ...rest.items].map((item) => item.snapshotId),
      ['one', 'two', 'three', 'four'],
      'the list',
    );
  });

  if (kit.capabilities.delete) {
    kit.test('a session that is deleted between two pages hides no other', async ({ a }) => {
      for (const id of ['one', 'two', 'three', 'four']) await a.save(id, snapshot({ sessionId: id }));
      const first = await a.listSessions({ limit: 2 });
      equal(
        first.items.map((item) => item.sessionId),
        ['four', 'three'],
        'the first page',
      );
      await a.deleteSession('three');
      const rest = await a.listSessions({ cursor: first.nextCursor! });
      equal(
        rest.items.map((item) => item.sessionId),
        ['two', 'one'],
        'the rest',
      );
    });
  }

  kit.test('an invalid limit or cursor is refused', async ({ a }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }));
    for (const limit of [0, -1, 1.5, 1001, Number.NaN, '5']) {
      await refuses('INVALID_ARGUMENT', () => a.listSnapshots({ sessionId: 'chat', limit: limit as number }));
      await refuses('INVALID_ARGUMENT', () => a.listSessions({ limit: limit as number }));
    }
    for (const cursor of ['', 'nonsense', '../x', 'W10', 'bnVsbA', 'eyJhIjoxfQ', 7, {}]) {
      await refuses('INVALID_ARGUMENT', () => a.listSnapshots({ sessionId: 'chat', cursor: cursor as string }));
      await refuses('INVALID_ARGUMENT', () => a.listSessions({ cursor: cursor as string }));
    }
  });
}
