import assert from 'node:assert/strict';
import type { SessionSnapshotInput, SnapshotLookup } from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** Lookups, the ways to name a snapshot, the results of a mutator, and the errors. */
export const lookups: Subject = {
  name: 'lookups and errors',
  usesNames: true,
  tests(kit) {
    finding(kit);
    naming(kit);
    mutators(kit);
    metadata(kit);
  },
};

function finding(kit: Kit): void {
  kit.test('a snapshot is found by its id and as its session’s leaf, through both handles', async ({ a, b }) => {
    const saved = snapshot({ sessionId: 'chat', custom: { n: 1 }, messages: 3 });
    equal(await a.save('one', saved), 'one', 'the answer of the save');
    for (const handle of [a, b]) {
      equal(await handle.byId('one'), { ...saved, snapshotId: 'one' }, 'by id');
      equal(await handle.bySession('chat'), { ...saved, snapshotId: 'one' }, 'by session');
    }
  });

  kit.test('a lookup of missing data returns undefined and creates nothing', async ({ a, b }) => {
    equal(await a.byId('nothing'), undefined, 'by id');
    equal(await a.bySession('nothing'), undefined, 'by session');
    equal(await b.byId('nothing'), undefined, 'by id again');
    if (kit.capabilities.list) equal((await a.listSessions()).items, [], 'the sessions');
  });

  kit.test(
    'a session that only the state names is found; a snapshot without a session is found by id',
    async ({ a }) => {
      const { sessionId: _, ...unstamped } = snapshot({ sessionId: 'by-state' });
      await a.save('stateful', unstamped);
      await a.save('alone', snapshot());
      equal(await a.leafId('by-state'), 'stateful', 'the leaf');
      equal((await a.mustGet('alone')).snapshotId, 'alone', 'by id');
    },
  );

  kit.test('a lookup needs exactly one of snapshotId and sessionId, and a valid id', async ({ a }) => {
    const bad: unknown[] = [
      {},
      { snapshotId: 'x', sessionId: 'y' },
      ...['', ' ', '\n\t', '\u00A0', 'x'.repeat(1025), 7, null, {}, ['x']].flatMap((id) => [
        { snapshotId: id },
        { sessionId: id },
      ]),
    ];
    for (const lookup of bad) await refuses('INVALID_ARGUMENT', () => a.get(lookup as SnapshotLookup));
  });
}

function naming(kit: Kit): void {
  kit.test('a save without an id gets a new one each time', async ({ a, b }) => {
    const ids = [];
    for (const handle of [a, b, a, b]) ids.push(await handle.save(undefined, snapshot({ sessionId: 'chat' })));
    assert.ok(
      ids.every((id) => typeof id === 'string' && id !== ''),
      'the answers are no ids',
    );
    equal(new Set(ids).size, ids.length, 'different ids');
    for (const id of ids) equal((await a.mustGet(id!)).snapshotId, id, 'the id in the snapshot');
  });

  kit.test('an id in the mutator’s result is used only if no id is given', async ({ a }) => {
    equal(await a.save(undefined, { ...snapshot(), snapshotId: 'own' }), 'own', 'no id given');
    equal(await a.save('given', { ...snapshot(), snapshotId: 'other' }), 'given', 'an id given');
    equal((await a.mustGet('given')).snapshotId, 'given', 'the id in the snapshot');
    equal(await a.byId('other'), undefined, 'the id that the answer named');
  });

  kit.test('a result with the id of an existing snapshot is a rewrite, with the same rules', async ({ a }) => {
    await a.save('old', snapshot({ status: 'aborted' }));
    await refuses('FAILED_PRECONDITION', () => a.save(undefined, { ...snapshot(), snapshotId: 'old' }), 'old');
    equal((await a.mustGet('old')).status, 'aborted', 'the status');
  });

  kit.test('an invalid id is refused before the mutator runs', async ({ a }) => {
    for (const id of ['', ' ', 'x'.repeat(1025), 7, null]) {
      const save = (): unknown => a.save(id as string, () => assert.fail('the mutator ran'));
      await refuses('INVALID_ARGUMENT', save);
    }
  });
}

function mutators(kit: Kit): void {
  kit.test('a mutator gets undefined for a new snapshot, else the current snapshot', async ({ a, b }) => {
    const seen: unknown[] = [];
    const saved = snapshot({ sessionId: 'chat', custom: { n: 1 } });
    await a.save('one', (current) => (seen.push(current), saved));
    await b.save('one', (current) => (seen.push(current), { ...saved, state: { custom: { n: 2 } } }));
    equal(seen[0], undefined, 'the first time');
    equal(seen.at(-1), { ...saved, snapshotId: 'one' }, 'the second time');
    equal((await a.mustGet('one')).state, { custom: { n: 2 } }, 'the rewritten state');
  });

  kit.test('null skips the write', async ({ a }) => {
    equal(await a.save('one', () => null), null, 'the answer');
    equal(await a.byId('one'), undefined, 'nothing was written');
    await a.save('one', snapshot({ custom: { n: 1 } }));
    equal(await a.save('one', () => null), null, 'the answer');
    equal((await a.mustGet('one')).state?.custom, { n: 1 }, 'what was there');
    equal(await a.save(undefined, () => null), null, 'the answer without an id');
  });

  kit.test('an error of the mutator is thrown, and nothing is written', async ({ a }) => {
    await a.save('there', snapshot({ sessionId: 'chat' }));
    const mine = new Error('mine');
    const fail = (): never => {
      throw mine;
    };
    for (const id of ['new', 'there', undefined]) await assert.rejects(a.save(id, fail), (error) => error === mine);
    equal(await a.byId('new'), undefined, 'the new snapshot');
    equal(await a.byId('there'), { ...snapshot({ sessionId: 'chat' }), snapshotId: 'there' }, 'the old snapshot');
    equal(await a.leafId('chat'), 'there', 'the leaf');
  });

  kit.test('a result that is not a snapshot is refused, and nothing is written', async ({ a }) => {
    const good = snapshot({ sessionId: 'chat' });
    const bad: unknown[] = [undefined, 'text', 7, true, [good], Promise.resolve(good), new Map()];
    bad.push(
      { ...good, status: 'done' },
      { ...good, createdAt: 7 },
      { ...good, state: [] },
      { ...good, state: 'text' },
    );
    for (const answer of bad) {
      await refuses('INVALID_ARGUMENT', () => a.save('bad', () => answer as SessionSnapshotInput), 'bad');
    }
    for (const field of ['sessionId', 'parentId']) {
      for (const id of ['', ' ', 'x'.repeat(1025), 7, null]) {
        const answer = { ...good, [field]: id } as SessionSnapshotInput;
        await refuses('INVALID_ARGUMENT', () => a.save('bad', answer), field);
      }
    }
    equal(await a.byId('bad'), undefined, 'the snapshot');
    equal(await a.bySession('chat'), undefined, 'the session');
  });
}

function metadata(kit: Kit): void {
  kit.either(
    'metadata',
    {
      name: 'metadata is the snapshot without its state, by either id',
      body: async ({ a, b }) => {
        const { state, ...fields } = snapshot({
          sessionId: 'chat',
          messages: 2,
          updatedAt: '2026-02-01T00:00:00.000Z',
        });
        await a.save('one', Object.assign({ ...fields, state }, { extra: { kept: true } }));
        const expected = { ...fields, extra: { kept: true }, snapshotId: 'one' };
        for (const lookup of [{ snapshotId: 'one' }, { sessionId: 'chat' }]) {
          equal(await a.metadata(lookup), expected, 'the metadata');
          equal(await b.metadata(lookup), expected, 'the metadata through the other handle');
        }
        equal(await a.metadata({ snapshotId: 'nothing' }), undefined, 'no such snapshot');
        equal(await a.metadata({ sessionId: 'nothing' }), undefined, 'no such session');
        await refuses('INVALID_ARGUMENT', () => a.metadata({}));
        await refuses('INVALID_ARGUMENT', () => a.metadata({ snapshotId: '' }));
      },
    },
    {
      name: 'a store without metadata has no such method',
      body: async ({ a }) => assert.ok(!('getSnapshotMetadata' in a.store)),
    },
  );
}
