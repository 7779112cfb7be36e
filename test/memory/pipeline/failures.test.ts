/** Jobs when the model, a worker or the queue fails. */
import { GenkitError } from 'genkit';
import { logger } from 'genkit/logging';
import { InMemoryMemoryStore, memoryManager, processMemoryJobs } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { LearnInput } from '../../../src/memory/pipeline/records/job-input.ts';
import { sourceNoteOperation } from '../../../src/memory/pipeline/records/learning-state.ts';
import { rangePart, type SourceNote } from '../../../src/memory/pipeline/records/ranges.ts';
import { echoTexts } from './corroborate.ts';
import { extraction, ID, operations, range, setUp, textsOf, until, user } from './support.ts';

const source = { id: 'session-1' };
const messages = [user('I always want a window seat.')];
const fails = () => {
  throw new Error('The model is down.');
};

describe('a job that fails', () => {
  test.each([
    [0, 1000],
    [0.5, 2000],
    [1, 3000],
  ])('waits a random time: with the random number %d, %d ms', async (random, wait) => {
    const { memory, clock, scope } = setUp({ otherwise: fails, worker: false, random: () => random });
    await memory.ingest({ scope, source, messages });
    await processMemoryJobs(memory);
    const [job] = await memory.jobs.list();
    expect(Date.parse(job!.dueAt) - clock.now).toBe(wait);
  });

  test('is tried five times, with longer waits, and is then dead; after a replay it is done', async () => {
    const { memory, model, clock, reports, scope, store } = setUp({ otherwise: fails, worker: false });
    await memory.ingest({ scope, source, messages });
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 5; attempt++) {
      const result = await processMemoryJobs(memory);
      expect(result).toMatchObject(attempt < 5 ? { failed: 1, dead: 0 } : { failed: 0, dead: 1 });
      const [job] = await memory.jobs.list();
      waits.push(Date.parse(job!.dueAt) - clock.now);
      expect(await processMemoryJobs(memory)).toMatchObject({ done: 0, failed: 0, dead: 0 });
      clock.now = Math.max(clock.now, Date.parse(job!.dueAt));
    }
    expect(waits.slice(0, 4)).toEqual([2000, 4000, 8000, 16000]);
    expect(model.requests).toHaveLength(5);
    const [dead] = await memory.jobs.list({ state: 'dead' });
    expect(dead).toMatchObject({
      sourceId: 'session-1',
      attempts: 5,
      error: expect.stringContaining('The model is down.'),
    });
    expect(reports.map(({ type }) => type)).toEqual(['failed', 'failed', 'failed', 'failed', 'dead']);
    // The range is not enqueued a second time.
    expect(await memory.ingest({ scope, source, messages })).toEqual({ status: 'known', jobIds: [] });

    await memory.jobs.replay(dead!.id);
    model.reply(extraction('The user prefers a window seat.'));
    expect(await processMemoryJobs(memory)).toMatchObject({ done: 1 });
    expect(await textsOf(store)).toEqual(['The user prefers a window seat.']);
    expect(await memory.jobs.list()).toEqual([]);
  });

  test('or is enqueued while a caller waits for another job of its scope, runs after that', async () => {
    let goOn!: () => void;
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    const read: string[] = [];
    const { memory, scope, store } = setUp({
      model: undefined,
      extract: async ({ messages: [message] }) => {
        const { text } = message!.content[0]!;
        read.push(text!);
        if (text === 'First.') await mayGoOn;
        return [text!];
      },
    });
    const looks = vi.spyOn(store, 'listJobs');
    const first = memory.ingest({ scope, source: { id: 'a' }, messages: [user('First.')], wait: true });
    await until(() => read.length === 1);
    expect(await memory.ingest({ scope, source: { id: 'b' }, messages: [user('Second.')] })).toMatchObject({
      status: 'queued',
    });
    // The background worker has found the scope busy.
    await until(() => looks.mock.calls.length > 0);
    goOn();
    expect(await first).toMatchObject({ status: 'committed' });
    await memory.settled();
    expect(read).toEqual(['First.', 'Second.']);
    expect(await memory.jobs.list()).toEqual([]);
  });

  test.each(['first', 'last'] as const)(
    'beside others of a growing conversation: replayed, the %s one first, each message is read once',
    async (which) => {
      let isDown = true;
      const read: string[] = [];
      const { memory, scope } = setUp({
        model: undefined,
        worker: false,
        limits: { maxAttempts: 1 },
        extract: ({ messages: some }) => {
          if (isDown) fails();
          read.push(...some.map(({ content }) => content[0]!.text!));
          return [];
        },
      });
      const talk = ['One.', 'Two.', 'Three.'];
      for (let i = 1; i <= 3; i++) await memory.ingest({ scope, source, messages: talk.slice(0, i).map(user) });
      expect(await processMemoryJobs(memory)).toMatchObject({ dead: 3 });
      isDown = false;
      const dead = await memory.jobs.list({ state: 'dead' });
      for (const { id } of which === 'first' ? dead : dead.toReversed()) {
        await memory.jobs.replay(id);
        expect(await processMemoryJobs(memory)).toMatchObject({ done: 1, dead: 0 });
      }
      expect(read.toSorted()).toEqual(talk.toSorted());
      expect(await memory.jobs.list()).toEqual([]);
      expect(await memory.ingest({ scope, source, messages: talk.map(user) })).toMatchObject({ status: 'known' });
    },
  );

  test('and is discarded does not mark the messages of another dead job as read', async () => {
    let isDown = true;
    const { memory, scope, store } = setUp({
      model: undefined,
      worker: false,
      limits: { maxAttempts: 1 },
      extract: (request) => (isDown ? fails() : echoTexts(request)),
    });
    const talk = ['One.', 'Two.'].map(user);
    for (const end of [1, 2]) await memory.ingest({ scope, source, messages: talk.slice(0, end) });
    await processMemoryJobs(memory);
    const [first, second] = await memory.jobs.list({ state: 'dead' });
    await memory.jobs.discard(second!.id);
    isDown = false;
    await memory.jobs.replay(first!.id);
    await processMemoryJobs(memory);
    expect(await textsOf(store)).toEqual(['One.']);
    expect(await memory.ingest({ scope, source, messages: talk })).toMatchObject({ status: 'known' });
  });

  test('after a first commit stores no message twice: the id is the same in each attempt', async () => {
    const ids = async (): Promise<string[]> => {
      const { memory, scope } = setUp({ model: undefined, extract: 'verbatim' });
      await memory.ingest({ scope, source, messages: ['One.', 'One.', 'Two.'].map(user), wait: true });
      return (await memory.list({ scope })).items.map(({ id }) => id).toSorted();
    };
    const first = await ids();
    expect(new Set(first).size).toBe(3);
    expect(await ids()).toEqual(first);
  });

  test('keeps its messages; the other jobs of the conversation read theirs, each once', async () => {
    let isDown = true;
    const { memory, scope, store } = setUp({
      model: undefined,
      worker: false,
      extract: 'verbatim',
      limits: { maxAttempts: 1 },
      guards: [({ text }) => (isDown && text === 'Two.' ? fails() : undefined)],
    });
    const talk = ['One.', 'Two.', 'Three.', 'Four.', 'Five.'];
    for (const end of [1, 2, 3, 5]) {
      await memory.ingest({ scope, source, messages: talk.slice(0, end).map(user) });
      if (end === 1) await processMemoryJobs(memory);
    }
    expect(await processMemoryJobs(memory)).toMatchObject({ done: 2, dead: 1 });
    expect(await textsOf(store)).toEqual(['Five.', 'Four.', 'One.', 'Three.']);
    const [dead] = await memory.jobs.list({ state: 'dead' });
    isDown = false;
    await memory.jobs.replay(dead!.id);
    await processMemoryJobs(memory);
    expect(await textsOf(store)).toEqual(talk.toSorted());
  });

  test('of which two parts were not read is learned from twice, and done once', async () => {
    const read: string[][] = [];
    const { memory, scope, reports } = setUp({
      model: undefined,
      worker: false,
      extract: ({ messages: some }) => {
        read.push(some.map(({ content }) => content[0]!.text!));
        return read.at(-1)!;
      },
    });
    const talk = ['One.', 'Two.', 'Three.'].map(user);
    await memory.ingest({ scope, source, messages: talk });
    const [job] = (await memory.store.listJobs()).items;
    // The second message counts as read, from a discarded branch of the conversation.
    const input = job!.input as unknown as LearnInput;
    const second = rangePart(input.range, { from: 1, to: 2 });
    const note = { version: 1, ranges: [second], seen: [] };
    await memory.store.commit(ID, [sourceNoteOperation(source.id, note as SourceNote)]);
    expect(await processMemoryJobs(memory)).toMatchObject({ done: 1 });
    expect(read).toEqual([['One.'], ['Three.']]);
    expect(reports).toMatchObject([{ type: 'committed', changes: { created: 2 } }]);
    expect(await memory.jobs.list()).toEqual([]);
  });

  test('and is dead can be discarded: it leaves no data, and its messages are not learned later', async () => {
    const limits = { maxAttempts: 1 };
    const { memory, model, scope, store } = setUp({ replies: [fails], limits, worker: false });
    await memory.ingest({ scope, source, messages });
    const [job] = await memory.jobs.list();
    await expect(memory.jobs.discard(job!.id)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    await processMemoryJobs(memory);
    await expect(memory.jobs.discard('another')).rejects.toThrow(/no dead memory job "another"/);
    await memory.jobs.discard(job!.id);
    expect(await memory.jobs.list()).toEqual([]);
    expect(await memory.ingest({ scope, source, messages })).toEqual({ status: 'known', jobIds: [] });

    const next = user('I never check in luggage.');
    await memory.ingest({ scope, source, messages: [...messages, next] });
    model.reply(extraction('The user never checks in luggage.'));
    await processMemoryJobs(memory);
    expect(JSON.stringify(model.requests.at(-1))).not.toContain('always want');
    expect(await textsOf(store)).toEqual(['The user never checks in luggage.']);
  });

  test('and is discarded, of given facts: they can be given again', async () => {
    const embedder = 'broken';
    const { ai, memory, scope, store } = setUp({ embedder, model: undefined, limits: { maxAttempts: 1 } });
    let calls = 0;
    ai.defineEmbedder({ name: embedder }, async (input) => {
      if (++calls === 1) fails();
      return { embeddings: input.map(() => ({ embedding: [1, 0] })) };
    });
    // Too many messages for one job: the first job dies, the second is done.
    const memories = Array.from({ length: 40 }, (_, i) => `Fact${i} is about topic${i}.`);
    const facts = { scope, source, memories, wait: true } as const;
    expect(await memory.ingest(facts)).toMatchObject({ status: 'failed' });
    const dead = await memory.jobs.list({ state: 'dead' });
    expect(dead).toHaveLength(1);
    await memory.jobs.discard(dead[0]!.id);
    expect(await memory.ingest(facts)).toMatchObject({ status: 'committed' });
    expect(await textsOf(store)).toEqual(memories.toSorted());
  });

  test('and is discarded while its scope is erased, leaves no trace of the user', async () => {
    const { memory, scope, store } = setUp({ replies: [fails], limits: { maxAttempts: 1 }, worker: false });
    await memory.ingest({ scope, source, messages });
    await processMemoryJobs(memory);
    const [job] = await memory.jobs.list({ state: 'dead' });
    const readNotes = vi.spyOn(store, 'notes');
    readNotes.mockImplementationOnce(async (...call) => {
      await memory.erase({ scope });
      return store.notes(...call);
    });
    await expect(memory.jobs.discard(job!.id)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    expect((await store.listScopes()).items).toEqual([]);
  });

  test('and is discarded while another process tries it again, is not learned from', async () => {
    const limits = { maxAttempts: 2 };
    const { memory, model, clock, scope, store } = setUp({ otherwise: fails, limits, worker: false });
    await memory.ingest({ scope, source, messages });
    for (let attempt = 0; attempt < 2; attempt++) {
      await processMemoryJobs(memory);
      clock.now += 60_000;
    }
    const [job] = await memory.jobs.list({ state: 'dead' });
    vi.spyOn(store, 'changeJob').mockImplementationOnce(async (...call) => {
      await memory.jobs.replay(job!.id);
      await store.claimJob({ owner: 'another', leaseMs: 1000, now: clock.now });
      return store.changeJob(...call);
    });
    await memory.jobs.discard(job!.id);
    clock.now += 2000;
    await processMemoryJobs(memory);
    expect(model.requests).toHaveLength(2);
    expect(await memory.jobs.list()).toEqual([]);
  });

  describe('while a caller waits', () => {
    const limits = { backOffMs: 10, maxBackOffMs: 20 };
    const window = 'The user prefers a window seat.';

    /** Lets the back-off pass. */
    async function backOff({ memory, clock }: Pick<ReturnType<typeof setUp>, 'memory' | 'clock'>) {
      clock.now += 20;
      await vi.advanceTimersByTimeAsync(20);
      await memory.settled();
    }

    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
    });

    test.each([1, 2])('is tried again in the background, after %i failures', async (failures) => {
      const replies = [...Array.from({ length: failures }, () => fails), extraction(window)];
      const { memory, clock, scope, store } = setUp({ replies, limits });
      expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
      for (let i = 0; i < failures; i++) await backOff({ memory, clock });
      expect(await textsOf(store)).toEqual([window]);
      expect(await memory.jobs.list()).toEqual([]);
    });

    test('is not tried again without a worker', async () => {
      const { memory, clock, scope, model } = setUp({ replies: [fails], limits, worker: false });
      expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
      await backOff({ memory, clock });
      expect(model.requests).toHaveLength(1);
      expect(await memory.jobs.list()).toMatchObject([{ state: 'waiting', attempts: 1 }]);
    });

    test('is tried again when its time comes, although another job failed before it', async () => {
      let calls = 0;
      const extract = () => {
        if (++calls <= 3) throw new Error('The model is down.');
        return [];
      };
      const { memory, clock, scope } = setUp({
        model: undefined,
        extract,
        limits: { backOffMs: 10, maxBackOffMs: 100 },
      });
      const bob = memory.scopeFor('user', { context: { auth: { uid: 'bob' } } });
      await memory.ingest({ scope, source, messages, wait: true });
      await backOff({ memory, clock });
      // The second attempt has failed, so the job waits for 20 ms; the job of the other scope waits for 10 ms.
      await memory.ingest({ scope: bob, source, messages, wait: true });
      for (let i = 0; i < 2; i++) {
        clock.now += 10;
        await vi.advanceTimersByTimeAsync(10);
        await memory.settled();
      }
      expect(await memory.jobs.list()).toEqual([]);
    });

    test('blocks the next job of its scope: the status is queued, and both are done later', async () => {
      const { memory, ai, clock, scope, store } = setUp({
        replies: [fails, extraction(window)],
        limits,
        worker: false,
      });
      await memory.ingest({ scope, source, messages });
      expect(await processMemoryJobs(memory)).toMatchObject({ failed: 1 });
      const extract = () => [window];
      const other = memoryManager(ai, { store, now: () => clock.now, extract });
      const created = await other.create({ scope, memory: 'The user eats no nuts.' });
      expect(created).toEqual({ status: 'queued', jobIds: [expect.any(String)] });
      expect(await other.create({ scope, memory: 'The user flies often.', wait: false })).toMatchObject({
        status: 'queued',
      });
      expect(await memory.ingest({ scope, source, messages, wait: true })).toEqual({ status: 'failed', jobIds: [] });
      await other.settled();
      await backOff({ memory: other, clock });
      expect(await textsOf(store)).toEqual(['The user eats no nuts.', 'The user flies often.', window]);
    });
  });

  test('keeps an error that is not cut inside of an emoji', async () => {
    const fail = () => {
      throw new Error(`${'x'.repeat(299)}😀 is down.`);
    };
    const { memory, scope } = setUp({ model: undefined, extract: fail });
    await memory.ingest({ scope, source, messages, wait: true });
    expect((await memory.jobs.list())[0]!.error).toBe('x'.repeat(299));
  });

  test('a malformed answer is repaired once', async () => {
    const { memory, model, scope, store } = setUp({
      replies: ['Sorry!', extraction('The user prefers a window seat.')],
    });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(model.requests).toHaveLength(2);
    expect(await textsOf(store)).toHaveLength(1);
  });

  test('null members are ignored, and so is data without a schema in a topic', async () => {
    const window = 'The user prefers a window seat.';
    const { memory, model, scope, store } = setUp({
      summary: true,
      replies: [
        JSON.stringify({
          memories: [
            {
              text: window,
              topics: ['USER_PREFERENCES'],
              messages: null,
              importance: null,
              explicit: null,
              data: null,
            },
            { text: 'The user flies often.', topics: ['USER_PREFERENCES'], data: {} },
          ],
          summary: null,
        }),
        operations({ new: 1, op: 'CREATE', existing: null, text: null }, { new: 2, op: 'CREATE' }),
        extraction('The user likes a window seat when flying.'),
        operations({ new: 1, op: 'CREATE', existing: null, text: null }),
      ],
    });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(await textsOf(store)).toEqual(['The user flies often.', window]);
    const { items } = await store.query(ID);
    for (const { memory: kept } of items) {
      expect(kept).toMatchObject({ importance: 0.5, sources: [{ type: 'implicit' }] });
      expect(kept).not.toHaveProperty('data');
    }
    expect(await memory.summary({ scope })).toBeUndefined();
    await memory.ingest({ scope, source: { id: 'session-2' }, messages, wait: true });
    expect(await textsOf(store)).toHaveLength(3);
    expect(model.requests).toHaveLength(4);
  });

  test('numbers of messages that are still wrong after the repair are left out', async () => {
    const wrong = extraction({ text: 'The user prefers a window seat.', messages: [0, 7] });
    const { memory, model, scope, store } = setUp({ replies: [wrong, wrong] });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(JSON.stringify(model.requests[1])).toContain('messages may hold the numbers');
    const { items } = await store.query(ID);
    expect(items).toMatchObject([{ memory: { sources: [{ from: 0, to: 1 }] } }]);
  });

  test.each([
    ['that reached the output limit', 'length', extraction('The user must never eat nuts but can eat')],
    [
      'without an end, in a text',
      'stop',
      '```json\n{"memories": [{"topics": ["USER_PREFERENCES"], "text": "The user can eat {nuts} on',
    ],
    [
      'without an end, after a fact',
      'stop',
      '{"memories": [{"text": "The user eats nuts.", "topics": ["USER_PREFERENCES"]}',
    ],
  ] as const)('an answer %s is malformed: nothing of it is kept', async (_, finishReason, text) => {
    const cut = { finishReason, message: { role: 'model' as const, content: [{ text: text as string }] } };
    const { memory, model, scope, store } = setUp({ replies: [cut, extraction('The user likes {tea}.')] });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(JSON.stringify(model.requests[1])).toContain('it is cut off');
    expect(await textsOf(store)).toEqual(['The user likes {tea}.']);
  });

  test('an answer is accepted if it is clear what the model means', async () => {
    const long = `The user likes ${'very '.repeat(500)}much tea.`;
    const facts = [
      { text: 'The user prefers a window seat.', topics: 'user_preferences', messages: ['0'], importance: 5 },
      { text: long, topics: ['USER_PREFERENCES'], messages: 0 },
    ];
    const { memory, model, scope, store } = setUp({
      replies: [JSON.stringify({ memories: facts }), operations({ new: '1', op: 'CREATE' }, { new: 2, op: 'CREATE' })],
    });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(model.requests).toHaveLength(2);
    const kept = (await store.query(ID)).items.map((hit) => hit.memory).toSorted((a, b) => b.importance - a.importance);
    expect(kept.map(({ importance, topics }) => [importance, topics])).toEqual([
      [1, ['USER_PREFERENCES']],
      [0.5, ['USER_PREFERENCES']],
    ]);
    expect(kept[1]!.text).toBe(long.slice(0, 2_000));
  });

  test('an answer that is malformed twice fails the attempt', async () => {
    const { memory, model, scope } = setUp({ replies: ['Sorry!', '{"memories": [{"text": 7}]}'] });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
    expect(model.requests).toHaveLength(2);
    const [job] = await memory.jobs.list();
    expect(job).toMatchObject({ state: 'waiting', attempts: 1, error: expect.stringContaining('malformed twice') });
  });
});

test.each<[string, () => void]>([
  [
    'throws',
    () => {
      throw new Error('The listener is broken.');
    },
  ],
  ['rejects', () => Promise.reject(new Error('The listener is broken.'))],
])('an onReport that %s is logged, and the next job runs', async (_, onReport) => {
  const error = vi.spyOn(logger, 'error').mockImplementation(() => {});
  onTestFinished(() => error.mockRestore());
  const { memory, scope, store } = setUp({ extract: echoTexts, onReport });
  await memory.ingest({ scope, source, messages });
  await memory.ingest({ scope, source: { id: 'session-2' }, messages: [user('I like tea.')] });
  await memory.settled();
  expect(await textsOf(store)).toEqual(['I always want a window seat.', 'I like tea.']);
  expect(error).toHaveBeenCalledTimes(2);
  expect(error).toHaveBeenCalledWith(expect.stringContaining('The listener is broken.'));
});

test('an isSuccess that does not answer fails the ingest at the timeout, so that close does not wait for it', async () => {
  const { memory, scope } = setUp({ isSuccess: () => new Promise(() => {}), limits: { timeoutMs: 20 } });
  const ingesting = memory.ingest({ scope, source, messages, procedure: true });
  await expect(ingesting).rejects.toThrow('isSuccess did not answer within 20 ms');
  await memory.close();
});

test('undefined limits get their defaults', async () => {
  const limits = { timeoutMs: undefined, leaseMs: undefined, maxJobs: undefined };
  const { memory, scope, store } = setUp({ extract: echoTexts, limits, trust: { implicit: undefined } });
  expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'committed' });
  expect(await textsOf(store)).toEqual(['I always want a window seat.']);
});

describe('a job whose embedder does not answer', () => {
  const hanging = (timeoutMs: number) => {
    const set = setUp({ embedder: 'hanging', extract: 'verbatim', limits: { timeoutMs } });
    let hangs: (() => void) | undefined;
    const isHanging = new Promise<void>((resolve) => (hangs = resolve));
    set.ai.defineEmbedder({ name: 'hanging' }, () => {
      hangs!();
      return new Promise(() => {});
    });
    return { ...set, isHanging };
  };

  test('fails its attempt at the timeout', async () => {
    const { memory, scope } = hanging(20);
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
    const [job] = await memory.jobs.list();
    expect(job).toMatchObject({
      state: 'waiting',
      attempts: 1,
      error: expect.stringContaining('The embedder did not answer within 20 ms'),
    });
  });

  test.each([
    ['a commit', { messages }],
    ['the search for similar memories', { memories: ['The user flies often.'] }],
  ])('is given back by close: %s', async (_, said) => {
    const { memory, scope, isHanging } = hanging(60_000);
    await memory.ingest({ scope, source, ...said });
    await isHanging;
    await memory.close();
    const [job] = await memory.jobs.list();
    expect(job).toMatchObject({ state: 'waiting', attempts: 0 });
  });
});

describe('the queue', () => {
  test('refuses jobs above its limit, and counts and reports them', async () => {
    const { memory, reports, scope } = setUp({ worker: false, limits: { maxJobs: 3 } });
    const statuses = [];
    for (let i = 0; i < 5; i++)
      statuses.push((await memory.ingest({ scope, source: { id: `s${i}` }, messages })).status);
    expect(statuses).toEqual(['queued', 'queued', 'queued', 'full', 'full']);
    expect(reports).toMatchObject([
      { type: 'full', sourceId: 's3', refused: 1 },
      { type: 'full', sourceId: 's4', refused: 2 },
    ]);
  });

  test.each([
    ['taken from', 'claimJob', false],
    ['taken from for a caller that waits', 'claimJob', true],
    ['checked for the jobs of other workers', 'listJobs', false],
    ['changed after a failure, for a caller that waits', 'changeJob', true],
  ] as const)('that could not be %s is worked off when the store answers again', async (_, method, wait) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    vi.spyOn(logger, 'warn').mockReturnValue();
    let isDown = true;
    const { memory, clock, scope, store } = setUp({
      extract: (request) => (isDown && method === 'changeJob' ? fails() : echoTexts(request)),
    });
    const pass = async () => {
      await memory.settled();
      clock.now += 60_000;
      await vi.advanceTimersByTimeAsync(60_000);
    };
    if (method === 'listJobs') {
      await setUp({ store, worker: false }).memory.ingest({ scope, source: { id: 'session-0' }, messages });
      await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now });
    }
    const down = vi
      .spyOn(store, method)
      .mockRejectedValue(new GenkitError({ status: 'UNAVAILABLE', message: 'It is down.' }));
    await memory.ingest({ scope, source, messages, wait }).catch(() => undefined);
    for (let i = 0; i < 3; i++) await pass();
    down.mockRestore();
    isDown = false;
    for (let i = 0; i < 2; i++) await pass();
    await memory.settled();
    expect(await memory.jobs.list()).toEqual([]);
  });

  test('that is full of jobs without a worker is worked off by a process that has one', async () => {
    const { memory, store, scope } = setUp({ worker: false, limits: { maxJobs: 1 } });
    await memory.ingest({ scope, source, messages });
    const other = setUp({ store, model: undefined, extract: () => ['The user flies often.'], limits: { maxJobs: 1 } });
    const more = { scope: other.scope, source: { id: 'more' }, messages };
    expect(await other.memory.ingest(more)).toMatchObject({ status: 'full' });
    await other.memory.settled();
    expect(await other.memory.jobs.list()).toEqual([]);
    expect(await textsOf(store)).toEqual(['The user flies often.']);
  });

  test('while a model hangs ingest answers, other scopes are worked on, and close gives the job back with its attempt', async () => {
    let hangs: (() => void) | undefined;
    const isHanging = new Promise<void>((resolve) => (hangs = resolve));
    const { memory, model, store, ai, clock } = setUp({
      otherwise: ({ request }) => {
        if (!JSON.stringify(request.messages).includes('hang')) return extraction('The user flies often.');
        hangs!();
        return new Promise(() => {});
      },
    });
    const ada = memory.scopeFor('user', { context: { auth: { uid: 'ada' } } });
    const bob = memory.scopeFor('user', { context: { auth: { uid: 'bob' } } });
    expect(await memory.ingest({ scope: ada, source, messages: [user('Please hang.')] })).toMatchObject({
      status: 'queued',
    });
    await isHanging;
    expect(await memory.ingest({ scope: bob, source, messages, wait: true })).toMatchObject({ status: 'committed' });
    expect(await textsOf(store, 'bob')).toEqual(['The user flies often.']);
    await memory.close();
    const [job] = await memory.jobs.list();
    expect(job).toMatchObject({ state: 'waiting', attempts: 0 });
    await expect(memory.ingest({ scope: ada, source, messages })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });

    const next = memoryManager(ai, {
      store,
      model: model.name,
      now: () => clock.now,
      extract: () => ['The user waits.'],
    });
    expect(await processMemoryJobs(next)).toMatchObject({ done: 1 });
    expect(await textsOf(store)).toEqual(['The user waits.']);
  });

  test('close gives back a job that is just being taken', async () => {
    const { memory, scope, store } = setUp();
    const claim = store.claimJob.bind(store);
    let isTaking = false;
    let isTaken = false;
    store.claimJob = async (options) => {
      isTaking = true;
      await new Promise((resolve) => setTimeout(resolve, 20));
      isTaken = true;
      return claim(options);
    };
    const done = memory.ingest({ scope, source, messages, wait: true });
    await until(() => isTaking);
    await memory.close();
    expect(isTaken).toBe(true);
    expect(await memory.jobs.list()).toMatchObject([{ state: 'waiting', attempts: 0 }]);
    expect(await done).toMatchObject({ status: 'failed' });
  });

  test('a surviving process runs the job of a dead worker, and the jobs behind it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { memory, ai, clock, store, scope } = setUp({ worker: false });
    await memory.ingest({ scope, source, messages });
    expect(await store.claimJob({ owner: 'dead', leaseMs: 90_000, now: clock.now })).toBeDefined();
    const extract = () => ['The user waits.'];
    const other = memoryManager(ai, { store, now: () => clock.now, extract });
    expect(await other.ingest({ scope, source: { id: 'session-2' }, messages })).toMatchObject({ status: 'queued' });
    await other.settled();
    expect(await memory.jobs.list()).toHaveLength(2);
    // The lease lasts longer than the process waits before the next check.
    for (let i = 0; i < 2; i++) {
      clock.now += 60_000;
      await vi.advanceTimersByTimeAsync(60_000);
      await other.settled();
      expect(await memory.jobs.list()).toHaveLength(i === 0 ? 2 : 0);
    }
    expect(await textsOf(store)).toEqual(['The user waits.']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a second ingest of queued messages runs their job, and with wait resolves when it is done', async () => {
    const { memory, ai, clock, store, scope } = setUp({ worker: false });
    await memory.ingest({ scope, source, messages });
    const other = memoryManager(ai, { store, now: () => clock.now, extract: () => ['The user waits.'] });
    expect(await other.ingest({ scope, source, messages, wait: true })).toEqual({ status: 'known', jobIds: [] });
    expect(await textsOf(store)).toEqual(['The user waits.']);
  });

  test('wait returns failed if another worker has marked the job as dead', async () => {
    const { memory, ai, clock, store, scope } = setUp({ worker: false });
    await memory.ingest({ scope, source, messages });
    const { id } = (await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now }))!;
    const list = store.listJobs.bind(store);
    store.listJobs = async (options) => {
      store.listJobs = list;
      const before = await list(options);
      await store.changeJob(id, { owner: 'other', to: 'dead' });
      return before;
    };
    const other = memoryManager(ai, { store, now: () => clock.now, extract: () => [] });
    expect(await other.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
  });

  test('wait continues while another worker runs a job behind a thousand dead jobs', async () => {
    const { memory, store, clock, scope } = setUp({ model: undefined, extract: () => [], worker: false });
    for (const id of range(0, 1_000).map((i) => `dead ${i}`)) {
      await store.addJob({ id, scope: ID, input: {}, sourceId: id }, { maxJobs: 1_000, now: clock.now });
      await store.changeJob(id, { owner: undefined, to: 'dead', now: clock.now });
    }
    await memory.ingest({ scope, source, messages });
    const { id } = (await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now }))!;
    const list = vi.spyOn(store, 'listJobs');
    const ingesting = memory.ingest({ scope, source, messages, wait: true });
    await vi.waitFor(() => expect(list).toHaveBeenCalled());
    await store.changeJob(id, { owner: 'other', to: 'dead' });
    expect((await ingesting).status).toBe('failed');
  });

  test.each([
    ['remove', 'committed'],
    ['dead', 'failed'],
  ] as const)('wait answers when another worker, which took the job over, has ended it: %s', async (to, status) => {
    let answer: ((facts: string[]) => void) | undefined;
    const { clock, store, memory, scope } = setUp({
      model: undefined,
      limits: { leaseMs: 30 },
      extract: () => new Promise((resolve) => (answer = resolve)),
    });
    let settled = false;
    const ingesting = memory.ingest({ scope, source: { id: 'a' }, messages: [user('I like tea.')], wait: true });
    void ingesting.finally(() => (settled = true));
    await until(() => answer !== undefined);
    const list = vi.spyOn(store, 'listJobs');
    const { id } = (await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now + 1_000 }))!;
    // This process notices that it has lost the job, and waits for the other process.
    await vi.waitFor(() => expect(list).toHaveBeenCalled());
    expect(settled).toBe(false);
    await store.changeJob(id, { owner: 'other', to, now: clock.now });
    expect((await ingesting).status).toBe(status);
    answer!([]);
  });

  test('wait continues after a refused commit, because another worker has taken the job', async () => {
    let answer: ((facts: string[]) => void) | undefined;
    const { clock, store, memory, scope } = setUp({
      model: undefined,
      extract: () => new Promise((resolve) => (answer = resolve)),
    });
    let settled = false;
    const ingesting = memory.ingest({ scope, source, messages, wait: true });
    void ingesting.finally(() => (settled = true));
    await until(() => answer !== undefined);
    const { id } = (await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now + 61_000 }))!;
    const list = vi.spyOn(store, 'listJobs');
    answer!(['The user wants a window seat.']);
    await vi.waitFor(() => expect(list).toHaveBeenCalled());
    expect([settled, await textsOf(store)]).toEqual([false, []]);
    await store.changeJob(id, { owner: 'other', to: 'dead' });
    expect((await ingesting).status).toBe('failed');
  });

  test('a last attempt whose job was removed ends without further commits', async () => {
    let fail: (() => void) | undefined;
    const { store, memory, scope, clock } = setUp({
      model: undefined,
      limits: { maxAttempts: 1 },
      extract: () => new Promise((_, reject) => (fail = () => reject(new Error('It is down.')))),
    });
    const ingesting = memory.ingest({ scope, source, messages, wait: true });
    await until(() => fail !== undefined);
    const [job] = await memory.jobs.list();
    await store.changeJob(job!.id, { owner: undefined, to: 'remove', now: clock.now + 61_000 });
    const commit = vi.spyOn(store, 'commit');
    fail!();
    await ingesting;
    expect(commit.mock.calls.length).toBeLessThan(3);
    expect(await memory.jobs.list()).toEqual([]);
  });

  test('processMemoryJobs counts no job that another worker has taken over', async () => {
    let answer: ((facts: string[]) => void) | undefined;
    const { clock, store, memory, scope } = setUp({
      model: undefined,
      worker: false,
      extract: () => new Promise((resolve) => (answer = resolve)),
    });
    await memory.ingest({ scope, source, messages });
    const processed = processMemoryJobs(memory);
    await until(() => answer !== undefined);
    await store.claimJob({ owner: 'other', leaseMs: 60_000, now: clock.now + 61_000 });
    answer!(['The user wants a window seat.']);
    expect(await processed).toMatchObject({ done: 0, failed: 0, dead: 0 });
  });

  test('wait returns failed even if the store could not store the failure', async () => {
    vi.spyOn(logger, 'warn').mockReturnValue();
    const { store, memory, scope } = setUp({ model: undefined, extract: fails });
    vi.spyOn(store, 'changeJob').mockRejectedValue(new GenkitError({ status: 'UNAVAILABLE', message: 'It is down.' }));
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
  });

  test('an error of the model fails the attempt, also one with the status of a refused commit', async () => {
    const aborted = () => {
      throw new GenkitError({ status: 'ABORTED', message: 'The model was restarted.' });
    };
    const { memory, scope, reports } = setUp({ model: undefined, extract: aborted });
    expect(await memory.ingest({ scope, source, messages, wait: true })).toMatchObject({ status: 'failed' });
    expect(reports).toMatchObject([{ type: 'failed', error: 'ABORTED: The model was restarted.' }]);
  });

  test('a job is dead after five of its workers have died', async () => {
    const { memory, clock, store, scope, model } = setUp({ worker: false });
    await memory.ingest({ scope, source, messages });
    for (let i = 0; i < 5; i++) {
      expect(await store.claimJob({ owner: `dead-${i}`, leaseMs: 1000, now: clock.now })).toBeDefined();
      clock.now += 1001;
    }
    expect(await processMemoryJobs(memory)).toMatchObject({ dead: 1 });
    expect(model.requests).toHaveLength(0);
  });
});

describe('two workers', () => {
  test('that had the same job commit it once', async () => {
    let answer: (() => void) | undefined;
    const isAsked = new Promise<void>((resolve) => (answer = resolve));
    let release: ((reply: string) => void) | undefined;
    const { memory, ai, store, scope, clock, model } = setUp({
      worker: false,
      replies: [
        () => {
          answer!();
          return new Promise((resolve) => (release = resolve));
        },
        extraction('The user prefers a window seat.'),
      ],
    });
    await memory.ingest({ scope, source, messages });
    const slow = processMemoryJobs(memory);
    await isAsked;
    // The first worker sleeps, and its lease expires.
    clock.now += 60_001;
    const other = memoryManager(ai, { store, model: model.name, now: () => clock.now });
    expect(await processMemoryJobs(other)).toMatchObject({ done: 1 });
    release!(extraction('The user prefers an aisle seat.') as string);
    await slow;
    expect(await textsOf(store)).toEqual(['The user prefers a window seat.']);
  });

  test('count 50 of 50 corroborations of one memory', async () => {
    const { memory, ai, store, scope, clock } = setUp({ extract: () => ['The user prefers a window seat.'] });
    const other = memoryManager(ai, {
      store,
      now: () => clock.now,
      extract: () => ['the user prefers a window seat!'],
    });
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? memory : other).ingest({ scope, source: { id: `s${i}` }, messages, wait: true }),
      ),
    );
    const { items } = await store.query(ID);
    expect(items).toHaveLength(1);
    expect(new Set(items[0]!.memory.sources.map(({ id }) => id)).size).toBe(50);
    expect(items[0]!.memory.confidence).toBeGreaterThan(0.95);
  });
});

test.each(['removes', 'forgets'])(
  'a worker that lost an approved job writes nothing back that the user %s after another has finished it',
  async (how) => {
    const facts = Array.from({ length: 70 }, (_, i) => `The user likes thing${i}.`);
    const guards = [({ kind }: { kind: string }) => (kind === 'message' ? 'It is odd.' : undefined)];
    const options = { store: new InMemoryMemoryStore(), model: undefined, extract: () => facts, guards };
    const { memory, store, scope, clock } = setUp(options);
    const { memory: other } = setUp({ ...options, now: () => clock.now, worker: false });
    await memory.ingest({ scope, source, messages: [user('Hello')], wait: true });
    const [text] = await memory.quarantine.list({ scope });
    const commit = store.commit.bind(store);
    const commits = vi.spyOn(store, 'commit');
    commits.mockImplementation(async (...args) => {
      const answer = await commit(...args);
      if (!args[1].some(({ op }) => op === 'put')) return answer;
      // This worker stops after its first commit until its lease has expired.
      commits.mockRestore();
      clock.now += 120_000;
      expect(await processMemoryJobs(other)).toMatchObject({ done: 1 });
      const { items } = await other.list({ scope, limit: 100 });
      expect(items).toHaveLength(70);
      if (how === 'removes') await other.remove({ scope, id: items.find((one) => one.text.includes('thing40.'))!.id });
      else await other.forgetSource({ scope, source: source.id });
      return answer;
    });
    await memory.quarantine.approve({ scope, id: text!.id });
    const texts = await textsOf(store);
    expect(texts).toHaveLength(how === 'removes' ? 69 : 0);
    expect(texts.join()).not.toContain('thing40.');
  },
);

test('a verbatim manager stores each message once, even if the second commit fails', async () => {
  const { ai, memory, store, scope, clock } = setUp({ extract: 'verbatim', embedder: 'vectors' });
  let calls = 0;
  ai.defineEmbedder({ name: 'vectors' }, async (input) => {
    if (++calls === 2) throw new Error('Too many requests.');
    return { embeddings: input.map(() => ({ embedding: [1, 0] })) };
  });
  const messages = Array.from({ length: 80 }, (_, i) => user(`Message ${i} ${'x'.repeat(7_000)}`));
  await memory.ingest({ scope, source, messages, wait: true });
  clock.now += 3_600_000;
  await processMemoryJobs(memory);
  expect(new Set(await textsOf(store)).size).toBe(80);
  expect(await textsOf(store)).toHaveLength(80);
});
