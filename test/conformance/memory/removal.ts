import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { Random } from '../../support/random.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { MemoryOperation, MemoryStore } from '../../../src/store/memory/contract.ts';
import { ADA, BOB, isoOf, CAROL, note, put, source, START } from './support/drafts.ts';
import type { MemoryStage, MemorySubject } from './support/kit.ts';

function partsOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}

/** Asserts that the bytes of the backend contain no removed text. */
async function assertGone(stage: MemoryStage, texts: readonly string[]): Promise<void> {
  const bytes = await stage.dump?.();
  for (const text of texts) {
    const encoded = [text, Buffer.from(text).toString('base64').slice(0, -4), Buffer.from(text).toString('hex')];
    assert.ok(!encoded.some((one) => bytes?.includes(one)), `${text} is still on the medium`);
  }
}

async function fill(stage: MemoryStage, vector: readonly number[] | undefined): Promise<void> {
  const { next } = stage;
  await next().commit(
    ADA,
    [
      put('seat', { text: 'CANARY-first', sources: [source('CANARY-source', 'CANARY-said')] }, vector),
      put('meal', { text: 'KEPT-meal' }, vector),
      note('index/words', 'CANARY-key', 'CANARY-index'),
      note('profile', 'it', 'KEPT-profile'),
    ],
    { now: START },
  );
  await next().commit(ADA, [put('seat', { text: 'CANARY-second', validTo: isoOf(START) })]);
}

/** Counts the memories of {@link fillMany} that each reading method returns. */
async function countAll(
  store: MemoryStore,
  ids: readonly string[],
  vector: readonly number[] | undefined,
): Promise<Record<string, number>> {
  const filter = { includeInvalid: true };
  const [get, last, past, near, revisions, bySource, changes] = await Promise.all([
    store.get(ADA, ids),
    store.query(ADA, { filter }),
    store.query(ADA, { filter, asOf: isoOf(START) }),
    vector ? store.query(ADA, { filter, vector }) : { items: [] },
    store.revisions(ADA, ids[0]!),
    store.bySource(ADA, 'before'),
    store.changes(ADA, { since: 0 }),
  ]);
  return {
    get: get.length,
    last: last.items.length,
    past: past.items.length,
    near: near.items.length,
    revisions: revisions.length,
    bySource: bySource.length,
    changes: changes.changed.length,
  };
}

/** Puts each memory twice. The first versions have the source `before`. */
async function fillMany(
  { next }: MemoryStage,
  ids: readonly string[],
  vector: readonly number[] | undefined,
): Promise<void> {
  await next().commit(
    ADA,
    ids.map((id) => put(id, { sources: [source('before')] }, vector)),
    { now: START },
  );
  await next().commit(
    ADA,
    ids.map((id) => put(id, { confidence: 1 }, vector)),
    { now: START + 1000 },
  );
}

/** Removed data leaves no trace. */
export const removal: MemorySubject = {
  name: 'removal',
  tests(kit) {
    const vector = kit.capabilities.vectorDimensions > 0 ? [1, 0] : undefined;

    kit.test('a removed memory leaves no revision, no vector and no byte', async (stage) => {
      const { next } = stage;
      await fill(stage, vector);
      await next().commit(ADA, [{ op: 'remove', id: 'seat' }]);
      for (const store of [stage.a, stage.b]) {
        equal(await store.get(ADA, ['seat']), [], 'the memory');
        equal(await store.revisions(ADA, 'seat'), [], 'its revisions');
        equal(await store.bySource(ADA, 'CANARY-source'), [], 'the memories of its source');
        const asOf = await store.query(ADA, { asOf: isoOf(START + 1), filter: { includeInvalid: true } });
        equal(
          asOf.items.map(({ memory }) => memory.text),
          ['KEPT-meal'],
          'the past',
        );
        equal((await store.notes(ADA, 'index/words')).notes, [], 'derived notes');
        equal((await store.notes(ADA, 'profile')).notes.length, 1, 'other notes');
        if (vector)
          equal(
            (await store.query(ADA, { vector })).items.map(({ memory }) => memory.id),
            ['meal'],
            'what is near',
          );
      }
      await assertGone(stage, ['CANARY']);
      await next().commit(ADA, [put('seat', { text: 'new' })], { now: START + 5000 });
      const [again] = await next().get(ADA, ['seat']);
      equal([again?.revision, again?.createdAt], [1, isoOf(START + 5000)], 'a new memory with the same id');
      equal((await next().revisions(ADA, 'seat')).length, 1, 'its revisions');
      if (vector) equal((await next().query(ADA, { vector })).items.length, 1, 'and no vector');
    });

    kit.test('a memory that one commit removes and puts restarts at revision 1', async (stage) => {
      const { next } = stage;
      await fill(stage, vector);
      const before = await next().revision(ADA);
      const anew = put('seat', { text: 'KEPT-seat', sources: [source('other')] });
      await next().commit(ADA, [anew, { op: 'remove', id: 'seat' }], { now: START + 5000 });
      for (const store of [stage.a, stage.b]) {
        const [memory, ...more] = await store.revisions(ADA, 'seat');
        equal([memory?.text, memory?.revision, memory?.createdAt], ['KEPT-seat', 1, isoOf(START + 5000)], 'the memory');
        equal(more, [], 'more revisions');
        equal(await store.get(ADA, ['seat']), [memory], 'what is read');
        equal(await store.bySource(ADA, 'CANARY-source'), [], 'the memories of its source');
        equal((await store.changes(ADA, { since: before })).isReset, true, 'the changes');
        equal((await store.notes(ADA, 'index/words')).notes, [], 'derived notes');
        if (vector)
          equal(
            (await store.query(ADA, { vector })).items.map(({ memory: one }) => one.id),
            ['meal'],
            'what is near',
          );
      }
      await assertGone(stage, ['CANARY']);
    });

    kit.test('a memory with many revisions is removed with all of them', async (stage) => {
      const { next } = stage;
      for (let i = 0; i < 12; i++) await next().commit(ADA, [put('seat', { text: `CANARY-${i}` })]);
      await next().commit(ADA, [{ op: 'remove', id: 'seat' }]);
      equal(await next().revisions(ADA, 'seat'), [], 'the revisions');
      await assertGone(stage, ['CANARY']);
    });

    kit.test(`memories that are removed from a large scope leave no byte (seed ${kit.seed})`, async (stage) => {
      const { next } = stage;
      const random = new Random(kit.seed);
      const ids = Array.from({ length: 120 }, (_, i) => `m${i}`);
      const canaryOf = (id: string): string => `CANARY-${id}-`;
      const putOf = (id: string): MemoryOperation =>
        put(id, { text: canaryOf(id).repeat(1 + random.below(150)), sources: [source(id, canaryOf(id))] });
      for (const some of [...partsOf(ids, 30), ...partsOf(random.shuffled(ids), 30)])
        await next().commit(ADA, some.map(putOf));
      const gone: string[] = [];
      for (const some of partsOf(random.shuffled(ids), 20)) {
        await next().commit(
          ADA,
          some.map((id) => ({ op: 'remove', id })),
        );
        gone.push(...some.map(canaryOf));
        await assertGone(stage, gone);
      }
      equal((await next().query(ADA, { filter: { includeInvalid: true } })).items, [], 'what is left');
    });

    kit.test('a note that is replaced or removed leaves no byte', async (stage) => {
      const { next } = stage;
      await next().commit(ADA, [
        note('profile', 'CANARY-key', 'CANARY-1'),
        note('profile', 'b', 'CANARY-2'),
        note('index', 'c', 'CANARY-3'),
      ]);
      await next().commit(ADA, [
        note('profile', 'CANARY-key', undefined),
        note('profile', 'b', 'new'),
        note('index', 'c', 1),
      ]);
      await assertGone(stage, ['CANARY']);
    });

    kit.test('a job that is done, or removed, leaves no byte', async (stage) => {
      const { next } = stage;
      const job = { id: 'CANARY-1', scope: ADA, input: 'CANARY-input', sourceId: 'CANARY-source' };
      await next().addJob(job, { maxJobs: 9, now: START });
      await next().claimJob({ owner: 'w', leaseMs: 1000, now: START });
      await next().commit(ADA, [put('x')], { job: { id: job.id, owner: 'w' } });
      await assertGone(stage, ['CANARY']);
      await next().addJob(job, { maxJobs: 9, now: START });
      await next().changeJob(job.id, { owner: undefined, to: 'remove' });
      await assertGone(stage, ['CANARY']);
    });

    kit.test('an erased scope is empty, the counts are returned, and its revision rises', async (stage) => {
      const { next } = stage;
      await fill(stage, vector);
      await next().commit(BOB, [put('seat', { text: 'KEPT-bob' })]);
      for (const [id, scope] of [
        ['CANARY-j1', ADA],
        ['CANARY-j2', ADA],
        ['j3', BOB],
      ] as const) {
        await next().addJob({ id, scope, input: 'x', sourceId: 's' }, { maxJobs: 9, now: START });
      }
      await next().claimJob({ owner: 'w', leaseMs: 1e12, scope: ADA, now: START });
      await next().changeJob('CANARY-j2', { owner: undefined, to: 'dead' });
      const before = await next().revision(ADA);
      equal(await next().erase(ADA), { memories: 2, revisions: 1, notes: 2, jobs: 2 }, 'the counts');
      const revision = await next().revision(ADA);
      assert.ok(revision > before, `the revision ${revision} after ${before}`);
      for (const store of [stage.a, stage.b]) {
        const read = [
          await store.get(ADA, ['seat', 'meal']),
          (await store.query(ADA)).items,
          await store.revisions(ADA, 'meal'),
          (await store.notes(ADA, 'profile')).notes,
        ];
        equal(read, [[], [], [], []], 'what is read');
        equal(await store.changes(ADA, { since: before }), { revision, changed: [], isReset: true }, 'the changes');
        equal((await store.listScopes()).items, [BOB], 'the scopes');
        equal(
          (await store.listJobs()).items.map(({ id }) => id),
          ['j3'],
          'the jobs',
        );
      }
      await assertGone(stage, ['CANARY', 'KEPT-meal', 'KEPT-profile']);
      await refuses('ABORTED', () => next().commit(ADA, [put('x')], { expectedRevision: before }));
      await refuses('ABORTED', () => next().commit(ADA, [put('x')], { job: { id: 'CANARY-j1', owner: 'w' } }));
      equal(await next().erase(ADA), { memories: 0, revisions: 0, notes: 0, jobs: 0 }, 'once more');
      await next().commit(ADA, [put('seat')]);
      equal((await next().get(ADA, ['seat']))[0]?.revision, 1, 'a new memory');
      equal((await next().get(BOB, ['seat']))[0]?.text, 'KEPT-bob', 'the other scope');
    });

    kit.test('a scope that has only a job is erased with it', async (stage) => {
      const { next } = stage;
      await next().addJob({ id: 'CANARY-j', scope: CAROL, input: 'CANARY', sourceId: 's' }, { maxJobs: 9 });
      equal((await next().listScopes()).items, [CAROL], 'the scopes before');
      equal(await next().erase(CAROL), { memories: 0, revisions: 0, notes: 0, jobs: 1 }, 'the counts');
      equal((await next().listJobs()).items, [], 'the jobs');
      equal((await next().listScopes()).items, [], 'the scopes');
      await assertGone(stage, ['CANARY']);
    });

    kit.test(
      'a source is found by its exact id, also for memories that have expired or are not valid',
      async ({ next }) => {
        await next().commit(ADA, [
          put('expired', { sources: [source('Chat')], expiresAt: isoOf(START) }),
          put('replaced', { sources: [source('Chat')], validTo: isoOf(START) }),
          put('other', { sources: [source('chat')] }),
          put('longer', { sources: [source('Chat ')] }),
        ]);
        const idsOf = async (id: string): Promise<string[]> =>
          (await next().bySource(ADA, id)).map((memory) => memory.id).toSorted();
        equal(await idsOf('Chat'), ['expired', 'replaced'], 'those of Chat');
        equal(await idsOf('chat'), ['other'], 'those of chat');
        equal(await idsOf('CHAT'), [], 'those of CHAT');
      },
    );

    kit.test(
      'from the revision of an erasure on, no method reads erased data, even while the erasure runs',
      async (stage) => {
        const ids = Array.from({ length: 30 }, (_, i) => `m${i}`);
        const all = { get: 30, last: 30, past: 30, near: vector ? 30 : 0, revisions: 2, bySource: 30, changes: 30 };
        const none = Object.fromEntries(Object.keys(all).map((method) => [method, 0]));
        for (let i = 0; i < kit.runs(3, 20, 2); i++) {
          await fillMany(stage, ids, vector);
          const [reader, eraser] = i % 2 === 0 ? [stage.a, stage.b] : [stage.b, stage.a];
          equal(await countAll(reader, ids, vector), all, 'before');
          const before = await reader.revision(ADA);
          const erasure = { isRunning: true };
          const erasing = eraser.erase(ADA).finally(() => {
            erasure.isRunning = false;
          });
          const reading = async (): Promise<void> => {
            for (; erasure.isRunning; await setImmediate()) {
              // Reads the revision first, so that the reads below begin at this revision or later.
              const revision = await reader.revision(ADA);
              const counts = await countAll(reader, ids, vector);
              if (revision > before) equal(counts, none, 'while it runs');
            }
          };
          await Promise.all([erasing, reading()]);
          for (const store of [reader, eraser]) equal(await countAll(store, ids, vector), none, 'later');
        }
      },
    );

    kit.test('a sweep removes expired memories in all scopes', async (stage) => {
      const { next } = stage;
      const expiresAt = isoOf(START + 1000);
      await next().commit(ADA, [
        put('old', { text: 'CANARY', expiresAt }),
        put('never'),
        put('later', { expiresAt: isoOf(START + 5000) }),
        put('lasting', { expiresAt }),
      ]);
      await next().commit(ADA, [put('lasting', { text: 'It does not expire any more' })]);
      await next().commit(BOB, [put('old', { text: 'CANARY', expiresAt }), note('index', 'x', 1)]);
      equal(await next().sweep({ now: START + 999 }), { removed: 0 }, 'too early');
      equal(await next().sweep({ now: START + 1000 }), { removed: 2 }, 'in time');
      equal(await next().sweep({ now: START + 1000 }), { removed: 0 }, 'again');
      const ids = async (store: MemoryStore): Promise<string[]> =>
        (await store.query(ADA, { filter: { includeInvalid: true } })).items.map(({ memory }) => memory.id).toSorted();
      equal(await ids(next()), ['lasting', 'later', 'never'], 'what is left');
      equal((await next().notes(BOB, 'index')).notes, [], 'derived notes');
      equal((await next().changes(BOB, { since: 1 })).isReset, true, 'the changes');
      await assertGone(stage, ['CANARY']);
    });
  },
};
