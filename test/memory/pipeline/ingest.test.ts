/** Learning from messages: each message is learned from once. */
import type { MemoryExtractor } from 'genkitx-agents/memory';
import { describe, expect, test } from 'vitest';
import { extraction, ID, model, operations, setUp, textsOf, user } from './support.ts';

const source = { id: 'session-1', sessionId: 'session-1' };
const messages = [user('I always want a window seat.'), model('Noted.')];

describe('ingest', () => {
  test('resolves before the model is asked; the memory exists when the work has ended', async () => {
    const {
      memory,
      model: asked,
      reports,
      scope,
      store,
    } = setUp({ replies: [extraction('The user prefers a window seat.')] });
    const result = await memory.ingest({ scope, source, messages });
    expect(result).toMatchObject({ status: 'queued', jobIds: [expect.any(String)] });
    expect(asked.requests).toHaveLength(0);
    await memory.settled();
    expect(await textsOf(store)).toEqual(['The user prefers a window seat.']);
    expect(reports).toMatchObject([{ type: 'committed', sourceId: 'session-1', changes: { created: 1 } }]);
    const {
      memories: [found],
    } = await memory.search({ scope, query: 'window seat' });
    expect(found!.memory).toMatchObject({
      topics: ['USER_PREFERENCES'],
      confidence: 0.6,
      sources: [
        {
          id: 'session-1',
          type: 'implicit',
          trust: 0.6,
          sessionId: 'session-1',
          from: 0,
          to: 2,
          sha256: expect.stringMatching(/^[\da-f]{64}$/),
        },
      ],
    });
  });

  test('settled waits for an ingest that is not awaited', async () => {
    const { memory, scope, store } = setUp({ replies: [extraction('The user prefers a window seat.')] });
    const ingesting = memory.ingest({ scope, source, messages });
    await memory.settled();
    expect(await textsOf(store)).toEqual(['The user prefers a window seat.']);
    expect(await ingesting).toMatchObject({ status: 'queued' });
  });

  test('of the same messages a second time changes nothing and does not ask the model', async () => {
    const { memory, model: asked, scope, store } = setUp({ replies: [extraction('The user prefers a window seat.')] });
    for (let i = 0; i < 5; i++) {
      const { status } = await memory.ingest({ scope, source, messages, wait: true });
      expect(status).toBe(i === 0 ? 'committed' : 'known');
    }
    expect(asked.requests).toHaveLength(1);
    const { items } = await store.query(ID);
    expect(items.map(({ memory: { revision, sources } }) => [revision, sources.length])).toEqual([[1, 1]]);
  });

  test('reads only new messages', async () => {
    const { memory, model: asked, scope } = setUp({ replies: [extraction(), extraction()] });
    await memory.ingest({ scope, source, messages, wait: true });
    await memory.ingest({ scope, source, messages: [...messages, user('And I eat no nuts.')], wait: true });
    const text = JSON.stringify(asked.requests[1]);
    expect(text).toContain('And I eat no nuts.');
    expect(text).not.toContain('I always want a window seat.');
  });

  test('tells the model the date of the messages', async () => {
    const { memory, model: asked, scope } = setUp({ replies: [extraction()] });
    const at = '2026-11-25T09:00:00Z';
    await memory.ingest({ scope, source: { ...source, at }, messages: [user('I fly tomorrow.')], wait: true });
    expect(asked.requests[0]!.messages.at(-1)!.content[0]!.text).toContain(
      'The messages are of Wednesday, 2026-11-25.',
    );
  });

  test.each([1, 5])(
    'reads no message again if a long session continues from an early turn; read every %i turns',
    async (turns) => {
      const read: string[] = [];
      const extract: MemoryExtractor = ({ messages: given }) => {
        read.push(...given.map(({ content }) => content[0]!.text!));
        return [];
      };
      const { memory, scope } = setUp({ model: undefined, extract });
      const turnsFrom = (from: number, to: number, branch = '') =>
        Array.from({ length: to - from }, (_, i) => [
          user(`Turn ${from + i}${branch}`),
          model(`Yes ${from + i}${branch}`),
        ]).flat();
      for (let turn = turns; turn <= 130; turn += turns)
        await memory.ingest({ scope, source, messages: turnsFrom(0, turn), wait: true });
      expect(read).toHaveLength(260);
      const later = turnsFrom(12, 17, ' anew');
      await memory.ingest({ scope, source, messages: [...turnsFrom(0, 12), ...later], wait: true });
      expect(read.slice(260)).toEqual(later.map(({ content }) => content[0]!.text));
    },
  );

  test('asks the model about near memories, by numbers, and an older fact becomes invalid', async () => {
    const {
      clock,
      memory,
      model: asked,
      scope,
      store,
    } = setUp({
      replies: [
        extraction('The user lives in Paris.'),
        extraction('The user lives in Berlin.'),
        operations({ new: 1, op: 'DELETE', existing: [1] }),
      ],
    });
    await memory.ingest({ scope, source, messages: [user('I live in Paris.')], wait: true });
    const before = new Date(clock.now).toISOString();
    clock.now += 1000;
    await memory.ingest({ scope, source: { id: 'session-2' }, messages: [user('I moved to Berlin.')], wait: true });
    expect(await textsOf(store)).toEqual(['The user lives in Berlin.']);
    const then = await store.query(ID, { asOf: before });
    expect(then.items.map((hit) => hit.memory.text)).toEqual(['The user lives in Paris.']);
    const old = (await store.query(ID, { filter: { includeInvalid: true } })).items.find(
      ({ memory: { validTo } }) => validTo !== undefined,
    );
    expect(JSON.stringify(asked.requests[2])).not.toContain(old!.memory.id);
    await memory.restore({ scope, id: old!.memory.id });
    expect(await textsOf(store)).toEqual(['The user lives in Paris.']);
  });
});

test('each call of create adds a source to the fact', async () => {
  const { memory, clock, scope, store } = setUp({ model: undefined });
  const create = async (fact: string | { text: string; key: string }) => {
    clock.now += 1000;
    expect(await memory.create({ scope, memory: fact })).toMatchObject({ status: 'committed' });
  };
  for (const city of ['Paris', 'Berlin', 'Paris']) await create({ text: `The user lives in ${city}.`, key: 'home' });
  expect(await textsOf(store)).toEqual(['The user lives in Paris.']);
  await memory.prune({ maxMemories: 0 }, { scope });
  for (let i = 0; i < 2; i++) await create('The user likes tea.');
  const { items } = await store.query(ID);
  expect(items).toMatchObject([{ memory: { text: 'The user likes tea.', confidence: 0.99 } }]);
});

test('an embedder is called with the version and the configuration of its reference, for memories and for queries', async () => {
  const embedder = { name: 'configured', version: '2', config: { dimensions: 2 } };
  const { ai, memory, scope } = setUp({ embedder, model: undefined, limits: { maxAttempts: 1 } });
  const calls: unknown[] = [];
  ai.defineEmbedder({ name: 'configured' }, async (input, options) => {
    calls.push(options);
    return { embeddings: input.map(() => ({ embedding: [1, 0] })) };
  });
  const given = { scope, source, memories: ['The user lives in Paris.'], wait: true };
  expect(await memory.ingest(given)).toMatchObject({ status: 'committed' });
  const { report } = await memory.search({ scope, query: 'Where?' });
  expect(report).toMatchObject({ semantic: 'done', errors: [] });
  expect(calls.length).toBeGreaterThan(1);
  for (const options of calls) expect(options).toEqual({ version: '2', dimensions: 2 });
});

test('cuts large messages into jobs that the store takes', async () => {
  const { memory, scope } = setUp({ model: undefined, extract: 'verbatim' });
  const large = { data: 'x'.repeat(150_000) };
  const content = [{ text: 'See the attachments.' }, large, large];
  const said = [user('I have two questions.'), { role: 'user' as const, content }, { role: 'model' as const, content }];
  const alone = { role: 'user' as const, content: [...content, large, large, { text: 'The end.' }] };
  expect(await memory.ingest({ scope, source: { id: 'a' }, messages: [alone], wait: true })).toMatchObject({
    status: 'committed',
  });
  expect(await memory.ingest({ scope, source, messages: said, wait: true })).toMatchObject({ status: 'committed' });
});
