import { GenkitError } from 'genkit';
import type { MemorySearchOptions } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { MemorySearch } from '../../../src/memory/search/memory-search.ts';
import type { EmbedQuery } from '../../../src/memory/search/search-run.ts';
import { ADA, draft, InMemoryMemoryStore, put, TestClock, watched } from './support.ts';

let clock: TestClock;
let inner: InMemoryMemoryStore;

beforeEach(async () => {
  clock = new TestClock();
  inner = new InMemoryMemoryStore();
  await put(inner, ADA, draft('a', 'likes espresso'), draft('b', 'likes tea'));
});

const forever = () => new Promise<never>(() => {});

/** A search on a store that can be made to hang, with a log of the events in order. */
function opened({ embed, ...options }: MemorySearchOptions & { embed?: EmbedQuery } = {}) {
  const { store, calls, hang } = watched(inner);
  const search = new MemorySearch(store, options, { clock, ...(embed && { embed }) });
  const find = async (query = 'espresso', more = {}) => {
    const { memories, report } = await search.search({ scope: ADA, query, ...more });
    return { ids: memories.map(({ memory }) => memory.id), memories, report };
  };
  return { search, calls, hang, find };
}

describe('a deadline', () => {
  it.each(['notes', 'changes'])(
    'ends a search on a store whose %s hangs, with nothing in a cold process',
    async (method) => {
      const { hang, find, calls } = opened();
      hang.add(method);
      const order: string[] = [];
      const finding = find().then((found) => (order.push('answered'), found));
      await vi.waitFor(() => expect(calls.at(-1)?.method).toBe(method));
      clock.pass(199);
      await new Promise((resolve) => setImmediate(resolve));
      order.push('deadline');
      clock.pass(1);
      const { ids, report } = await finding;
      expect(order).toEqual(['deadline', 'answered']);
      expect(ids).toEqual([]);
      expect(report).toMatchObject({ deadlinePassed: true, lexical: 'late', semantic: 'off' });
      expect(clock.waiting).toBe(0);
      hang.clear();
      clock.pass(30_000);
      expect((await find()).ids).toEqual(['a']);
    },
  );

  it('uses the index that this process has, and reports this', async () => {
    const { hang, find, calls } = opened();
    await find();
    hang.add('changes').add('get');
    const finding = find('tea', { deadlineMs: 50 });
    await vi.waitFor(() => expect(calls.at(-1)?.method).toBe('changes'));
    clock.pass(50);
    const { ids, report } = await finding;
    expect(ids).toEqual(['b']);
    expect(report).toMatchObject({ deadlinePassed: true, lexical: 'late', revision: 1, isCached: false });
  });

  it('never returns removed memories, not even while the index is built again', async () => {
    await put(inner, ADA, ...Array.from({ length: 1_000 }, (_, i) => draft(`m${i}`, `drinks cocoa in place${i}`)));
    const { find, calls } = opened();
    expect((await find('tea', { deadlineMs: 60_000 })).ids).toEqual(['b']);
    await inner.commit(ADA, [{ op: 'remove', id: 'b' }]);
    const finding = find('tea');
    // The store has answered, and most memories are not indexed yet.
    await vi.waitFor(() => expect(calls.at(-1)!.read).toBeGreaterThan(0), { interval: 0 });
    clock.pass(200);
    expect((await finding).ids).toEqual([]);
  });

  it('leaves an index that counts for maxIndexBytes, when it is complete', async () => {
    await put(inner, ADA, ...Array.from({ length: 1_000 }, (_, i) => draft(`m${i}`, `drinks cocoa in place${i}`)));
    const { find, calls } = opened({ maxIndexBytes: 1_000_000 });
    const late = find();
    await vi.waitFor(() => expect(calls.at(-1)!.read).toBeGreaterThan(0), { interval: 0 });
    clock.pass(200);
    expect((await late).report.lexical).toBe('late');
    // The search has ended, and its index is still being made.
    for (let i = 0; i < 100; i++) await new Promise(setImmediate);
    const reads = () => calls.filter(({ method }) => method === 'notes').length;
    const before = reads();
    expect((await find('tea', { deadlineMs: 60_000 })).ids).toEqual(['b']);
    expect(reads()).toBe(before + 1);
  });

  it('ends an embedder, a reranker and a rewriter that hang, and answers without them', async () => {
    const aborted: string[] = [];
    const hanging = (name: string) => (_: unknown, second: unknown, third?: unknown) => {
      const signal = (third ?? second) as AbortSignal;
      signal.addEventListener('abort', () => aborted.push(name));
      return forever();
    };
    for (const name of ['embed', 'rerank', 'rewriteQuery'] as const) {
      const { find } = opened({ [name]: hanging(name) });
      const finding = find();
      await new Promise((resolve) => setImmediate(resolve));
      clock.pass(200);
      const { ids, report } = await finding;
      expect(report.deadlinePassed).toBe(true);
      // The first step has used up all the time.
      expect(ids).toEqual(name === 'rewriteQuery' ? [] : ['a']);
    }
    expect(aborted).toEqual(['embed', 'rerank', 'rewriteQuery']);
  });

  it.each([
    ['rewriteQuery', 'rewrite'],
    ['rerank', 'rerank'],
  ] as const)('leaves half of the time to the search when %s hangs', async (name, step) => {
    const asked: string[] = [];
    const hang = () => {
      asked.push(name);
      return forever();
    };
    const { find, calls } = opened({ [name]: hang });
    const finding = find();
    await vi.waitFor(() => expect(asked).toEqual([name]));
    const before = calls.length;
    clock.pass(100);
    const { ids, report } = await finding;
    expect(ids).toEqual(['a']);
    expect(report).toMatchObject({ deadlinePassed: true, lexical: 'done', [step]: 'late' });
    // The store was asked in the second half.
    if (name === 'rewriteQuery') expect(calls.length).toBeGreaterThan(before);
    expect(clock.waiting).toBe(0);
  });

  it('is not reported if everything was in time', async () => {
    const { find } = opened();
    expect((await find()).report).toEqual({
      deadlinePassed: false,
      lexical: 'done',
      semantic: 'off',
      rewrite: 'off',
      rerank: 'off',
      revision: 1,
      isCached: false,
      errors: [],
    });
    expect(clock.waiting).toBe(0);
  });

  it('does not outlive an abort of the caller', async () => {
    const { hang, find, calls } = opened();
    hang.add('changes');
    const controller = new AbortController();
    const finding = find('espresso', { abortSignal: controller.signal });
    await vi.waitFor(() => expect(calls.at(-1)?.method).toBe('changes'));
    controller.abort(new Error('the user left'));
    await expect(finding).rejects.toThrow('the user left');
    expect(clock.waiting).toBe(0);
  });
});

describe('failures', () => {
  it.each([
    ['rewriteQuery', 'rewrite', undefined],
    ['rewriteQuery', 'rewrite', 5],
    ['rerank', 'rerank', 'a'],
    ['rerank', 'rerank', [NaN]],
    ['rerank', 'rerank', [1, 2]],
  ])('are answers of %s that can not be used', async (name, step, answer) => {
    const { find } = opened({ [name]: async () => answer });
    const { ids, report } = await find();
    expect(ids).toEqual(['a']);
    expect(report).toMatchObject({ lexical: 'done', [step]: 'failed' });
    expect(report.errors).toEqual([expect.stringContaining(`${name} must return`)]);
  });

  it('of a step only lose its part, and are reported', async () => {
    const failing = () => Promise.reject(new Error('out of order'));
    const { find } = opened({ embed: failing, rerank: failing, rewriteQuery: failing });
    const { ids, report } = await find();
    expect(ids).toEqual(['a']);
    expect(report).toMatchObject({
      lexical: 'done',
      semantic: 'failed',
      rewrite: 'failed',
      rerank: 'failed',
      deadlinePassed: false,
    });
    expect(report.errors).toHaveLength(3);
  });

  it.each([
    ['refuses the text', () => Promise.reject(new GenkitError({ status: 'INVALID_ARGUMENT', message: 'too long' }))],
    ['answers no vector', async () => []],
    ['answers a vector of zeros', async () => [0, 0, 0]],
    ['returns something other than a number', async () => [Number.NaN]],
  ])('of an embedder that %s leave the search by words', async (_, embed) => {
    const { ids, report } = await opened({ embed }).find();
    expect([ids, report.lexical, report.semantic]).toEqual([['a'], 'done', 'failed']);
  });

  it('of the store return the memories that this process has', async () => {
    const { search, find } = opened();
    await find();
    await inner.close();
    const { memories, report } = await search.search({ scope: ADA, query: 'tea' });
    expect(memories.map(({ memory }) => memory.id)).toEqual(['b']);
    expect(report).toMatchObject({ lexical: 'failed', deadlinePassed: false });
  });
});

describe('by meaning', () => {
  const vectors: Record<string, number[]> = { cat: [1, 0, 0], dog: [0.9, 0.4, 0], tax: [0, 0, 1] };
  const embed = async (query: string) => (query.includes('kitten') ? vectors['cat']! : vectors['tax']!);
  const withVectors = () =>
    inner.commit(
      ADA,
      Object.entries(vectors).map(([id, vector]) => ({ op: 'put', memory: draft(id, `about the ${id}`), vector })),
    );

  it('finds what shares no word, by its cosine', async () => {
    await withVectors();
    const { ids, memories, report } = await opened({ embed }).find('kitten', { k: 2 });
    expect(ids).toEqual(['cat', 'dog']);
    expect(memories[0]!.parts).toMatchObject({ semantic: 1, relevance: 1 });
    expect(report).toMatchObject({ lexical: 'done', semantic: 'done' });
  });

  it('joins words and meaning by their ranks', async () => {
    await withVectors();
    const { memories } = await opened({ embed }).find('kitten or dog');
    const parts = Object.fromEntries(memories.map(({ memory, parts: { relevance } }) => [memory.id, relevance]));
    // First by words and second by meaning.
    expect(parts['dog']).toBeCloseTo((1 + 61 / 62) / 2, 5);
    expect(parts['cat']).toBeCloseTo(1 / 2, 5);
    expect(memories[0]!.memory.id).toBe('dog');
  });
});

describe('options', () => {
  it('rewrites the query, and reranks what was found', async () => {
    await put(inner, ADA, draft('c', 'hates espresso'));
    const asked: string[] = [];
    const { find } = opened({
      rewriteQuery: async () => 'espresso',
      rerank: async (query, memories) => (
        asked.push(query),
        memories.map(({ text }) => Number(text.startsWith('hates')))
      ),
    });
    const { ids, report } = await find('that strong drink');
    expect(ids).toEqual(['c', 'a']);
    expect(asked).toEqual(['espresso']);
    expect(report).toMatchObject({ rewrite: 'done', rerank: 'done' });
  });

  it('keeps results for as long as the scope has its revision', async () => {
    let embedded = 0;
    const { find } = opened({ cacheSize: 10, embed: async () => [++embedded, 0] });
    expect((await find()).report.isCached).toBe(false);
    const again = await find();
    expect([again.ids, again.report.isCached, embedded]).toEqual([['a'], true, 1]);
    Object.assign(again.memories[0]!, { memory: undefined, score: 0 });
    expect((await find()).ids).toEqual(['a']);
    expect((await find('tea')).report.isCached).toBe(false);
    await put(inner, ADA, draft('c', 'hates espresso'));
    const later = await find();
    expect([later.ids.toSorted(), later.report.isCached, embedded]).toEqual([['a', 'c'], false, 3]);
  });
});
