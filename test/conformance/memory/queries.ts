import assert from 'node:assert/strict';
import type { MemoryDraft, MemoryStore, MemoryQuery } from '../../../src/store/memory/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import { ADA, isoOf, put, START } from './support/drafts.ts';
import type { MemoryKit, MemorySubject } from './support/kit.ts';

async function idsOf(store: MemoryStore, query?: MemoryQuery): Promise<string[]> {
  return (await store.query(ADA, query)).items.map(({ memory }) => memory.id);
}

/** Finds memories by filter, time, vector and changes. */
export const queries: MemorySubject = {
  name: 'queries',
  tests(kit) {
    filters(kit);
    past(kit);
    changes(kit);
    if (kit.capabilities.vectorDimensions > 0) vectors(kit);
    else noVectors(kit);
  },
};

function filters(kit: MemoryKit): void {
  kit.test('a query returns the valid memories, last updated first, page by page', async ({ next }) => {
    for (const id of ['e', 'd', 'c', 'b', 'a']) await next().commit(ADA, [put(id)]);
    await next().commit(ADA, [put('d', { confidence: 1 })]);
    await next().commit(ADA, [put('old', { validTo: isoOf(START) }), put('expired', { expiresAt: isoOf(START) })]);
    await next().commit(ADA, [put('c', { validTo: '2999-01-01T00:00:00+02:00' })]);
    equal(await idsOf(next()), ['c', 'd', 'a', 'b', 'e'], 'all');
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await next().query(ADA, { k: 2, ...(cursor !== undefined && { cursor }) });
      pages.push(page.items.map(({ memory }) => memory.id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    equal(pages, [['c', 'd'], ['a', 'b'], ['e']], 'the pages');
    equal(await idsOf(next(), { k: 1 }), ['c'], 'one');
  });

  kit.test('a filter selects by kind, by topics, and includes invalid memories', async ({ next }) => {
    await next().commit(ADA, [
      put('fact', { topics: ['a', 'b'] }),
      put('way', { topics: ['b'], kind: 'procedural' }),
      put('past', { topics: ['a'], validTo: isoOf(START) }),
      put('none', { topics: [] }),
    ]);
    const found = async (filter: MemoryQuery['filter']): Promise<string[]> =>
      (await idsOf(next(), { ...(filter && { filter }) })).toSorted();
    equal(await found(undefined), ['fact', 'none', 'way'], 'what holds');
    equal(await found({ topics: ['a', 'nothing'] }), ['fact'], 'a topic');
    equal(await found({ topics: ['b'] }), ['fact', 'way'], 'another topic');
    equal(await found({ kind: 'procedural' }), ['way'], 'a kind');
    equal(await found({ topics: ['a'], includeInvalid: true }), ['fact', 'past'], 'what does not hold, too');
    equal(await found({ topics: ['B'] }), [], 'no topic');
  });
}

function past(kit: MemoryKit): void {
  kit.test('asOf returns each memory in its last revision at that time', async ({ next }) => {
    const at = (i: number): number => START + i * 1000;
    await next().commit(ADA, [put('city', { text: 'Paris' })], { now: at(1) });
    await next().commit(ADA, [put('pet', { text: 'cat' })], { now: at(2) });
    await next().commit(
      ADA,
      [put('city', { text: 'Paris', validTo: isoOf(at(3)), supersededBy: 'new' }), put('new', { text: 'Rome' })],
      {
        now: at(3),
      },
    );
    const texts = async (i: number, includeInvalid = false): Promise<string[]> => {
      const { items } = await next().query(ADA, { asOf: isoOf(at(i)), filter: { includeInvalid } });
      return items.map(({ memory }) => memory.text);
    };
    equal(await texts(0.5), [], 'before');
    equal(await texts(1), ['Paris'], 'after the first');
    equal(await texts(2.5), ['cat', 'Paris'], 'after the second');
    equal((await texts(3)).toSorted(), ['Rome', 'cat'], 'after the third');
    equal((await texts(9, true)).toSorted(), ['Paris', 'Rome', 'cat'], 'with invalid memories');
    const first = await next().query(ADA, { asOf: isoOf(at(2)), k: 1 });
    const rest = await next().query(ADA, { asOf: isoOf(at(2)), k: 1, cursor: first.nextCursor! });
    equal(
      [first, rest].map((page) => page.items[0]?.memory.text),
      ['cat', 'Paris'],
      'the pages',
    );
    equal(rest.nextCursor, undefined, 'the end');
  });
}

function changes(kit: MemoryKit): void {
  kit.test('changes returns memories whose content changed, in order, and the revision', async ({ next }) => {
    equal(await next().changes(ADA, { since: 0 }), { revision: 0, changed: [], isReset: false }, 'nothing');
    for (const id of ['a', 'b', 'c', 'd']) await next().commit(ADA, [put(id)]);
    const { revision } = await next().commit(ADA, [
      put('b', { text: 'new' }),
      put('a', { confidence: 1, importance: 0, lastUsedAt: isoOf(START) }),
    ]);
    await next().commit(ADA, [put('d', { validTo: isoOf(START) })]);
    const since = async (from: number): Promise<unknown> => {
      const { changed, ...rest } = await next().changes(ADA, { since: from });
      return { ...rest, changed: changed.map(({ id }) => id) };
    };
    equal(revision, 5, 'the revision');
    equal(await since(4), { revision: 6, isReset: false, changed: ['b', 'd'] }, 'since before the changes');
    equal(await since(2), { revision: 6, isReset: false, changed: ['c', 'b', 'd'] }, 'since earlier');
    equal(await since(5), { revision: 6, isReset: false, changed: ['d'] }, 'the last one');
    equal(await since(6), { revision: 6, isReset: false, changed: [] }, 'no more');
    const { changed } = await next().changes(ADA, { since: 0 });
    equal(
      changed,
      await next().get(
        ADA,
        changed.map(({ id }) => id),
      ),
      'the memories as they are',
    );
    await next().commit(ADA, [put('a', { confidence: 1, expiresAt: isoOf(START + 2e12) })]);
    equal(await since(6), { revision: 7, isReset: false, changed: ['a'] }, 'a later end');
    await next().commit(ADA, [{ op: 'remove', id: 'c' }]);
    equal(await since(7), { revision: 8, isReset: true, changed: ['b', 'd', 'a'] }, 'after a removal');
    equal(await since(8), { revision: 8, isReset: false, changed: [] }, 'after that');
    equal(
      await since(99),
      { revision: 8, isReset: true, changed: ['b', 'd', 'a'] },
      'since a revision that never existed',
    );
  });

  kit.test('a change of each member of the content is listed', async ({ next }) => {
    const members: Partial<MemoryDraft>[] = [
      { data: { seat: 'window' } },
      { schemaId: 'seat' },
      { topics: ['other'] },
      { kind: 'procedural' },
      { validFrom: isoOf(START - 1000) },
      { validTo: isoOf(START + 1000), supersededBy: 'another' },
      { validTo: isoOf(START + 1000), supersededBy: 'a third' },
    ];
    let { revision } = await next().commit(ADA, [put('seat')]);
    for (const member of members) {
      await next().commit(ADA, [put('seat', member)]);
      const { changed } = await next().changes(ADA, { since: revision++ });
      equal(
        changed.map(({ id }) => id),
        ['seat'],
        `the changes after ${Object.keys(member).join(' and ')}`,
      );
    }
  });
}

function vectors(kit: MemoryKit): void {
  kit.test('a vector finds the nearest memories by cosine, with the same number of dimensions', async ({ next }) => {
    await next().commit(ADA, [
      put('east', {}, [2, 0]),
      put('north', {}, [0, 0.5]),
      put('west', {}, [-3, 0]),
      put('past', { validTo: isoOf(START) }, [1, 0]),
      put('way', { kind: 'procedural' }, [1, 1]),
      put('deep', {}, [1, 0, 0]),
      put('plain'),
    ]);
    const near = async (query: MemoryQuery): Promise<unknown> =>
      (await next().query(ADA, query)).items.map(({ memory, similarity }) => [
        memory.id,
        Number(similarity!.toFixed(4)),
      ]);
    const all = [
      ['east', 0.9487],
      ['way', 0.8944],
      ['north', 0.3162],
      ['west', -0.9487],
    ];
    equal(await near({ vector: [3, 1] }), all, 'all');
    equal(await near({ vector: [3, 1], k: 2 }), all.slice(0, 2), 'two');
    equal(await near({ vector: [3, 1], filter: { kind: 'procedural' } }), all.slice(1, 2), 'of a kind');
    const withPast = (await next().query(ADA, { vector: [1, 0.1], filter: { includeInvalid: true } })).items;
    equal(
      new Set(withPast.slice(0, 2).map(({ memory }) => memory.id)),
      new Set(['east', 'past']),
      'what does not hold, too',
    );
    equal(await near({ vector: [0, 0, 1] }), [['deep', 0]], 'of three dimensions');
  });

  kit.test('a memory keeps its vector until its text changes', async ({ next }) => {
    await next().commit(ADA, [put('one', {}, [1, 0]), put('two', {}, [1, 0])]);
    await next().commit(ADA, [put('one', { confidence: 1 }), put('two', { text: 'other' })]);
    const found = await idsOf(next(), { vector: [1, 0] });
    equal(found, ['one'], 'what is found');
    const { revision } = await next().commit(ADA, [put('one', { confidence: 1 }, [0, 1])]);
    const hits = (await next().query(ADA, { vector: [0, 1] })).items;
    equal(
      hits.map((hit) => Math.round(hit.similarity!)),
      [1],
      'a new vector',
    );
    const { changed } = await next().changes(ADA, { since: revision - 1 });
    equal(
      changed.map(({ id }) => id),
      ['one'],
      'a new vector is a change',
    );
  });

  kit.test('asOf with a vector finds the memories that were near at that time', async ({ next }) => {
    await next().commit(ADA, [put('one', { text: 'x' }, [1, 0])], { now: START });
    await next().commit(ADA, [put('one', { text: 'y' }, [0, 1]), put('two', {}, [1, 0])], { now: START + 1000 });
    const { items } = await next().query(ADA, { vector: [1, 0], asOf: isoOf(START + 500) });
    equal(
      items.map(({ memory, similarity }) => [memory.text, Math.round(similarity!)]),
      [['x', 1]],
      'what is found',
    );
  });

  kit.test('vectors that can’t be compared are refused', async ({ a }) => {
    const { vectorDimensions } = kit.capabilities;
    for (const vector of [[], [0, 0], [1, NaN], [Infinity], Array.from({ length: vectorDimensions + 1 }, () => 1)]) {
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [put('one', {}, vector)]));
      await refuses('INVALID_ARGUMENT', () => a.query(ADA, { vector }));
    }
    equal(await a.revision(ADA), 0, 'the revision');
    const longest = Array.from({ length: Math.min(vectorDimensions, 768) }, (_, i) => Math.sin(i + 1));
    await a.commit(ADA, [put('one', {}, longest)]);
    const [hit] = (await a.query(ADA, { vector: longest })).items;
    assert.ok(hit && hit.similarity! > 0.99999 && hit.similarity! <= 1.00001, String(hit?.similarity));
  });
}

function noVectors(kit: MemoryKit): void {
  kit.test('a store without vectors refuses them', async ({ a }) => {
    await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [put('one', {}, [1])]));
    await refuses('INVALID_ARGUMENT', () => a.query(ADA, { vector: [1] }));
  });
}
