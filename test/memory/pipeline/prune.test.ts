/** The memories that `prune` removes and keeps. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { FileMemoryStore, processMemoryJobs } from 'genkitx-agents/memory';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { draft } from '../attach/support.ts';
import { ADA, DAY, everything, ID, livingIn, range, setUp, textsOf } from './support.ts';

describe('prune', () => {
  async function three() {
    const set = setUp({ model: undefined });
    for (const [i, text] of ['The first fact.', 'The second thing.', 'The third matter.'].entries()) {
      const source = { id: `s${i}`, type: 'implicit' as const, trust: [0.3, 0.6, 0.9][i]! };
      await set.memory.ingest({ scope: set.scope, source, memories: [text], wait: true });
      set.clock.now += DAY;
    }
    return set;
  }

  test.each([
    ['age', { maxAgeMs: 2 * DAY }, 1],
    ['confidence', { minConfidence: 0.5 }, 1],
    ['confidence that has aged', { minConfidence: 0.5, halfLifeMs: DAY }, 3],
    ['number', { maxMemories: 1 }, 2],
    ['disuse', { unusedMs: 1.5 * DAY }, 2],
    ['nothing', {}, 0],
  ])('by %s', async (_, policy, gone) => {
    const { memory, scope, store } = await three();
    expect(await memory.prune(policy, { scope, dryRun: true })).toEqual({ memories: gone, quarantined: 0 });
    expect(await textsOf(store)).toHaveLength(3);
    expect(await memory.prune(policy, { context: ADA })).toEqual({ memories: gone, quarantined: 0 });
    expect(await textsOf(store)).toHaveLength(3 - gone);
  });

  test.each([undefined, null, ''])(
    'refuses %j as a scope, because without a scope it would prune all users',
    async (scope) => {
      const { memory, store } = await three();
      const none = { scope: scope as never };
      await expect(memory.prune({ maxMemories: 0 }, none)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
      await expect(memory.jobs.list(none)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
      expect(await textsOf(store)).toHaveLength(3);
    },
  );

  test('keeps what was used', async () => {
    const { memory, scope, store } = await three();
    const { memories } = await memory.search({ scope, query: 'first fact' });
    memory.noteUse(scope, [memories[0]!.memory.id]);
    await memory.ingest({ scope, source: { id: 'next' }, memories: ['Something else entirely.'], wait: true });
    const [used] = await store.get(ID, [memories[0]!.memory.id]);
    expect(used).toMatchObject({ lastUsedAt: '2026-01-04T00:00:00.000Z' });
    await memory.prune({ unusedMs: 1.5 * DAY }, { scope });
    expect(await textsOf(store)).toEqual(['Something else entirely.', 'The first fact.', 'The third matter.']);
  });

  test('keeps memories that another process used, even if that process runs no jobs', async () => {
    const { memory: worker, scope, store, clock } = await three();
    const { memory: web } = setUp({ model: undefined, store, worker: false, now: () => clock.now });
    const { memories } = await web.search({ scope, query: 'first fact' });
    web.noteUse(scope, [memories[0]!.memory.id]);
    await web.ingest({ scope, source: { id: 'next' }, memories: ['Something else entirely.'] });
    await web.close();
    await processMemoryJobs(worker);
    await worker.prune({ unusedMs: 1.5 * DAY }, { scope });
    expect(await textsOf(store)).toEqual(['Something else entirely.', 'The first fact.', 'The third matter.']);
  });

  test('keeps used memories after other used memories were removed', async () => {
    const { memory, scope, store, clock } = setUp({ model: undefined });
    const memories = Array.from({ length: 12 }, (_, i) => `Number${i} is about topic${i}.`);
    await memory.ingest({ scope, source: { id: 'a' }, memories, wait: true });
    const ids = (await store.query(ID, { k: 100 })).items.map((hit) => hit.memory.id);
    clock.now += DAY;
    memory.noteUse(scope, ids);
    await store.commit(
      ID,
      ids.slice(0, 10).map((id) => ({ op: 'remove', id })),
    );
    for (let i = 0; i < 2; i++) await memory.create({ scope, memory: `Another${i} came.` });
    const left = await store.get(ID, ids.slice(10));
    expect(left.map(({ lastUsedAt }) => lastUsedAt)).toEqual(Array(2).fill(new Date(clock.now).toISOString()));
  });

  test('stores the use of a memory once a day, and drops the uses that it does not store', async () => {
    const { memory, scope, store, clock } = setUp({ model: undefined });
    const ingest = (id: string, ...memories: string[]) =>
      memory.ingest({ scope, source: { id }, memories, wait: true });
    await ingest('old', 'An old one.');
    const { memory: old } = (await store.query(ID)).items[0]!;
    clock.now += DAY;
    await ingest('new', ...Array.from({ length: 10 }, (_, i) => `Number${i} is about topic${i}.`));
    const fresh = (await store.query(ID)).items.map((hit) => hit.memory.id).filter((id) => id !== old.id);
    const useAll = async (source: string) => {
      memory.noteUse(scope, [...fresh, old.id]);
      // A commit checks ten uses.
      for (const part of ['a', 'b']) await ingest(`${source}${part}`, `Another${source}${part} came.`);
    };
    const revisions = async (...ids: string[]) => (await store.get(ID, ids)).map(({ revision }) => revision);
    for (const source of ['first', 'second', 'third']) {
      clock.now += 1000;
      await useAll(source);
    }
    expect(await revisions(old.id)).toEqual([2]);
    expect(await revisions(...fresh)).toEqual(fresh.map(() => 1));
    expect(await store.get(ID, [old.id])).toMatchObject([{ lastUsedAt: '2026-01-02T00:00:01.000Z' }]);
    clock.now += DAY;
    await useAll('later');
    expect(await revisions(old.id, ...fresh)).toEqual([3, ...fresh.map(() => 2)]);
  });

  test('by age removes used memories, unless a source was added', async () => {
    const { memory, scope, store, clock } = await three();
    const ids = (await store.query(ID)).items.map((hit) => hit.memory.id);
    await memory.ingest({ scope, source: { id: 'again' }, memories: ['The second thing.'], wait: true });
    clock.now += 5 * DAY;
    memory.noteUse(scope, ids);
    await memory.ingest({ scope, source: { id: 'next' }, memories: ['Something else entirely.'], wait: true });
    const used = (await store.get(ID, ids)).map(({ lastUsedAt }) => lastUsedAt);
    expect(used).toEqual(Array(3).fill(new Date(clock.now).toISOString()));
    expect(await memory.prune({ maxAgeMs: 5.5 * DAY }, { scope })).toEqual({ memories: 2, quarantined: 0 });
    expect(await textsOf(store)).toEqual(['Something else entirely.', 'The second thing.']);
  });

  test('by age counts the end of a memory that was replaced as a change', async () => {
    const { memory, scope, clock } = await livingIn('Paris');
    clock.now += 5 * DAY;
    await memory.ingest({ scope, source: { id: 'Berlin' }, memories: ['The user lives in Berlin.'], wait: true });
    expect(await memory.prune({ maxAgeMs: DAY }, { scope })).toEqual({ memories: 0, quarantined: 0 });
    clock.now += 2 * DAY;
    expect(await memory.prune({ maxAgeMs: DAY }, { scope })).toEqual({ memories: 2, quarantined: 0 });
  });

  test('by age of quarantined texts removes those that waited too long; the others keep their ids', async () => {
    const { memory, scope, store, clock } = setUp({ model: undefined, guards: [() => 'Everything is suspect.'] });
    const ingest = (...memories: string[]) =>
      memory.ingest({ scope, source: { id: memories.join(' ') }, memories, wait: true });
    for (const i of range(0, 120)) await ingest(`Old thing ${i}.`);
    clock.now += 2 * DAY;
    await ingest('New thing.');
    const waiting = await memory.quarantine.list({ scope });
    expect(waiting).toHaveLength(121);
    const policy = { quarantineMs: DAY };
    expect(await memory.prune(policy, { scope, dryRun: true })).toEqual({ memories: 0, quarantined: 120 });
    expect(await memory.quarantine.list({ scope })).toEqual(waiting);
    expect(await memory.prune(policy, { context: ADA })).toEqual({ memories: 0, quarantined: 120 });
    expect(await everything(store)).not.toContain('Old thing');
    expect(await memory.quarantine.list({ scope })).toEqual(waiting.filter(({ text }) => text === 'New thing.'));
    expect(await memory.prune(policy, { scope })).toEqual({ memories: 0, quarantined: 0 });
  });

  test('by age of quarantined texts counts from when they began to wait, not from when they were said', async () => {
    const { memory, scope, clock } = setUp({ model: undefined, guards: [() => 'Everything is suspect.'] });
    const source = { id: 'long ago', at: '2020-01-01T00:00:00Z' };
    await memory.ingest({ scope, source, memories: ['One.'], wait: true });
    expect(await memory.quarantine.list({ scope })).toMatchObject([{ at: new Date(clock.now).toISOString() }]);
    expect(await memory.prune({ quarantineMs: DAY }, { scope })).toMatchObject({ quarantined: 0 });
  });

  test('by age of quarantined texts keeps the place of the others in one job', async () => {
    const { memory, scope } = setUp({ model: undefined, guards: [() => 'Everything is suspect.'] });
    await memory.ingest({ scope, source: { id: 'a' }, memories: ['One.', 'Two.'], wait: true });
    const [one, two] = await memory.quarantine.list({ scope });
    await memory.quarantine.discard({ scope, id: one!.id });
    expect(await memory.prune({ quarantineMs: DAY }, { scope })).toMatchObject({ quarantined: 0 });
    await memory.quarantine.approve({ scope, id: two!.id });
    expect(await memory.quarantine.list({ scope })).toEqual([]);
  });

  test('counts what it removed before another process committed in between', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'prune-'));
    const [store, other] = [new FileMemoryStore(folder), new FileMemoryStore(folder)];
    const { memory, scope, clock } = setUp({ model: undefined, store });
    onTestFinished(async () => {
      await memory.close();
      await Promise.all([store.close(), other.close()]);
      await rm(folder, { recursive: true });
    });
    clock.now = Date.now() + DAY;
    const draftOf = (id: string) => ({ op: 'put' as const, memory: draft(id, `Number ${id}.`) });
    for (const part of [range(0, 100), range(100, 200), range(200, 250)])
      await store.commit(
        ID,
        part.map((i) => draftOf(`m${i}`)),
      );
    const commit = store.commit.bind(store);
    const outcomes: string[] = [];
    vi.spyOn(store, 'commit').mockImplementation(async (...args) => {
      // Another commit comes first, once before the second removal and once before the last.
      if (outcomes.length === 1 || outcomes.length === 3) await other.commit(ID, [draftOf(`new${outcomes.length}`)]);
      try {
        const result = await commit(...args);
        outcomes.push('committed');
        return result;
      } catch (error) {
        outcomes.push((error as { status: string }).status);
        throw error;
      }
    });
    const policy = { maxAgeMs: 0 };
    expect(await memory.prune(policy, { scope })).toEqual({ memories: 252, quarantined: 0 });
    expect(outcomes.filter((outcome) => outcome === 'ABORTED')).toHaveLength(2);
    expect(await textsOf(store)).toEqual([]);
  });

  test('of all scopes names those that can not be read, and prunes the others', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'prune-'));
    const open = () => setUp({ model: undefined, store: new FileMemoryStore(folder), now: () => Date.now() });
    const close = async ({ memory, store }: ReturnType<typeof open>) => {
      await memory.close();
      await store.close();
    };
    const before = open();
    for (const uid of ['ada', 'bob', 'cy', 'dan']) {
      const scope = before.memory.scopeFor('user', { context: { auth: { uid } } });
      await before.memory.create({ scope, memory: `A fact of ${uid}.` });
    }
    await close(before);
    const logs = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('log.jsonl'));
    for (const log of logs) {
      const text = await readFile(join(folder, log), 'utf8');
      if (text.includes('A fact of bob.')) await writeFile(join(folder, log), `damaged${text}`);
    }
    const after = open();
    onTestFinished(async () => {
      await close(after);
      await rm(folder, { recursive: true });
    });
    // The scope of cy is in the list, but its key is lost.
    const revision = after.store.revision.bind(after.store);
    vi.spyOn(after.store, 'revision').mockImplementation(async (scope, options) => {
      if ('userId' in scope && scope.userId === 'cy')
        throw new GenkitError({ status: 'FAILED_PRECONDITION', message: 'No key.' });
      return revision(scope, options);
    });
    const unreadable = [
      { place: expect.stringContaining('.memories') },
      { place: 'the memories of {"scope":"user","appName":"default","userId":"cy"}' },
    ];
    const policy = { maxMemories: 0 };
    expect(await after.memory.prune(policy, { dryRun: true })).toEqual({ memories: 2, quarantined: 0, unreadable });
    expect(await after.memory.prune(policy)).toEqual({ memories: 2, quarantined: 0, unreadable });
    for (const userId of ['ada', 'dan']) expect(await textsOf(after.store, userId)).toEqual([]);
  });

  test('refuses an invalid policy', async () => {
    const { memory } = setUp();
    await expect(memory.prune({ maxAge: 1 } as object)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  });
});
