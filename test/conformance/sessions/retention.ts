import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { PrunePolicy, SessionSnapshot } from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Stage, Subject } from '../support/kit.ts';
import { snapshot, STATUSES } from '../support/snapshots.ts';
import { ReferenceModel } from '../model/reference-model.ts';
import { forAll } from '../support/for-all.ts';

const HOUR = 3_600_000;

/** Returns the time some hours ago. */
export function hoursAgo(hours: number): string {
  return new Date(Date.now() - hours * HOUR).toISOString();
}

/** Deleting and pruning: removed data is removed completely, and the remaining data does not change. */
export const retention: Subject = {
  name: 'deleting and pruning',
  tests(kit) {
    if (kit.capabilities.delete) deletion(kit);
    else
      kit.test('a store that can’t delete has no such method', async ({ a }) =>
        assert.ok(!('deleteSession' in a.store)),
      );
    if (kit.capabilities.prune) pruning(kit);
    else kit.test('a store that can’t prune has no such method', async ({ a }) => assert.ok(!('prune' in a.store)));
  },
};

function deletion(kit: Kit): void {
  kit.test('a deleted session is removed completely, and no other session changes', async ({ a, b }) => {
    for (const session of ['gone', 'kept']) {
      await a.save(`${session} root`, snapshot({ sessionId: session, messages: 50 }));
      for (const n of [1, 2]) {
        const branch = snapshot({ sessionId: session, parentId: `${session} root`, messages: 51, custom: { n } });
        await b.save(`${session} ${n}`, branch);
      }
    }
    const kept = [await a.byId('kept root'), await a.byId('kept 1'), await a.bySession('kept')];
    equal((await a.deleteSession('gone')).snapshots, 3, 'deleted snapshots');
    for (const handle of [a, b]) {
      for (const id of ['gone root', 'gone 1', 'gone 2']) equal(await handle.byId(id), undefined, id);
      equal(await handle.bySession('gone'), undefined, 'the session');
      equal(
        [await handle.byId('kept root'), await handle.byId('kept 1'), await handle.bySession('kept')],
        kept,
        'the other',
      );
    }
    if (kit.capabilities.list) {
      equal((await b.listSnapshots({ sessionId: 'gone' })).items, [], 'the list');
      equal(
        (await b.listSessions()).items.map((item) => item.sessionId),
        ['kept'],
        'the sessions',
      );
    }
  });

  kit.test('deleting a session that does not exist returns zeros; a deleted id can be used again', async ({ a, b }) => {
    const { snapshots, shards } = await a.deleteSession('nothing');
    equal([snapshots, shards], [0, 0], 'no such session');
    await a.save('one', snapshot({ sessionId: 'chat', status: 'aborted', custom: { n: 1 } }));
    await a.deleteSession('chat');
    equal((await b.deleteSession('chat')).snapshots, 0, 'the second time');
    const again = snapshot({ sessionId: 'another', status: 'pending', custom: { n: 2 } });
    await b.save('one', again);
    equal(await a.bySession('another'), { ...again, snapshotId: 'one' }, 'the new one');
    for (const id of ['', ' ', 7]) await refuses('INVALID_ARGUMENT', () => a.deleteSession(id as string));
  });

  kit.test('a deletion that expects a leaf deletes nothing if the session has another leaf', async ({ a, b }) => {
    if (!kit.capabilities.compareLeaf) return;
    await a.save('one', snapshot({ sessionId: 'chat' }));
    await b.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }));
    for (const expectedLeafId of ['one', 'unknown']) {
      await refuses('ABORTED', () => a.deleteSession('chat', { expectedLeafId }), 'chat');
    }
    equal([await b.leafId('chat'), (await b.byId('one'))?.snapshotId], ['two', 'one'], 'the session');
    equal((await a.deleteSession('chat', { expectedLeafId: 'two' })).snapshots, 2, 'with the leaf it expects');
    await refuses('ABORTED', () => b.deleteSession('chat', { expectedLeafId: 'two' }), 'chat');
    await refuses('INVALID_ARGUMENT', () => a.deleteSession('chat', { expectedLeafId: ' ' }));
  });
}

function pruning(kit: Kit): void {
  kit.test(
    'maxChainLength keeps the newest snapshots of every path; branches keep their shared ancestors',
    async ({ a, b }) => {
      const parents = { r: undefined, s: 'r', t: 's', u: 't', v: 's', w: 'v' };
      for (const [id, parentId] of Object.entries(parents)) {
        await a.save(id, snapshot({ sessionId: 'chat', messages: 40, ...(parentId && { parentId }) }));
      }
      const before = await Promise.all(['u', 't', 'w', 'v'].map((id) => a.byId(id)));
      equal((await b.prune({ maxChainLength: 2 })).snapshots, 2, 'pruned snapshots');
      equal(await Promise.all(['u', 't', 'w', 'v'].map((id) => b.byId(id))), before, 'what is kept');
      equal([await a.byId('r'), await a.byId('s')], [undefined, undefined], 'what is pruned');
      equal(await a.leafId('chat'), 'w', 'the leaf');
    },
  );

  kit.test('maxAgeMs removes old snapshots, but no leaf and no running snapshot', async ({ a }) => {
    const ages = { old: 9, running: 8, older: 7, leaf: 6 };
    const ids = Object.keys(ages);
    for (const [i, [id, age]] of Object.entries(ages).entries()) {
      const status = id === 'running' ? 'pending' : 'completed';
      const parentId = i === 0 ? {} : { parentId: ids[i - 1]! };
      await a.save(id, snapshot({ sessionId: 'chat', createdAt: hoursAgo(age), status, ...parentId }));
    }
    // `older` also stays, because without it `running` would be a leaf.
    equal((await a.prune({ maxAgeMs: 3 * HOUR })).snapshots, 1, 'pruned snapshots');
    equal(await a.byId('old'), undefined, 'the old one');
    for (const id of ids.slice(1)) await a.mustGet(id);
  });

  kit.test(
    'a leaf that is not completed keeps its nearest completed ancestor, and the snapshots between',
    async ({ a, b }) => {
      for (const status of STATUSES.filter((one) => one !== 'completed')) {
        for (const [rule, policy] of Object.entries({ age: { maxAgeMs: HOUR }, chain: { maxChainLength: 1 } })) {
          const session = `${status} ${rule}`;
          const turns = [
            ['begun', 'completed'],
            ['last', 'completed'],
            ['stopped', 'aborted'],
            ['leaf', status],
          ] as const;
          for (const [i, [id, of]] of turns.entries()) {
            const parent = i === 0 ? {} : { parentId: `${session} ${turns[i - 1]![0]}` };
            const input = snapshot({ sessionId: session, createdAt: hoursAgo(9), status: of, messages: 40, ...parent });
            await a.save(`${session} ${id}`, input);
          }
          const kept = ['last', 'stopped', 'leaf'].map((id) => `${session} ${id}`);
          const before = await Promise.all(kept.map((id) => a.mustGet(id)));
          equal((await b.prune(policy, { sessionId: session })).snapshots, 1, `pruned snapshots, ${session}`);
          equal(await Promise.all(kept.map((id) => b.byId(id))), before, `what is kept, ${session}`);
          equal([await a.byId(`${session} begun`), await a.leafId(session)], [undefined, kept[2]], session);
        }
      }
    },
  );

  kit.test(
    'a session without a completed turn keeps the path of its latest turn, so that it can start again',
    async ({ a }) => {
      await a.save('first', snapshot({ sessionId: 'chat', status: 'aborted' }));
      await a.save('second', snapshot({ sessionId: 'chat', status: 'failed', parentId: 'first' }));
      equal((await a.prune({ maxChainLength: 1, maxAgeMs: 0 })).snapshots, 0, 'pruned snapshots');
      await a.save('third', snapshot({ sessionId: 'chat', parentId: 'second' }));
      equal((await a.prune({ maxChainLength: 1 })).snapshots, 2, 'pruned snapshots once a turn has completed');
      equal(await a.leafId('chat'), 'third', 'the leaf');
    },
  );

  kit.test('idleMs removes whole sessions, but no running session', async ({ a, b }) => {
    for (const [id, age] of Object.entries({ idle: 5, active: 1, running: 9 })) {
      const status = id === 'running' ? 'pending' : 'completed';
      await a.save(id, snapshot({ sessionId: id, createdAt: hoursAgo(20), updatedAt: hoursAgo(age), status }));
    }
    const { sessions, snapshots } = await a.prune({ idleMs: 3 * HOUR });
    equal([sessions, snapshots], [1, 1], 'what went');
    equal(await b.bySession('idle'), undefined, 'the idle session');
    for (const id of ['active', 'running']) equal(await b.leafId(id), id, id);
  });

  kit.test('with sessionId, only this session is pruned', async ({ a, b }) => {
    for (const session of ['x', 'y']) {
      for (const n of [0, 1, 2]) {
        const parent = n === 0 ? {} : { parentId: `${session} ${n - 1}` };
        await a.save(`${session} ${n}`, snapshot({ sessionId: session, createdAt: hoursAgo(9), ...parent }));
      }
    }
    const policy = { maxChainLength: 1 };
    equal((await b.prune(policy, { sessionId: 'x', dryRun: true })).snapshots, 2, 'the dry run');
    equal((await b.prune(policy, { sessionId: 'x' })).snapshots, 2, 'the run');
    equal([await a.byId('x 0'), await a.byId('x 1'), await a.leafId('x')], [undefined, undefined, 'x 2'], 'x');
    equal((await a.byId('y 0'))?.snapshotId, 'y 0', 'y');
    const { sessions, snapshots } = await a.prune({ idleMs: HOUR }, { sessionId: 'y' });
    equal([sessions, snapshots, await b.leafId('y'), await b.leafId('x')], [1, 3, undefined, 'x 2'], 'a whole one');
    equal((await a.prune(policy, { sessionId: 'unknown' })).snapshots, 0, 'one that is not there');
    await refuses('INVALID_ARGUMENT', () => a.prune(policy, { sessionId: ' ' }));
  });

  kit.test('an invalid policy is refused, and removes nothing', async ({ a }) => {
    await a.save('one', snapshot({ sessionId: 'chat', createdAt: hoursAgo(9) }));
    const bad: unknown[] = [
      {},
      { maxAge: 1 },
      { maxAgeMs: -1 },
      { idleMs: Number.NaN },
      { maxChainLength: 0 },
      undefined,
    ];
    bad.push({ maxChainLength: 1.5 }, { idleMs: 'soon' }, { maxAgeMs: 0, unknown: 1 }, { idleMs: Infinity });
    for (const policy of bad) await refuses('INVALID_ARGUMENT', () => a.prune(policy as PrunePolicy));
    equal(await a.leafId('chat'), 'one', 'the leaf');
  });

  const random = kit.property(60, 2000);
  const name = `of ${random.numRuns} random sessions a dry run reports what pruning does, and the remaining data does not change (seed ${random.seed})`;
  kit.test(name, async () => {
    await forAll(
      fc.tuple(forest, policies),
      ([nodes, policy]) => kit.onStage((stage) => prunes(kit, stage, nodes, policy)),
      random,
    );
  });
}

const forest = fc.array(
  fc.record({
    session: fc.constantFrom('x', 'x', 'y'),
    parent: fc.option(fc.nat(20), { nil: undefined, freq: 6 }),
    status: fc.constantFrom('completed', 'completed', 'completed', ...STATUSES),
    age: fc.integer({ min: 0, max: 20 }),
  }),
  { minLength: 1, maxLength: 14 },
);

const hours = fc.option(
  fc.integer({ min: 0, max: 20 }).map((n) => (n + 0.5) * HOUR),
  { nil: undefined },
);

export const policies: fc.Arbitrary<PrunePolicy> = fc
  .record({
    maxAgeMs: hours,
    idleMs: hours,
    maxChainLength: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  })
  .filter((policy) => Object.values(policy).some((member) => member !== undefined));

type Forest = typeof forest extends fc.Arbitrary<infer T> ? T : never;

async function prunes(kit: Kit, { a, b }: Stage, nodes: Forest, policy: PrunePolicy): Promise<void> {
  const model = new ReferenceModel();
  for (const [i, { session, parent, status, age }] of nodes.entries()) {
    const earlier = nodes.slice(0, i).flatMap((node, n) => (node.session === session ? [`turn ${n}`] : []));
    const parentId =
      parent === undefined || earlier.length === 0 ? {} : { parentId: earlier[parent % earlier.length]! };
    const input = snapshot({ sessionId: session, createdAt: hoursAgo(age), status, messages: i, ...parentId });
    model.save(`turn ${i}`, () => input);
    await (i % 2 === 0 ? a : b).save(`turn ${i}`, input);
  }
  const ids = nodes.map((_, i) => `turn ${i}`);
  await agree(kit, b, model, ids, 'before');
  const counts = { ...model.prune(policy, Date.now(), true), shards: 0 };
  equal({ ...(await b.prune(policy, { dryRun: true })), shards: 0 }, { ...counts, dryRun: true }, 'the dry run');
  await agree(kit, a, model, ids, 'after a dry run');
  model.prune(policy, Date.now(), false);
  equal({ ...(await a.prune(policy)), shards: 0 }, { ...counts, dryRun: false }, 'the run');
  for (const handle of [a, b]) await agree(kit, handle, model, ids, 'after pruning');
}

/** Compares every snapshot, both sessions and their lists with the model. */
async function agree(
  kit: Kit,
  handle: Handle,
  model: ReferenceModel,
  ids: readonly string[],
  when: string,
): Promise<void> {
  const read = async (id: string): Promise<SessionSnapshot | undefined> => handle.byId(id);
  for (const id of ids) equal(await read(id), model.get(id), `${id} ${when}`);
  for (const session of ['x', 'y']) {
    equal(await handle.bySession(session), model.leaf(session), `the leaf of ${session} ${when}`);
    if (!kit.capabilities.list) continue;
    equal(
      (await handle.listSnapshots({ sessionId: session })).items,
      model.list(session),
      `the list of ${session} ${when}`,
    );
  }
}
