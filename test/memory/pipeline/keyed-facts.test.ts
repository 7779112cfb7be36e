/** Facts with a key: only one fact of each key is valid. */
import { describe, expect, test } from 'vitest';
import { all, operations, setUp, textsOf } from './support.ts';

describe('a fact with a key', () => {
  const home = (city: string, expiresAt?: string) => ({
    text: `The user lives in ${city}.`,
    key: 'home',
    ...(expiresAt !== undefined && { expiresAt }),
  });

  test('expires with the statement that wins', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    let count = 0;
    const say = (type: 'tool' | 'explicit', ...fact: Parameters<typeof home>) => {
      clock.now += 1000;
      return memory.ingest({ scope, source: { id: `s${count++}`, type }, memories: [home(...fact)], wait: true });
    };
    await say('tool', 'Paris');
    expect((await all(store))[0]!.expiresAt).toBe('2026-01-01T01:00:01.000Z');
    await say('tool', 'Paris');
    expect((await all(store))[0]!.expiresAt).toBe('2026-01-01T01:00:02.000Z');
    await say('explicit', 'Berlin');
    await say('tool', 'Rome');
    clock.now += 7_200_000;
    await memory.prune({});
    expect(await all(store)).toMatchObject([{ text: 'The user lives in Berlin.' }]);
    expect((await all(store))[0]!.expiresAt).toBeUndefined();
    await say('explicit', 'Oslo', '2027-01-01T00:00:00.000Z');
    expect(await all(store)).toMatchObject([
      { text: 'The user lives in Oslo.', expiresAt: '2027-01-01T00:00:00.000Z' },
    ]);
  });

  test('replaces an expired fact, even a more trusted one', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    const status = (text: string) => ({ text: `The user is ${text}.`, key: 'status' });
    const expiresAt = new Date(clock.now + 1000).toISOString();
    await memory.create({ scope, memory: { ...status('on holiday'), expiresAt } });
    clock.now += 1000;
    await memory.create({ scope, memory: status('at work'), source: { id: 'chat', type: 'implicit' } });
    expect(await all(store)).toMatchObject([{ text: 'The user is at work.', sources: [{ id: 'chat' }] }]);
    expect((await all(store))[0]!.expiresAt).toBeUndefined();
    const { memories } = await memory.search({ scope, query: 'work' });
    expect(memories.map((hit) => hit.memory.text)).toEqual(['The user is at work.']);
  });

  test('said at the same time is the later one', async () => {
    const { memory, scope, store } = setUp({ model: undefined });
    for (const city of ['Paris', 'Berlin', 'Oslo']) await memory.create({ scope, memory: home(city) });
    expect(await textsOf(store)).toEqual(['The user lives in Oslo.']);
  });

  test('has importance, topics, data and schema of the valid statement', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    const say = async (members: object, type: 'tool' | 'explicit' = 'explicit') => {
      clock.now += 1000;
      await memory.create({ scope, memory: { text: 'x', key: 'k', ...members }, source: { id: `${clock.now}`, type } });
      return (await all(store))[0]!;
    };
    const first = { text: 'The user is new.', topics: ['A'], importance: 0.2, data: { age: 1 }, schemaId: 'age' };
    await say(first);
    const tool = { text: 'The user is a tool.', topics: ['T'], importance: 0.9, data: { age: 2 }, schemaId: 'tool' };
    expect(await say(tool, 'tool')).toMatchObject(first);
    const next = await say({ text: 'The user is old.', topics: ['B'], importance: 1 });
    expect(next).toMatchObject({ text: 'The user is old.', topics: ['B'], importance: 1 });
    expect([next.data, next.schemaId]).toEqual([undefined, undefined]);
    const same = await say({ text: 'The user is old.', topics: ['C'], importance: 0.1 });
    expect(same).toMatchObject({ topics: ['B', 'C'], importance: 1 });
  });

  test('is valid again if it is stated after a fact without a key replaced it, with the same trust', async () => {
    const { memory, clock, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'DELETE', existing: [1] }) });
    let count = 0;
    const say = (fact: string | object, type: 'tool' | 'explicit' = 'explicit') => {
      clock.now += 1000;
      const source = { id: `s${count++}`, type };
      return memory.ingest({ scope, source, memories: [fact as string], wait: true });
    };
    await say(home('Paris'));
    await say('The user has moved to Berlin.');
    await say('The user has moved to Oslo.');
    expect(await textsOf(store)).toEqual(['The user has moved to Oslo.']);
    await say(home('Madrid'), 'tool');
    expect(await textsOf(store)).toEqual(['The user has moved to Oslo.']);
    await say(home('Rome'));
    expect(await textsOf(store)).toEqual(['The user lives in Rome.']);
    const { memories } = await memory.search({ scope, query: 'Where does the user live? Rome' });
    expect(memories.map((hit) => hit.memory.text)).toEqual(['The user lives in Rome.']);
    const rome = (await all(store)).find(({ validTo }) => validTo === undefined)!;
    const oslo = (await all(store)).find(({ text }) => text.includes('Oslo'))!;
    expect(oslo).toMatchObject({ validTo: new Date(clock.now).toISOString(), supersededBy: rome.id });
  });
});

describe('a source that goes back to what it said before', () => {
  const theme = (value: string) => ({ text: `The theme is ${value}.`, key: 'theme' });

  test('is accepted, and its unchanged statements count once', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    const say = async (value: string) => {
      clock.now += 1000;
      const options = { scope, source: { id: 'form' }, memories: [theme(value)], wait: true };
      expect(await memory.ingest(options)).toMatchObject({ status: 'committed' });
      for (let i = 0; i < 5; i++) expect(await memory.ingest(options)).toMatchObject({ status: 'known' });
      expect(await textsOf(store)).toEqual([`The theme is ${value}.`]);
    };
    for (const value of ['dark', 'light', 'dark', 'light']) await say(value);
    expect(await all(store)).toMatchObject([{ revision: 4, sources: [{ id: 'form' }], confidence: 0.95 }]);
  });

  test('is also accepted without keys', async () => {
    const { memory, clock, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'DELETE', existing: [1] }) });
    for (const city of ['Paris', 'Berlin', 'Paris']) {
      clock.now += 1000;
      const options = { scope, source: { id: 's' }, memories: [`The user lives in ${city}.`], wait: true };
      expect(await memory.ingest(options)).toMatchObject({ status: 'committed' });
      expect(await memory.ingest(options)).toMatchObject({ status: 'known' });
      expect(await textsOf(store)).toEqual([`The user lives in ${city}.`]);
    }
  });

  test('counts what it states after it was implied, which an implicit fact of another does not replace', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    for (const [id, type, text] of [
      ['a', 'implicit', 'dark'],
      ['a', 'explicit', 'dark'],
      ['b', 'implicit', 'light'],
    ] as const) {
      clock.now += 1000;
      const options = { scope, source: { id, type }, memories: [theme(text)], wait: true };
      expect(await memory.ingest(options)).toMatchObject({ status: 'committed' });
    }
    expect(await textsOf(store)).toEqual(['The theme is dark.']);
  });

  test('within one call of several jobs keeps its last word, however often the call is repeated', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    const books = Array.from({ length: 40 }, (_, i) => ({ text: `The user owns book ${i}.`, key: `book ${i}` }));
    for (let i = 0; i < 3; i++) {
      clock.now += 1000;
      const memories = [theme('dark'), ...books, theme('light')];
      const { status } = await memory.ingest({ scope, source: { id: 'import' }, memories, wait: true });
      expect(status).toBe(i === 0 ? 'committed' : 'known');
      expect(await textsOf(store)).toContain('The theme is light.');
      expect(await all(store)).toHaveLength(41);
    }
  });
});
