import assert from 'node:assert/strict';
import type { SnapshotMutator } from '../../../src/store/contract.ts';
import { equal } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** Adds 1 to `custom.n`. Creates the snapshot if it does not exist. */
const increment: SnapshotMutator = (current) => ({
  ...(current ?? snapshot({ status: 'pending' })),
  state: { custom: { n: ((current?.state?.custom as { n?: number } | undefined)?.n ?? 0) + 1 } },
});

/** Each of several concurrent saves sees the result of the previous one. */
export const atomic: Subject = {
  name: 'atomic saves',
  tests(kit) {
    increments(kit);
    claims(kit);
    siblings(kit);
  },
};

function increments(kit: Kit): void {
  kit.test('atomic update: 50 concurrent increments through one handle give 50', async ({ a }) => {
    await a.save('counter', snapshot({ status: 'pending' }));
    await Promise.all(Array.from({ length: 50 }, () => a.save('counter', increment)));
    equal((await a.mustGet('counter')).state?.custom, { n: 50 }, 'the counter');
  });

  const total = kit.runs(200, 1000);
  kit.test(`atomic update: ${total} concurrent increments through two handles give ${total}`, async ({ a, b }) => {
    await a.save('counter', snapshot({ status: 'pending' }));
    await Promise.all(Array.from({ length: total }, (_, i) => (i % 2 === 0 ? a : b).save('counter', increment)));
    for (const handle of [a, b]) equal((await handle.mustGet('counter')).state?.custom, { n: total }, 'the counter');
  });

  kit.test('atomic update: 20 concurrent first saves of one snapshot make one snapshot of all', async ({ a, b }) => {
    await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? a : b).save('new', increment)));
    equal((await a.mustGet('new')).state?.custom, { n: 20 }, 'the counter');
  });

  kit.test('a mutator that throws among concurrent ones harms only its own save', async ({ a, b }) => {
    const saves = Array.from({ length: 30 }, (_, i) => {
      const fail = (): never => {
        throw new Error('mine');
      };
      return (i % 2 === 0 ? a : b).save('counter', i % 3 === 0 ? fail : increment);
    });
    const results = await Promise.allSettled(saves);
    equal(results.filter((result) => result.status === 'rejected').length, 10, 'refused saves');
    equal((await a.mustGet('counter')).state?.custom, { n: 20 }, 'the counter');
  });
}

function claims(kit: Kit): void {
  const rounds = kit.runs(50, 500);
  kit.test(`only one of two first saves of one id in two sessions succeeds, ${rounds} times`, async ({ a, b }) => {
    for (let i = 0; i < rounds; i++) {
      const claim = (handle: Handle, sessionId: string): Promise<unknown> =>
        handle.save(`claimed ${i}`, snapshot({ sessionId }));
      const [left, right] = await Promise.allSettled([claim(a, 'left'), claim(b, 'right')]);
      const made = [left, right].filter((result) => result.status === 'fulfilled');
      equal(made.length, 1, 'saves that were made');
      const winner = left.status === 'fulfilled' ? 'left' : 'right';
      for (const handle of [a, b]) equal((await handle.mustGet(`claimed ${i}`)).sessionId, winner, 'its session');
    }
  });
}

function siblings(kit: Kit): void {
  kit.test('concurrent saves of different snapshots of one session are all kept', async ({ a, b }) => {
    await a.save('root', snapshot({ sessionId: 'chat' }));
    const ids = Array.from({ length: 40 }, (_, i) => `branch ${i}`);
    const save = (id: string, i: number): Promise<unknown> =>
      (i % 2 === 0 ? a : b).save(id, snapshot({ sessionId: 'chat', parentId: 'root', custom: { i } }));
    await Promise.all(ids.map(save));
    for (const [i, id] of ids.entries()) equal((await b.mustGet(id)).state?.custom, { i }, id);
    const leaf = await a.leafId('chat');
    assert.ok(ids.includes(leaf!), `the leaf is ${leaf}`);
    equal(await b.leafId('chat'), leaf, 'the leaf through the other handle');
    if (!kit.capabilities.list) return;
    const listed = (await b.listSnapshots({ sessionId: 'chat' })).items.map((item) => item.snapshotId);
    equal(listed.toSorted(), ['root', ...ids].toSorted(), 'the listed snapshots');
    equal(listed.at(-1), leaf, 'the one listed last');
  });

  kit.test('an acknowledged save is visible to every handle', async ({ a, b }) => {
    for (let turn = 0; turn < 30; turn++) {
      const [writer, reader] = turn % 2 === 0 ? [a, b] : [b, a];
      const parentId = await writer.leafId('chat');
      await writer.save(`turn ${turn}`, snapshot({ sessionId: 'chat', ...(parentId && { parentId }), messages: turn }));
      equal(await reader.leafId('chat'), `turn ${turn}`, 'the leaf');
      equal((await reader.mustGet(`turn ${turn}`)).parentId, turn === 0 ? undefined : `turn ${turn - 1}`, 'its parent');
    }
  });
}
