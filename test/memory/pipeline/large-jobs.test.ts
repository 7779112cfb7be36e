/** Results that are too large for one commit or one note. */
import { describe, expect, test } from 'vitest';
import { all, extraction, ID, model as says, operations, range, setUp, textsOf, user } from './support.ts';

describe('a result that is larger than a commit', () => {
  test.each(['learned', 'approved'])('is split, and the model is asked once: messages that are %s', async (how) => {
    const many = Array.from({ length: 75 }, (_, i) => `The user owns book number ${i}.`);
    let fail = true;
    const { memory, model, scope, store, clock } = setUp({
      guards: how === 'approved' ? [({ text }) => (text.includes('My books') ? 'Held.' : undefined)] : [],
      replies: [extraction(...many)],
      otherwise: async () => {
        if (fail && (await textsOf(store)).length > 0) throw new Error('The model is down.');
        return operations();
      },
    });
    const messages = [user('My books: ...')];
    const learned = await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
    const [held] = await memory.quarantine.list({ scope });
    expect(held !== undefined).toBe(how === 'approved');
    const { status } = held ? await memory.quarantine.approve({ scope, id: held.id }) : learned;
    expect(status).toBe('failed');
    expect(await textsOf(store)).toHaveLength(30);
    fail = false;
    clock.now += 10_000;
    await memory.ingest({ scope, source: { id: 'other' }, memories: ['x'], wait: true });
    expect((await textsOf(store)).filter((text) => text.startsWith('The user owns'))).toHaveLength(75);
    const extractions = model.requests.filter((request) => JSON.stringify(request.messages).includes('My books'));
    expect(extractions).toHaveLength(1);
    expect(JSON.stringify((await store.notes(ID, 'pipeline')).notes)).not.toContain('book number');
  });

  test.each([
    [200, 1_800],
    [1_000, 500],
  ])('and larger than a note is also stored: %d facts of %d characters', async (count, length) => {
    const paragraphs = Array.from({ length: count }, (_, i) => `${i} ${'x'.repeat(length)}`);
    const { memory, scope, store, reports } = setUp({ extract: () => paragraphs, model: undefined });
    await memory.ingest({ scope, source: { id: 's' }, messages: [user('My book: ...')], wait: true });
    expect(reports).toMatchObject([{ type: 'committed', changes: { created: count } }]);
    expect(await textsOf(store)).toEqual(paragraphs.toSorted());
    expect(JSON.stringify((await store.notes(ID, 'pipeline')).notes)).not.toContain('xxx');
  });

  test('is also split if the memories have too many sources for a commit', async () => {
    const { memory, scope, store } = setUp({ model: undefined, worker: false });
    const memories = Array.from({ length: 20 }, (_, i) => `${i} ${'x'.repeat(20_000)}`);
    // 20 memories with 6 sources of 20 kB take 2.4 MB.
    for (let night = 1; night <= 6; night++) {
      const given = { scope, source: { id: `night ${night}` }, memories, wait: true };
      expect(await memory.ingest(given)).toMatchObject({ status: 'committed' });
    }
    const kept = await all(store);
    expect(kept.map(({ sources }) => sources.length)).toEqual(memories.map(() => 6));
  });

  test('is also split if the facts replace more memories than a commit takes', async () => {
    let replaces = false;
    const { memory, scope, store } = setUp({
      limits: { maxInvalidations: 1_000 },
      // Each fact replaces all known memories of its kitchen.
      otherwise: ({ request: { messages } }) => {
        const text = JSON.stringify(messages.at(-1)!.content);
        const [known, facts] = text.split('New facts:').map((part) => part.match(/kitchen\d+/g) ?? []);
        const numbersOf = (kitchen: string) => known!.flatMap((one, i) => (one === kitchen ? [i + 1] : []));
        return operations(
          ...(replaces ? facts!.map((one, i) => ({ new: i + 1, op: 'DELETE', existing: numbersOf(one) })) : []),
        );
      },
    });
    const keep = (id: string, memories: string[]) => memory.ingest({ scope, source: { id }, memories, wait: true });
    const liked = range(0, 150).map((i) => `The user likes dish ${i} of kitchen${Math.floor(i / 5)}.`);
    const disliked = range(0, 30).map((i) => `The user dislikes kitchen${i}.`);
    await keep('then', liked);
    replaces = true;
    expect(await keep('now', disliked)).toMatchObject({ status: 'committed' });
    expect(await textsOf(store)).toEqual(disliked.toSorted());
  });

  test('many messages become several jobs, and verbatim each message a memory', async () => {
    const { memory, model, scope, store } = setUp();
    const messages = Array.from({ length: 100 }, (_, i) => (i % 2 ? says(`Answer ${i}`) : user(`Question ${i}`)));
    const result = await memory.ingest({ scope, source: { id: 'chat' }, messages, extract: 'verbatim', wait: true });
    expect(result.jobIds).toHaveLength(4);
    const kept = await all(store);
    expect(kept).toHaveLength(100);
    expect(kept.find(({ text }) => text === 'Answer 41')).toMatchObject({
      role: 'model',
      sources: [{ from: 41, to: 42, sessionId: 'chat' }],
    });
    expect(model.requests).toHaveLength(0);
    expect(
      await memory.ingest({ scope, source: { id: 'chat' }, messages, extract: 'verbatim', wait: true }),
    ).toMatchObject({ status: 'known' });
  });
});
