import assert from 'node:assert/strict';
import { equal } from '../support/assertions.ts';
import { ADA, draft, isoOf, put, source, START } from './support/drafts.ts';
import type { MemorySubject } from './support/kit.ts';

/** Reads return the saved memories and their earlier revisions. */
export const memories: MemorySubject = {
  name: 'memories',
  tests(kit) {
    kit.test('a saved memory is returned unchanged, with its scope, revision and times', async ({ a, b }) => {
      equal(await a.get(ADA, ['seat']), [], 'before the first commit');
      const given = draft('seat', {
        data: { seat: 'window', nested: [[-0, null, ['\u0000', '\uD800', '😀']], { __proto__: 1, 'a.b/~': {} }] },
        schemaId: 'seat@1',
        topics: ['travel', ''],
        validTo: isoOf(START + 1e12),
        expiresAt: isoOf(START + 2e12),
        approvedAt: isoOf(START),
        lastUsedAt: isoOf(START),
        successes: { times: 3 },
        dropped: undefined,
      });
      await a.commit(ADA, [{ op: 'put', memory: given }], { now: START });
      const { dropped: _, ...saved } = given;
      const at = isoOf(START);
      for (const store of [a, b]) {
        const expected = [{ ...saved, scope: ADA, revision: 1, createdAt: at, updatedAt: at }];
        equal(await store.get(ADA, ['seat']), expected, 'the memory');
      }
      equal((await b.get(ADA, ['seat']))[0]?.data, given.data, 'its data');
    });

    kit.test('get returns memories in the order of the ids, and skips missing ones', async ({ a, b }) => {
      await a.commit(
        ADA,
        ['x', 'y', 'z'].map((id) => put(id)),
      );
      const found = await b.get(ADA, ['z', 'nothing', 'x']);
      equal(
        found.map(({ id }) => id),
        ['z', 'x'],
        'the ids',
      );
    });

    kit.test(
      'each put raises the memory’s revision, keeps createdAt, and does not change earlier revisions',
      async ({ next }) => {
        const first = await next().commit(ADA, [put('seat', { text: 'window' })], { now: START });
        await next().commit(ADA, [put('seat', { text: 'aisle' }), put('meal')], { now: START + 1000 });
        const [current] = await next().get(ADA, ['seat']);
        await next().commit(
          ADA,
          [{ op: 'put', memory: { ...current!, confidence: 0.9, revision: 77, createdAt: 'x' } }],
          {
            now: START + 2000,
          },
        );
        equal(first, { revision: 1 }, 'the first answer');
        const revisions = await next().revisions(ADA, 'seat');
        equal(
          revisions.map((one) => [one.text, one.revision, one.confidence, one.createdAt, one.updatedAt]),
          [
            ['window', 1, 0.5, isoOf(START), isoOf(START)],
            ['aisle', 2, 0.5, isoOf(START), isoOf(START + 1000)],
            ['aisle', 3, 0.9, isoOf(START), isoOf(START + 2000)],
          ],
          'the revisions',
        );
        equal(await next().get(ADA, ['seat']), revisions.slice(-1), 'the memory');
        equal(await next().revisions(ADA, 'nothing'), [], 'the revisions of nothing');
      },
    );

    kit.test('bySource finds the memories that have the source now or had it before', async ({ next }) => {
      const both = [source('chat-1'), source('chat-2')];
      await next().commit(ADA, [
        put('one', { sources: both }),
        put('two'),
        put('three', { sources: [source('chat-3')] }),
      ]);
      await next().commit(ADA, [put('one', { sources: [source('chat-3')], validTo: isoOf(START + 1) })]);
      await next().commit(ADA, [put('one', { sources: [source('chat-4')], validTo: isoOf(START + 1) })]);
      for (const [id, expected] of Object.entries({
        'chat-1': ['one', 'two'],
        'chat-2': ['one'],
        'chat-3': ['one', 'three'],
        'chat-4': ['one'],
        'chat-': [],
      })) {
        const found = await next().bySource(ADA, id);
        equal(found.map((memory) => memory.id).toSorted(), expected, `the memories of ${id}`);
        assert.ok(
          found.every((memory) => memory.id !== 'one' || memory.revision === 3),
          'as they are now',
        );
      }
    });

    kit.test('the store shares no object with its callers', async ({ a }) => {
      const given = draft('seat', { data: { seat: ['window'] } });
      const value = { list: [1] };
      await a.commit(ADA, [
        { op: 'put', memory: given },
        { op: 'note', kind: 'profile', key: 'it', value },
      ]);
      const before = { memory: await a.get(ADA, ['seat']), notes: await a.notes(ADA, 'profile') };
      const expected = structuredClone(before);
      const job = { id: 'job', scope: ADA, input: { list: [1] }, sourceId: 'chat-1' };
      await a.addJob(job, { maxJobs: 9, now: START });
      const spoil = (thing: unknown): void => {
        if (typeof thing !== 'object' || thing === null) return;
        for (const key of Object.keys(thing)) {
          spoil((thing as Record<string, unknown>)[key]);
          try {
            (thing as Record<string, unknown>)[key] = 'spoilt';
          } catch {
            // The value is frozen.
          }
        }
      };
      for (const thing of [given, value, job.input, before, await a.query(ADA), await a.revisions(ADA, 'seat')])
        spoil(thing);
      for (const thing of [await a.listJobs(), await a.changes(ADA, { since: 0 }), await a.bySource(ADA, 'chat-1')])
        spoil(thing);
      equal(await a.get(ADA, ['seat']), expected.memory, 'the memory');
      equal(await a.notes(ADA, 'profile'), expected.notes, 'the note');
      equal((await a.revisions(ADA, 'seat'))[0], expected.memory[0], 'its revision');
      equal((await a.query(ADA)).items[0]?.memory, expected.memory[0], 'what a query finds');
      equal((await a.listJobs()).items[0]?.input, { list: [1] }, 'the job');
    });

    kit.test('committed data outlives the store object', async ({ a, b, ...stores }) => {
      if (!stores.reopen) return;
      await a.commit(ADA, [put('seat', { text: 'window' }), { op: 'note', kind: 'summary', key: 'it', value: 's' }], {
        now: START,
      });
      await b.commit(ADA, [put('seat', { text: 'aisle' }, kit.capabilities.vectorDimensions > 0 ? [1, 0] : undefined)]);
      await a.addJob({ id: 'job', scope: ADA, input: 1, sourceId: 'chat-1' }, { maxJobs: 9, now: START });
      await b.claimJob({ owner: 'w', leaseMs: 1000, now: START });
      const read = async (store: typeof a): Promise<unknown> => [
        await store.get(ADA, ['seat']),
        await store.revisions(ADA, 'seat'),
        await store.changes(ADA, { since: 0 }),
        await store.notes(ADA, 'summary'),
        await store.listJobs(),
        await store.listScopes(),
        await store.query(ADA, { asOf: isoOf(START) }),
        kit.capabilities.vectorDimensions > 0 &&
          (await store.query(ADA, { vector: [1, 0] })).items.map((hit) => hit.memory),
      ];
      const before = await read(a);
      await a.close();
      await b.close();
      const again = await stores.reopen();
      equal(await read(again), before, 'what is read again');
      await again.close();
    });
  },
};
