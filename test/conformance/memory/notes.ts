import { equal, refuses } from '../support/assertions.ts';
import { ADA, note, put } from './support/drafts.ts';
import type { MemorySubject } from './support/kit.ts';

/** Notes: data of a scope that is not a memory. */
export const notes: MemorySubject = {
  name: 'notes',
  tests(kit) {
    kit.test('notes are written, replaced and removed, and read by kind and key', async ({ next }) => {
      const keys = ['b', 'a', 'B', '10', '9', '\u{1F600}', '\uFFFD', 'a/b', 'é', 'e\u0301', '..', '*'];
      await next().commit(
        ADA,
        keys.map((key) => note('note', key, key)),
      );
      await next().commit(ADA, [note('Note', 'a', 'other'), note('note', 'b', null), note('note', '10', undefined)]);
      const expected = keys
        .filter((key) => key !== '10')
        .toSorted()
        .map((key) => ({ kind: 'note', key, value: key === 'b' ? null : key }));
      equal(await next().notes(ADA, 'note'), { revision: 2, notes: expected }, 'the kind');
      const some = await next().notes(ADA, 'note', { keys: ['é', 'b', 'nothing', '10', 'b'] });
      equal(some, { revision: 2, notes: expected.filter(({ key }) => key === 'b' || key === 'é') }, 'the keys');
      equal((await next().notes(ADA, 'Note')).notes, [{ kind: 'Note', key: 'a', value: 'other' }], 'another kind');
      equal(await next().notes(ADA, 'not'), { revision: 2, notes: [] }, 'no kind');
    });

    kit.test('values come back as saved', async ({ a, b }) => {
      const value = {
        __proto__: { x: -0 },
        '': [[[]], [null, true, 1e-7, '\uDC00', '\u0000']],
        'a.b': {},
        constructor: 'x',
      };
      const own = JSON.parse(JSON.stringify(value)) as never;
      await a.commit(ADA, [note('n', 'deep', own), note('n', 'large', 'é'.repeat(250_000)), note('n', 'zero', -0)]);
      const { notes: found } = await b.notes(ADA, 'n');
      equal(
        found.map((one) => one.value),
        [own, 'é'.repeat(250_000), -0],
        'the values',
      );
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [note('n', 'large', 'é'.repeat(270_000))]), 'large');
    });

    kit.test('the removal of a memory drops the derived notes, and no other notes', async ({ next }) => {
      const kinds = ['index', 'index/words', 'indexes', 'Index', 'profile', 'the index'];
      await next().commit(ADA, [put('one'), ...kinds.map((kind) => note(kind, 'x', 1))]);
      await next().commit(ADA, [{ op: 'remove', id: 'nothing' }]);
      equal((await next().notes(ADA, 'index')).notes.length, 1, 'after the removal of a missing memory');
      await next().commit(ADA, [{ op: 'remove', id: 'one' }, note('index', 'fresh', 1)]);
      const left: string[] = [];
      for (const kind of kinds)
        for (const { key } of (await next().notes(ADA, kind)).notes) left.push(`${kind} ${key}`);
      equal(left, ['index fresh', 'Index x', 'profile x', 'the index x'], 'what is left');
    });
  },
};
