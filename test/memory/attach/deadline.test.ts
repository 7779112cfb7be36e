/** A memory store that hangs or fails: the turn is answered without it, and this is reported. On a fake clock. */
import { setImmediate } from 'node:timers/promises';
import { contextWindow, sessionMemories } from 'genkitx-agents/context';
import { InMemoryMemoryStore, type MemoryStore } from 'genkitx-agents/memory';
import { logger } from 'genkit/logging';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { contextReportOf } from '../../context/support/context-reports.ts';
import { agentWithMemory, draft, linesOf } from './support.ts';
import { until } from '../pipeline/support.ts';

const READS = ['get', 'query', 'revision', 'changes', 'notes', 'bySource'] as const;

/** A store whose reads do what `read` does. */
function storeThat(read: () => Promise<never>): MemoryStore {
  const store = new InMemoryMemoryStore();
  for (const name of READS) store[name] = read;
  return store;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('a memory store that hangs', () => {
  test.each([
    ['without a window', undefined],
    ['in a window', contextWindow()],
  ])('%s costs a turn its deadline, and the model is called without memories', async (_, context) => {
    const events: string[] = [];
    const store = storeThat(() => {
      events.push('store asked');
      return new Promise(() => {});
    });
    const { chat, turns, said, sessions } = agentWithMemory({
      memory: { store },
      attach: { preload: { deadlineMs: 200 } },
      replies: [
        () => {
          events.push('model called');
          return 'Hello!';
        },
      ],
      ...(context && { context }),
    });
    const talk = chat();
    const reply = talk.send('Which seat?').then(({ text }) => text);
    await until(() => events.length > 0);
    await vi.advanceTimersByTimeAsync(199);
    events.push('199 ms');
    await vi.advanceTimersByTimeAsync(1);
    await until(() => events.includes('model called'));
    expect(await reply).toBe('Hello!');
    expect([...new Set(events)]).toEqual(['store asked', '199 ms', 'model called']);
    expect(turns).toEqual([
      { sessionId: talk.sessionId, memories: [], hasProfile: false, omitted: 0, reasons: ['deadline'] },
    ]);
    expect(linesOf(said.requests[0]!)).toEqual(['system: Be brief.', 'user: Which seat?']);
    const report = await contextReportOf(sessions, talk.snapshotId!);
    expect(report?.sections.memory).toEqual(context && { tokens: 0, items: 0, reasons: ['deadline'] });
  });

  test('costs a turn in a window of sessionMemories its deadline, and all messages are sent', async () => {
    const warnings = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const store = storeThat(() => new Promise(() => {}));
    const context = contextWindow({ history: [sessionMemories({ keepTurns: 1 })] });
    const { chat, said } = agentWithMemory({ memory: { store }, attach: { preload: { deadlineMs: 200 } }, context });
    const reply = chat().send('Which seat?');
    await until(() => vi.getTimerCount() > 0);
    await vi.advanceTimersByTimeAsync(200);
    expect((await reply).text).toBe('ok');
    expect(linesOf(said.requests[0]!)).toEqual(['system: Be brief.', 'user: Which seat?']);
    expect(warnings.mock.calls.flat().join('\n')).toContain('The memory store did not answer within 200 ms.');
  });

  test.each([
    ['create_memory', 'hangs', 'remembered'],
    ['create_memory', 'fails', 'remembered'],
    ['forget_memory', 'hangs', 'forgotten'],
    ['forget_memory', 'fails', 'forgotten'],
  ] as const)('when %s is called and it %s, the model is told, and the turn goes on', async (name, does, what) => {
    vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const { chat, said, memories } = agentWithMemory({
      attach: { tools: [name], preload: { deadlineMs: 200 } },
      replies: [[{ toolRequest: { name, ref: '1', input: { memory: 'The user likes tea.' } } }], 'Sorry.'],
    });
    const ask = () =>
      does === 'hangs' ? new Promise<never>(() => {}) : Promise.reject(new Error('The disk is full.'));
    Object.assign(memories, { notes: ask, changes: ask });
    const reply = chat()
      .send('Please.')
      .then(({ text }) => text);
    const tick = async () => {
      await vi.advanceTimersByTimeAsync(1_000);
      return setImmediate(undefined);
    };
    let answer: string | undefined;
    while (answer === undefined) answer = await Promise.race([reply, tick()]);
    expect(answer).toBe('Sorry.');
    const { toolResponse } = said.requests[1]!.messages.at(-1)!.content[0]!;
    expect(toolResponse!.output).toContain(`It is not certain that it is ${what}`);
  });

  test('that fails is reported, and goes to the log', async () => {
    const warnings = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const { chat, turns } = agentWithMemory({
      memory: { store: storeThat(() => Promise.reject(new Error('The disk is gone.'))) },
    });
    expect((await chat().send('Which seat?')).text).toBe('ok');
    expect(turns[0]!.reasons).toEqual(['failed']);
    expect(warnings.mock.calls.flat().join('\n')).toContain('The disk is gone.');
  });

  test('that fails to read a profile is reported when memories are placed by tool only', async () => {
    vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const { chat, turns } = agentWithMemory({
      memory: { store: storeThat(() => Promise.reject(new Error('The disk is gone.'))) },
      attach: { placement: { memories: 'tool' } },
    });
    expect((await chat().send('Which seat?')).text).toBe('ok');
    expect(turns).toMatchObject([{ hasProfile: false, reasons: ['failed'] }]);
  });

  test('that takes no jobs does not delay a turn, and leaves the reply as it is', async () => {
    const store = new InMemoryMemoryStore();
    store.addJob = () => new Promise(() => {});
    const { chat } = agentWithMemory({ memory: { store, generate: { everyTurns: 1 } } });
    const talk = chat();
    for (let i = 1; i <= 3; i++) expect((await talk.send('I like the window seat.')).text).toBe('ok');
    expect(talk.messages).toHaveLength(6);
  });

  test('is waited for as long as the longest timer allows', async () => {
    const warnings = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const { chat, memory } = agentWithMemory({
      memory: {
        model: undefined,
        extract: () => [],
        generate: { everyTurns: 1 },
        limits: { timeoutMs: 2_000_000_000 },
      },
    });
    await chat().send('I like the window seat.');
    await memory.settled();
    expect(warnings.mock.calls).toEqual([]);
  });

  test('that takes no jobs is reported after the timeout, and keeps close waiting for 8 seconds at most', async () => {
    const warnings = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    const store = new InMemoryMemoryStore();
    store.addJob = () => new Promise(() => {});
    const { chat, memory } = agentWithMemory({
      memory: { store, generate: { everyTurns: 1 }, limits: { timeoutMs: 5_000 } },
    });
    const talk = chat();
    await talk.send('I like the window seat.');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(warnings.mock.calls.flat()).toEqual([
      `Nothing was learned from session "${talk.sessionId}"; a later turn or idle time tries again. DEADLINE_EXCEEDED: The ingest did not answer within 10000 ms.`,
    ]);
    let isClosed = false;
    const closed = memory.close().then(() => (isClosed = true));
    await vi.advanceTimersByTimeAsync(7_999);
    expect(isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await closed;
    expect(warnings.mock.calls.at(-1)![0]).toContain('some of its work still runs');
  });
});

test.each(['rerank', 'rewriteQuery'])(
  'a %s that hangs costs a turn half of its deadline, and is reported',
  async (name) => {
    const events: string[] = [];
    const hang = () => {
      events.push(name);
      return new Promise<never>(() => {});
    };
    const { chat, turns, said, memories } = agentWithMemory({
      memory: { search: { [name]: hang }, now: () => Date.now() },
      attach: { preload: { deadlineMs: 200 } },
      replies: [() => (events.push('model called'), 'Hello!')],
    });
    const ada = { scope: 'user', appName: 'default', userId: 'ada' } as const;
    await memories.commit(ada, [{ op: 'put', memory: draft('seat', 'The user prefers a window seat.') }]);
    const reply = chat().send('Which seat?');
    await until(() => events.length > 0);
    await vi.advanceTimersByTimeAsync(99);
    events.push('99 ms');
    await vi.advanceTimersByTimeAsync(1);
    expect((await reply).text).toBe('Hello!');
    expect(events).toEqual([name, '99 ms', 'model called']);
    expect(turns).toMatchObject([{ memories: [['seat', 1]], reasons: ['deadline'] }]);
    expect(linesOf(said.requests[0]!).join()).toContain('The user prefers a window seat.');
  },
);
