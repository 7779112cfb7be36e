import type { MemorySearchResult } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Json } from '../../../src/json/value.ts';
import { Random } from '../../support/random.ts';
import { MemorySearch } from '../../../src/memory/search/memory-search.ts';
import { ADA, draft, InMemoryMemoryStore, put, TestClock, watched } from './support.ts';

const clock = new TestClock();
let store: InMemoryMemoryStore;
let worker: MemorySearch;

beforeEach(() => {
  store = new InMemoryMemoryStore();
  worker = new MemorySearch(store, {}, { clock });
});

const ids = ({ memories }: MemorySearchResult): string[] => memories.map(({ memory }) => memory.id);
const many = (count: number, words = 'espresso') =>
  Array.from({ length: count }, (_, i) =>
    draft(`m${i}`, `The user drinks ${words} in place${i} and says so ${'again and '.repeat(40)}`),
  );

/** The memories that a new process finds, and its requests to the store. */
async function cold(query: string) {
  const { store: counted, calls } = watched(store);
  const found = ids(await new MemorySearch(counted, {}, { clock }).search({ scope: ADA, query, deadlineMs: 60_000 }));
  return { found, calls, memoriesRead: calls.reduce((sum, { read }) => sum + read, 0) };
}

const notes = async () => (await store.notes(ADA, 'index-search')).notes;

describe('shards of an index', () => {
  it('are complete after overlapping saves of many commits (seed 1)', async () => {
    const random = new Random(1);
    const pause = async () => {
      for (let i = random.below(4); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
    };
    const slow = new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'tenant') return value.bind(target);
        return async (...args: unknown[]) => {
          await pause();
          const answer: unknown = await Reflect.apply(value, target, args);
          await pause();
          return answer;
        };
      },
    });
    const saving = new MemorySearch(slow, {}, { clock });
    const all = many(400, 'espresso '.repeat(300));
    const saves: Promise<boolean>[] = [];
    for (let i = 0; i < all.length; i += 20) {
      await put(store, ADA, ...all.slice(i, i + 20));
      saves.push(saving.saveIndex(ADA));
      await pause();
    }
    await Promise.all(saves);
    await saving.saveIndex(ADA);
    expect((await notes()).length).toBeGreaterThan(3);
    const { found, calls } = await cold('place7');
    expect(found).toEqual(['m7']);
    expect(calls.find(({ method }) => method === 'changes')).toEqual({ method: 'changes', read: 0 });
  });

  it('let a cold process search without reading a memory', async () => {
    await put(store, ADA, ...many(1_500));
    expect(await worker.saveIndex(ADA)).toBe(true);
    const { found, calls, memoriesRead } = await cold('place7');
    expect(found).toEqual(['m7']);
    expect(calls.map(({ method }) => method)).toEqual(['notes', 'changes']);
    expect(memoriesRead).toBe(0);
    for (const { value } of await notes())
      expect(Buffer.byteLength(JSON.stringify(value))).toBeLessThanOrEqual(512 * 1024);
    expect((await notes()).length).toBeGreaterThan(3);
  });

  it('need what is newer to be read, and no more', async () => {
    await put(store, ADA, ...many(300));
    await worker.saveIndex(ADA);
    await put(store, ADA, draft('new', 'drinks cocoa'), draft('m7', 'moved to place9000'));
    const { found, memoriesRead } = await cold('cocoa');
    expect(found).toEqual(['new']);
    expect(memoriesRead).toBe(2);
    expect((await cold('place7')).found).toEqual([]);
    expect((await cold('place9000')).found).toEqual(['m7']);
  });

  it('grow by what changed: one note and the head a commit', async () => {
    await put(store, ADA, ...many(1_500));
    await worker.saveIndex(ADA);
    const before = new Map((await notes()).map(({ key, value }) => [key, JSON.stringify(value)]));
    await put(store, ADA, draft('new', 'drinks cocoa'));
    expect(await worker.saveIndex(ADA)).toBe(true);
    const written = (await notes()).filter(({ key, value }) => before.get(key) !== JSON.stringify(value));
    expect(written).toHaveLength(2);
    expect((await cold('cocoa')).memoriesRead).toBe(0);
    expect(await worker.saveIndex(ADA)).toBe(false);
  });

  it('do not contain an invalid memory as a valid one', async () => {
    await put(store, ADA, ...many(10));
    await worker.saveIndex(ADA);
    await put(store, ADA, draft('m3', 'gone from place3', { validTo: '2026-05-01T11:30:00.000Z' }));
    await worker.saveIndex(ADA);
    expect((await cold('place3')).found).toEqual([]);
  });

  it('return a confidence that changed after they were written', async () => {
    await put(store, ADA, draft('a', 'espresso', { confidence: 0.1 }), draft('b', 'tea'));
    await worker.saveIndex(ADA);
    await put(store, ADA, draft('a', 'espresso', { confidence: 0.9 }));
    await put(store, ADA, draft('b', 'green tea'));
    await worker.saveIndex(ADA);
    const { memories } = await new MemorySearch(store, {}, { clock }).search({ scope: ADA, query: 'espresso' });
    expect(memories[0]!.memory.confidence).toBe(0.9);
  });

  it('are removed completely by a removal, and are written again', async () => {
    await put(store, ADA, ...many(50), draft('secret', 'canary'));
    await worker.saveIndex(ADA);
    expect(JSON.stringify(await notes())).toContain('canary');
    await store.commit(ADA, [{ op: 'remove', id: 'secret' }]);
    expect(await notes()).toEqual([]);
    expect((await cold('canary')).found).toEqual([]);
    expect(await worker.saveIndex(ADA)).toBe(true);
    expect(JSON.stringify(await notes())).not.toContain('canary');
    expect((await cold('place7')).memoriesRead).toBe(0);
  });

  it('never bring back what is removed while they are written', async () => {
    await put(store, ADA, ...many(2_500), draft('secret', 'canary'));
    const { store: racing, calls } = watched(store);
    const commit = racing.commit.bind(racing);
    const removing = new Proxy(racing, {
      get: (target, name) =>
        name !== 'commit'
          ? (Reflect.get(target, name) as unknown)
          : async (...args: Parameters<typeof commit>) => {
              const answer = await commit(...args);
              // After the first commit of shards, before the next one.
              if (calls.filter(({ method }) => method === 'commit').length === 1) {
                await store.commit(ADA, [{ op: 'remove', id: 'secret' }]);
              }
              return answer;
            },
    });
    expect(await new MemorySearch(removing, {}, { clock }).saveIndex(ADA)).toBe(false);
    expect(calls.filter(({ method }) => method === 'commit')).toHaveLength(2);
    expect(JSON.stringify(await notes())).not.toContain('canary');
    expect((await cold('canary')).found).toEqual([]);
  });

  it.each([
    ['a shard is missing', 'note', '1', undefined],
    ['a shard is of another writer', 'note', '0', { tag: 'other', entries: [] }],
    ['the head is of a later format', 'note', 'head', { format: 99, revision: 1, tags: [] }],
  ] as const)('are not used when %s', async (_, op, key, value) => {
    await put(store, ADA, ...many(1_500));
    await worker.saveIndex(ADA);
    await store.commit(ADA, [{ op, kind: 'index-search', key, value: value as Json | undefined }]);
    expect((await cold('place7')).found).toEqual(['m7']);
    await put(store, ADA, draft('new', 'cocoa'));
    await new MemorySearch(store, {}, { clock }).saveIndex(ADA);
    const { found, memoriesRead } = await cold('cocoa');
    expect([found, memoriesRead]).toEqual([['new'], 0]);
  });

  it('of two workers are complete, for any order of their writes (seed 1)', async () => {
    const random = new Random(1);
    const workers = [worker, new MemorySearch(store, {}, { clock }), new MemorySearch(store, {}, { clock })];
    const texts = new Map<string, string>();
    for (let step = 0; step < 120; step++) {
      const id = `m${random.below(40)}`;
      if (random.next() < 0.1) {
        await store.commit(ADA, [{ op: 'remove', id }]);
        texts.delete(id);
      } else {
        texts.set(id, `word${random.below(30)}`);
        await put(store, ADA, draft(id, texts.get(id)!));
      }
      if (random.next() < 0.6)
        await Promise.all([random.pick(workers), random.pick(workers)].map((one) => one.saveIndex(ADA)));
      const word = `word${random.below(30)}`;
      const expected = [...texts].filter(([, text]) => text === word).map(([key]) => key);
      expect((await cold(word)).found.toSorted()).toEqual(expected.toSorted());
      const warm = await random.pick(workers).search({ scope: ADA, query: word });
      expect(ids(warm).toSorted()).toEqual(expected.toSorted());
    }
  });
});
