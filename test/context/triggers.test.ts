/** When an agent's session is summarized, and what becomes of it when the session goes on. */
import { setImmediate } from 'node:timers/promises';
import { type MessageData } from 'genkit';
import { logger } from 'genkit/logging';
import { defineAgent, defineCustomAgent, genkit, InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import {
  compactIdle,
  contextWindow,
  endTopic,
  lastTurns,
  summarize,
  type SummarizeOptions,
  type SummaryRequest,
} from 'genkitx-agents/context';
import { piiRules, redacting } from 'genkitx-agents/privacy';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { scriptedModel, type ScriptedReply } from '../support/scripted-model.ts';
import { textsOf } from './support/context-reports.ts';

afterEach(() => {
  vi.useRealTimers();
});

function setUp(
  options: SummarizeOptions = {},
  replies: ScriptedReply[] = [],
  store: InMemorySessionStore = new InMemorySessionStore(),
) {
  const calls: SummaryRequest[] = [];
  const ai = genkit();
  const summarizer = async (request: SummaryRequest) => {
    calls.push(request);
    return { text: `summary ${calls.length}`, usage: { inputTokens: 100, outputTokens: 10 } };
  };
  const window = contextWindow({
    maxTokens: 8_000,
    history: [summarize({ everyTurns: 5, summarizer, ...options }), lastTurns(10)],
  });
  const model = scriptedModel(ai, {
    replies,
    otherwise: ({ index }) => ({
      message: { role: 'model', content: [{ text: `answer ${index + 1}` }] },
      finishReason: 'stop',
      usage: { inputTokens: 5, outputTokens: 1 },
    }),
  });
  const stop = ai.defineTool({ name: 'stop', description: 'Ends it.' }, async () => {
    ai.currentSession().compact();
    return 'done';
  });
  const agent = defineAgent(ai, {
    name: 'support',
    model: model.name,
    tools: [stop, endTopic(ai)],
    store,
    context: window,
  });
  return { ai, agent, calls, model, store, window };
}

const userTexts = ({ messages }: { messages: readonly MessageData[] }) =>
  messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]!.text);

describe('a session is summarized', () => {
  test('every five turns, and the model gets the summary in place of the turns that it covers', async () => {
    const { agent, calls, model, window } = setUp();
    const chat = agent.chat({ sessionId: 's' });
    for (let i = 1; i <= 6; i++) {
      await chat.send(`question ${i}`);
      await window.settled();
    }
    expect(calls.map(userTexts)).toEqual([[1, 2, 3, 4, 5].map((i) => `question ${i}`)]);
    const sent = textsOf(model.requests.at(-1)!);
    expect(sent.join('\n')).toContain('summary 1');
    expect(sent.join('\n')).not.toContain('question 5');
    expect(sent.at(-1)).toContain('question 6');
    expect(chat.messages, 'the session has all').toHaveLength(12);
  });

  test('after the reply: a turn is answered while the summarizer stalls', async () => {
    const events: string[] = [];
    let finish = (_summary: string) => {};
    const summarizer = () =>
      new Promise<string>((resolve) => {
        events.push('summarizer asked');
        finish = (summary) => {
          events.push('summarizer answers');
          resolve(summary);
        };
      });
    const { agent, window } = setUp({ everyTurns: 1, summarizer });
    const chat = agent.chat();
    await chat.send('one');
    events.push('turn 1 answered');
    await chat.send('two');
    events.push('turn 2 answered');
    finish('late');
    await vi.waitUntil(() => events.filter((event) => event === 'summarizer asked').length === 2);
    finish('later');
    await window.settled();
    expect(events.filter((event) => !event.startsWith('summarizer asked'))).toEqual([
      'turn 1 answered',
      'turn 2 answered',
      'summarizer answers',
      'summarizer answers',
    ]);
  });

  test.each([
    ['end_topic', 'the model says that the topic has ended'],
    ['stop', 'a tool calls session.compact()'],
  ])('at once when %s: %s', async (name) => {
    const { agent, calls, window } = setUp({}, [[{ toolRequest: { name, ref: '1', input: {} } }], 'Goodbye.']);
    await agent.chat().send('That was all.');
    await window.settled();
    expect(calls.map(userTexts)).toEqual([['That was all.']]);
  });

  describe('of a custom agent, whose model calls go through the window,', () => {
    const customAgent = ({ ai, model, window }: ReturnType<typeof setUp>, store: SnapshotStore) =>
      defineCustomAgent(ai, { name: 'custom', store }, async (sess) => {
        await sess.run(async () => {
          const messages = sess.getMessages();
          const use = [window.middleware({ sessionId: sess.sessionId })];
          const { message } = await ai.generate({ model: model.name, messages, tools: ['stop'], use });
          sess.addMessages([message!]);
        });
        return { message: sess.getMessages().at(-1) };
      });

    test('when a tool asks for it', async () => {
      const set = setUp({}, [[{ toolRequest: { name: 'stop', ref: '1', input: {} } }]]);
      await customAgent(set, set.store).chat().send('That was all.');
      await set.window.settled();
      expect(set.calls.map(userTexts)).toEqual([['That was all.']]);
    });

    test('at a cost that is in the usage of the session; the report is kept with the snapshot', async () => {
      const set = setUp({ everyTurns: 1 });
      const agent = customAgent(set, set.store);
      for (const text of ['one', 'two']) {
        await agent.chat({ sessionId: 's' }).send(text);
        await set.window.settled();
      }
      const summaryUsage = { inputTokens: 100, outputTokens: 10 };
      const contextReport = { calls: 1, messages: 3, summary: { to: 2 } };
      expect(await set.store.getSnapshot({ sessionId: 's' })).toMatchObject({ summaryUsage, contextReport });
      expect((await set.store.listSessions()).items[0]!.usage).toEqual(summaryUsage);
    });

    test('also if a call goes through another window', async () => {
      const set = setUp({ everyTurns: 1 });
      const plain = contextWindow({ history: [lastTurns(1)] });
      const agent = defineCustomAgent(set.ai, { name: 'custom', store: set.store }, async (sess) => {
        await sess.run(async () => {
          for (const window of [set.window, plain]) {
            const use = [window.middleware({ sessionId: sess.sessionId })];
            const { message } = await set.ai.generate({ model: set.model.name, messages: sess.getMessages(), use });
            if (window === set.window) sess.addMessages([message!]);
          }
        });
        return { message: sess.getMessages().at(-1) };
      });
      await agent.chat().send('question 1');
      await set.window.settled();
      expect(set.calls.map(userTexts)).toEqual([['question 1']]);
    });

    test('as its store keeps the turns, so that the next turn finds the summary', async () => {
      const set = setUp({ everyTurns: 2 });
      const store = redacting(new InMemorySessionStore(), { rules: piiRules(), secret: 'x'.repeat(40) });
      const chat = customAgent(set, store).chat();
      for (const name of ['ann', 'bob', 'cid']) {
        await chat.send(`Write to ${name}@example.com.`);
        await set.window.settled();
      }
      expect(set.calls.map(userTexts)).toEqual([['Write to [EMAIL_1].', 'Write to [EMAIL_2].']]);
      expect(JSON.stringify(set.model.requests.at(-1)!.messages)).toContain('summary 1');
    });
  });

  test.each([
    ['the agent has no window', undefined],
    ['the window has no summarize', contextWindow({ history: [lastTurns(2)] })],
  ])('never when %s: the log says so', async (_, context) => {
    const ai = genkit();
    const { name: model } = scriptedModel(ai, {
      replies: [[{ toolRequest: { name: 'end_topic', input: {} } }], 'Bye.'],
    });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, { name: 'plain', model, store, tools: [endTopic(ai)], ...(context && { context }) });
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    await agent.chat({ sessionId: 's' }).send('That was all.');
    await vi.waitUntil(() => warn.mock.calls.length > 0);
    expect(warn.mock.calls).toEqual([[expect.stringContaining('Session "s" is not summarized')]]);
    warn.mockRestore();
  });

  test('not when the turn failed', async () => {
    const { agent, calls, window } = setUp({ everyTurns: 1 }, [
      () => {
        throw new Error('down');
      },
    ]);
    await expect(agent.chat().send('one')).rejects.toThrow();
    await window.settled();
    expect(calls).toEqual([]);
  });

  test('by another process that looks for idle sessions, once', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { ai, agent, calls } = setUp();
    await agent.chat({ sessionId: 'left' }).send('question 1');
    vi.setSystemTime(Date.now() + 10 * 60_000);
    await agent.chat({ sessionId: 'busy' }).send('question 1');
    vi.setSystemTime(Date.now() + 6 * 60_000);
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 1, failed: 0 });
    expect(calls.map(userTexts)).toEqual([['question 1']]);
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 0, failed: 0 });
    expect(calls).toHaveLength(1);
    await expect(compactIdle(ai, { idle: 1 } as never)).rejects.toThrow(/idle/);
    await expect((compactIdle as () => Promise<unknown>)()).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  test('also if a summary was being made when its last turn was saved, and is not read again when all is covered', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    let answer = (_summary: string) => {};
    const summarizer = () => new Promise<string>((resolve) => (answer = resolve));
    const web = setUp({ everyTurns: 2, summarizer });
    const chat = web.agent.chat({ sessionId: 's' });
    await chat.send('question 1');
    await chat.send('question 2');
    await vi.waitUntil(async () => (await web.store.readRecords({ sessionId: 's' })).length > 0);
    await chat.send('question 3');
    vi.setSystemTime(Date.now() + 1_000);
    answer('the first two');
    await web.window.settled();
    vi.setSystemTime(Date.now() + 16 * 60_000);
    const { ai, calls, store } = setUp({ overlapTurns: 0 }, [], web.store);
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 1, failed: 0 });
    expect(calls.map(userTexts)).toEqual([['question 3']]);
    const reads = vi.spyOn(store, 'getSnapshot');
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 0, failed: 0 });
    expect(reads).not.toHaveBeenCalled();
  });

  test('by one of two calls at the same time', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { ai, agent, calls } = setUp();
    await agent.chat({ sessionId: 's' }).send('question 1');
    vi.setSystemTime(Date.now() + 16 * 60_000);
    const results = await Promise.all([compactIdle(ai), compactIdle(ai)]);
    expect(results.map(({ compacted }) => compacted).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(calls).toHaveLength(1);
  });

  /** An agent whose summarizer fails until it is repaired. */
  function setUpFailing() {
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    let isDown = true;
    const summarizer = async () => {
      if (isDown) throw new Error('The key is wrong.');
      return 'fine';
    };
    const repair = () => {
      isDown = false;
    };
    return { ...setUp({ summarizer }), warn, repair };
  }

  test('not while its summarizer fails: each call says so, and the log why', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { warn, ai, agent, repair } = setUpFailing();
    await agent.chat({ sessionId: 's' }).send('question 1');
    vi.setSystemTime(Date.now() + 16 * 60_000);
    const failed = { sessions: 1, compacted: 0, failed: 1 };
    expect(await compactIdle(ai)).toEqual(failed);
    expect(warn.mock.lastCall![0]).toMatch(/Session "s" was not compacted.*The key is wrong\./s);
    expect(await compactIdle(ai)).toEqual(failed);
    expect(warn.mock.lastCall![0]).toMatch(/Session "s" was not compacted.*failed; it is tried again after 20/s);
    repair();
    vi.setSystemTime(Date.now() + 60_000);
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 1, failed: 0 });
  });

  test('although the clock of the process whose summarizer failed was a day ahead', async () => {
    const now = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: now + 86_400_000 });
    const { ai, agent, repair } = setUpFailing();
    await agent.chat({ sessionId: 's' }).send('question 1');
    expect(await compactIdle(ai, { idleMs: 0 })).toMatchObject({ failed: 1 });
    repair();
    vi.setSystemTime(now + 60_000);
    await agent.chat({ sessionId: 's' }).send('question 2');
    expect(await compactIdle(ai, { idleMs: 0 })).toEqual({ sessions: 1, compacted: 1, failed: 0 });
  });

  test('by no model: the log names the option that is missing', async () => {
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const { agent, window } = setUp({ everyTurns: 1, summarizer: undefined });
    await agent.chat().send('question 1');
    await window.settled();
    expect(warn.mock.calls.flat().join()).toContain('summarize({ model })');
  });

  test('from before its last turn, when that failed and the session is idle', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const down = () => {
      throw new Error('down');
    };
    const { ai, agent, calls } = setUp({}, ['fine', down]);
    await agent.chat({ sessionId: 's' }).send('question 1');
    await expect(agent.chat({ sessionId: 's' }).send('question 2')).rejects.toThrow();
    vi.setSystemTime(Date.now() + 16 * 60_000);
    expect(await compactIdle(ai)).toEqual({ sessions: 1, compacted: 1, failed: 0 });
    expect(calls.map(userTexts)).toEqual([['question 1']]);
  });
});

test('agents with stores of their own share a window, also for sessions of the same id', async () => {
  const { ai, agent, store, window, calls } = setUp({ everyTurns: 1 });
  const otherStore = new InMemorySessionStore();
  const model = scriptedModel(ai, { name: 'other', otherwise: 'fine' });
  const other = defineAgent(ai, { name: 'other', model: model.name, store: otherStore, context: window });
  for (const each of [agent, other]) {
    await each.chat({ sessionId: 'same' }).send(`for ${each === agent ? 'one' : 'the other'}`);
    await window.settled();
  }
  expect(calls.map(userTexts)).toEqual([['for one'], ['for the other']]);
  for (const [each, text] of [
    [store, 'summary 1'],
    [otherStore, 'summary 2'],
  ] as const) {
    const records = await each.readRecords({ sessionId: 'same', kind: 'compaction' });
    expect(records.map(({ value }) => JSON.stringify(value))).toEqual([expect.stringContaining(text)]);
  }
});

describe('what summaries take', () => {
  const ONE_TURN = { inputTokens: 5, outputTokens: 1 };
  const usageOf = async (store: InMemorySessionStore) => (await store.listSessions()).items[0]!.usage;
  const sum = (turns: number, summaries: number) => ({
    inputTokens: 5 * turns + 100 * summaries,
    outputTokens: turns + 10 * summaries,
  });

  test('is in the usage of the session when the next turn is saved, and in that of no turn', async () => {
    const { agent, store, window } = setUp({ everyTurns: 1 });
    const chat = agent.chat({ sessionId: 's' });
    await chat.send('one');
    await window.settled();
    expect(await usageOf(store)).toEqual(sum(1, 0));
    const { usage } = await chat.send('two');
    expect(usage).toEqual(ONE_TURN);
    expect(await usageOf(store)).toEqual(sum(2, 1));
    expect(await store.getSnapshot({ sessionId: 's' })).toMatchObject({ summaryUsage: sum(0, 1) });
  });

  test('is counted once whichever process has the next turns, also failed ones and those of branches', async () => {
    const one = setUp({ everyTurns: 2 });
    const { store } = one;
    const send = async ({ agent, window }: typeof one, init: { sessionId: string } | { snapshotId: string }) => {
      const { snapshotId } = await agent.chat(init).send('question');
      await window.settled();
      return snapshotId!;
    };
    const session = { sessionId: 's' };
    await send(one, session);
    const branchingPoint = await send(one, session);
    expect(one.calls).toHaveLength(1);
    // The first process is not heard of until later.
    const down = () => {
      throw new Error('down');
    };
    const two = setUp({ everyTurns: 2 }, [down], store);
    await expect(send(two, session)).rejects.toThrow();
    expect(await usageOf(store)).toEqual(sum(2, 1));
    await send(two, session);
    expect(await usageOf(store)).toEqual(sum(3, 1));
    await send(two, { snapshotId: branchingPoint });
    expect(await usageOf(store)).toEqual(sum(4, 1));
    await send(one, { snapshotId: branchingPoint });
    expect(await usageOf(store)).toEqual(sum(5, 1));
    await send(one, session);
    expect(one.calls).toHaveLength(2);
    await send(setUp({ everyTurns: 2 }, [], store), session);
    expect(await usageOf(store)).toEqual(sum(7, 2));
  });
});

test('end_topic is one tool for all agents of an instance', () => {
  const ai = genkit();
  expect(endTopic(ai)).toBe(endTopic(ai));
  expect(endTopic(ai)).not.toBe(endTopic(genkit()));
});

describe('the session', () => {
  test('takes its summaries with it when it is deleted', async () => {
    const { agent, calls, model, store, window } = setUp({ everyTurns: 1 });
    await agent.chat({ sessionId: 's' }).send('one');
    await window.settled();
    expect(calls).toHaveLength(1);
    await store.deleteSession({ sessionId: 's' });
    expect(await store.readRecords({ sessionId: 's' })).toEqual([]);
    await agent.chat({ sessionId: 's' }).send('one');
    await window.settled();
    await agent.chat({ sessionId: 's' }).send('two');
    expect(textsOf(model.requests.at(-1)!).join('\n')).toContain('summary 2');
  });
});

test('a store that does not answer for its records delays a turn once, by the deadline of what is fetched', async () => {
  const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const { agent, store } = setUp();
  const chat = agent.chat({ sessionId: 's' });
  for (let i = 1; i <= 12; i++) await chat.send(`question ${i}`);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const events: string[] = [];
  vi.spyOn(store, 'readRecords').mockImplementation(() => {
    events.push('records asked');
    return new Promise(() => {});
  });
  const other = setUp({ summarizer: () => new Promise(() => {}) }, [() => (events.push('model called'), 'ok')], store);
  const reply = other.agent.chat({ sessionId: 's' }).send('question 13');
  while (vi.getTimerCount() === 0) await setImmediate();
  await vi.advanceTimersByTimeAsync(1_999);
  events.push('1,999 ms');
  await vi.advanceTimersByTimeAsync(1);
  expect((await reply).text).toBe('ok');
  expect(events).toEqual(['records asked', '1,999 ms', 'model called']);
  expect(warn.mock.calls.flat().join()).toContain('The summaries of session "s" could not be read');
});

test('what another process has summarized since is read before it is dropped, and read again only then', async () => {
  const store = new InMemorySessionStore();
  let mayWrite = () => {};
  const gate = new Promise<void>((resolve) => {
    mayWrite = resolve;
  });
  const reads = vi.spyOn(store, 'readRecords');
  const asProcess = (over: InMemorySessionStore) => {
    const ai = genkit();
    const history = [summarize({ everyTurns: 10, summarizer: async () => 'the summary' }), lastTurns(1)];
    const window = contextWindow({ maxTokens: 8_000, history });
    const model = scriptedModel(ai, { otherwise: () => 'fine' });
    const stop = ai.defineTool({ name: 'stop', description: 'Ends it.' }, async () => {
      ai.currentSession().compact();
      return 'done';
    });
    const tools = [stop];
    return {
      agent: defineAgent(ai, { name: 'a', model: model.name, tools, store: over, context: window }),
      model,
      window,
    };
  };
  const here = asProcess(store);
  const slow = new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        if (name === 'writeRecord') await gate;
        return (member as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  const there = asProcess(slow);
  await here.agent.chat({ sessionId: 's' }).send('one');
  await here.agent.chat({ sessionId: 's' }).send('two');
  there.model.reply([{ toolRequest: { name: 'stop', ref: '1', input: {} } }]);
  await there.agent.chat({ sessionId: 's' }).send('three');
  await here.agent.chat({ sessionId: 's' }).send('four');
  expect(textsOf(here.model.requests.at(-1)!).join()).not.toContain('the summary');
  mayWrite();
  await there.window.settled();
  reads.mockClear();
  await here.agent.chat({ sessionId: 's' }).send('five');
  expect(textsOf(here.model.requests.at(-1)!).join()).toContain('the summary');
  expect(reads).toHaveBeenCalledTimes(1);
});
