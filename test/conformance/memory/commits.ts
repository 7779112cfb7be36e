import { equal, refuses } from '../support/assertions.ts';
import { ADA, BOB, note, put } from './support/drafts.ts';
import type { MemorySubject } from './support/kit.ts';
import { corroborate } from './support/workers.ts';

/** A commit is all or nothing, and needs the revision that it expects. */
export const commits: MemorySubject = {
  name: 'commits',
  tests(kit) {
    kit.test(
      'each commit raises the revision, except commits of derived notes only and empty commits',
      async ({ next }) => {
        equal(await next().revision(ADA), 0, 'before the first');
        equal(await next().commit(ADA, []), { revision: 0 }, 'nothing');
        equal((await next().listScopes()).items, [], 'the scopes after an empty commit');
        equal(await next().commit(ADA, [note('index/words', '1', {})]), { revision: 0 }, 'a derived note');
        equal(await next().commit(ADA, [note('profile', '1', {})]), { revision: 1 }, 'a note');
        equal(await next().commit(ADA, [put('one'), put('two')]), { revision: 2 }, 'two memories');
        equal(
          await next().commit(ADA, [note('index', '1', {}), note('summary', 'x', 1)]),
          { revision: 3 },
          'both kinds of notes',
        );
        equal(await next().commit(ADA, [{ op: 'remove', id: 'one' }]), { revision: 4 }, 'a removal');
        equal(await next().revision(ADA), 4, 'at last');
        equal(await next().revision(BOB), 0, 'of another scope');
      },
    );

    kit.test('a commit that expects another revision changes nothing', async ({ next }) => {
      await next().commit(ADA, [put('one')], { expectedRevision: 0 });
      for (const expectedRevision of [0, 2]) {
        const commit = next().commit(ADA, [put('two'), note('profile', 'x', 1)], { expectedRevision });
        await refuses('ABORTED', () => commit, 'ada');
      }
      equal(await next().get(ADA, ['two']), [], 'the memory');
      equal(await next().notes(ADA, 'profile'), { revision: 1, notes: [] }, 'the note');
      equal(await next().commit(ADA, [put('two')], { expectedRevision: 1 }), { revision: 2 }, 'with the right one');
    });

    kit.test('a commit with an invalid operation changes nothing', async ({ a, b }) => {
      await a.commit(ADA, [put('one')]);
      const bad = [
        put('two'),
        { op: 'remove', id: 'one' },
        note('profile', 'x', 1),
        put('three', { text: 3 as never }),
      ] as const;
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, bad));
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [put('two'), note('n', 'x', (() => 1) as never)]));
      equal(
        (await b.query(ADA)).items.map(({ memory }) => memory.id),
        ['one'],
        'the memories',
      );
      equal(await b.notes(ADA, 'profile'), { revision: 1, notes: [] }, 'the notes');
    });

    const times = kit.runs(24, 50);
    kit.test(`${times} concurrent corroborations of one memory are ${times}`, async ({ a, b }) => {
      await a.commit(ADA, [put('seat', { times: 0 })]);
      await Promise.all(Array.from({ length: times }, (_, i) => corroborate(i % 2 === 0 ? a : b)));
      const [memory] = await b.get(ADA, ['seat']);
      equal([memory?.['times'], memory?.revision], [times, times + 1], 'the count');
      equal(await a.revision(ADA), times + 1, 'the revision');
      equal(
        (await a.revisions(ADA, 'seat')).map((one) => one['times']),
        Array.from({ length: times + 1 }, (_, i) => i),
        'the past',
      );
    });

    kit.test('concurrent commits without an expected revision all succeed', async ({ a, b }) => {
      const revisions = await Promise.all(
        Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? a : b).commit(ADA, [put(`m${i}`), note('n', `${i}`, i)])),
      );
      equal(
        revisions.map(({ revision }) => revision).toSorted((x, y) => x - y),
        Array.from({ length: 12 }, (_, i) => i + 1),
        'the revisions',
      );
      equal((await a.query(ADA)).items.length, 12, 'the memories');
      equal((await b.notes(ADA, 'n')).notes.length, 12, 'the notes');
    });

    kit.test('a commit of 100 operations is made, one of 101 refused', async ({ a, b }) => {
      const many = Array.from({ length: 101 }, (_, i) => put(`m${i}`));
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, many));
      await a.commit(ADA, many.slice(0, 100));
      equal(
        (await b.query(ADA, { k: 1000 })).items.map(({ memory }) => memory.id).toSorted(),
        many
          .slice(0, 100)
          .map((_, i) => `m${i}`)
          .toSorted(),
        'the memories',
      );
      equal(
        (await b.changes(ADA, { since: 0 })).changed.map(({ id }) => id),
        Array.from({ length: 100 }, (_, i) => `m${i}`),
        'in their order',
      );
    });
  },
};
