/** What each strategy leaves of a conversation, and how sections share a budget. */
import { genkit, type GenerateRequest, type MessageData, type Part } from 'genkit';
import {
  clearToolOutputs,
  contextWindow,
  lastTurns,
  summarize,
  tokenBudget,
  type ContextSource,
  type History,
  type HistoryStrategy,
} from 'genkitx-agents/context';
import { describe, expect, test } from 'vitest';
import { turnsOf } from '../../src/context/turns.ts';
import { model, user } from '../agent/support/helpers.ts';
import { textsOf } from './support/context-reports.ts';

const historyOf = (messages: readonly MessageData[]): History => ({
  items: messages.map((message, position) => ({ position, message })),
});
const tools = { turnsOf, countTokens: ({ content }: MessageData) => content[0]!.text?.length ?? 0 };
const run = (strategy: HistoryStrategy, messages: readonly MessageData[]) => strategy(historyOf(messages), tools).items;
const talk = (turns: number) => Array.from({ length: turns }, (_, i) => [user(`q${i}`), model(`a${i}`)]).flat();

describe('lastTurns', () => {
  test.each([
    [{ step: 1 }, [1, 2, 3, 4, 4, 4, 4, 4]],
    [{ step: 2 }, [1, 2, 3, 4, 3, 4, 3, 4]],
    [{}, [1, 2, 3, 4, 3, 4, 3, 4]],
    [{ step: 4 }, [1, 2, 3, 4, 1, 2, 3, 4]],
  ])('keeps at most 4 turns, with %j as many as %j', (options, counts) => {
    const kept = counts.map((_, i) => run(lastTurns(4, options), talk(i + 1)).length / 2);
    expect(kept).toEqual(counts);
  });

  test('keeps the newest', () => {
    expect(run(lastTurns(1), talk(3)).map(({ position }) => position)).toEqual([4, 5]);
  });

  test.each([[-1], [1.5], ['3'], [undefined]])('refuses to keep %j turns', (count) => {
    expect(() => lastTurns((count ?? null) as never)).toThrow('lastTurns: count must be a whole number of at least 0.');
  });

  test('refuses to leave out more at once than it keeps, as a token budget does', () => {
    expect(() => lastTurns(3, { step: 10 })).toThrow('lastTurns: step must be a whole number from 1 to 3.');
    expect(() => tokenBudget(300, { step: 301 })).toThrow('tokenBudget: step must be a whole number from 1 to 300.');
    expect(lastTurns(0, { step: 1 })).toBeTypeOf('function');
  });
});

describe('tokenBudget', () => {
  test('keeps whole turns from the newest backwards, and cuts in steps', () => {
    // Each turn takes 4 tokens.
    const kept = [1, 2, 3, 4, 5, 6, 7, 8].map((turns) => run(tokenBudget(16, { step: 8 }), talk(turns)).length * 2);
    expect(kept).toEqual([4, 8, 12, 16, 12, 16, 12, 16]);
  });

  test('keeps the last turn whenever that fits', () => {
    const messages = [user('x'.repeat(9)), user('y'.repeat(10))];
    expect(run(tokenBudget(10), messages).map(({ position }) => position)).toEqual([1]);
    expect(run(tokenBudget(9), messages)).toEqual([]);
  });
});

describe('clearToolOutputs', () => {
  const asked = (output: unknown, name = 'look'): MessageData[] => [
    user('q'),
    { role: 'model', content: [{ toolRequest: { name, ref: '1', input: {} } }] as Part[] },
    { role: 'tool', content: [{ toolResponse: { name, ref: '1', output } }] as Part[] },
    model('a'),
  ];
  const outputs = (items: History['items']) =>
    items.flatMap(({ message }) =>
      message.content.flatMap(({ toolResponse }) => (toolResponse ? [toolResponse.output] : [])),
    );

  test('says what was there', () => {
    const long = 'word '.repeat(100);
    const messages = [
      ...asked(long),
      ...asked([long, long]),
      ...asked({ id: 1, text: long }),
      ...asked(7),
      ...asked(long),
    ];
    expect(outputs(run(clearToolOutputs({ keepTurns: 1, step: 1 }), messages))).toEqual([
      'Left out, was a text (509 characters). Call the tool again if it is needed.',
      'Left out, was a list of 2 (1014 characters). Call the tool again if it is needed.',
      'Left out, was an object with id, text (525 characters). Call the tool again if it is needed.',
      // Shorter than a stub.
      7,
      long,
    ]);
  });

  test('clears the outputs of the named tools only, in steps, and changes no message', () => {
    const long = 'word '.repeat(100);
    const messages = [...asked(long), ...asked(long, 'find'), ...asked(long), ...asked(long), ...asked(long)];
    const before = structuredClone(messages);
    const strategy = clearToolOutputs({ keepTurns: 2, tools: ['look'] });
    const isCleared = (turns: number) =>
      outputs(run(strategy, messages.slice(0, turns * 4))).map((output) => output !== long);
    expect(isCleared(3)).toEqual([false, false, false]);
    expect(isCleared(4)).toEqual([true, false, false, false]);
    expect(isCleared(5)).toEqual([true, false, false, false, false]);
    expect(messages).toEqual(before);
  });

  test('refuses options that it can not use', () => {
    expect(() => clearToolOutputs({} as never)).toThrow('clearToolOutputs: keepTurns must be a whole number');
    expect(() => (clearToolOutputs as () => unknown)()).toThrow('clearToolOutputs: keepTurns must be a whole number');
    expect(() => (lastTurns as () => unknown)()).toThrow('lastTurns: count must be a whole number');
    expect(() => (tokenBudget as () => unknown)()).toThrow('tokenBudget: tokens must be a whole number');
    expect(() => clearToolOutputs({ keepTurns: 1, tools: 'look' as never })).toThrow('a list of names of tools');
  });
});

describe("a strategy of one's own", () => {
  const log = [user('q1'), model('a1'), model('a2'), user('q3'), model('a3'), user('now')];
  async function sentBy(...history: HistoryStrategy[]) {
    const { registry } = genkit({});
    const turn = contextWindow({ history }).openTurn({ registry });
    const requests: GenerateRequest[] = [];
    const next = async (request: GenerateRequest) => {
      requests.push(request);
      return { message: model('ok'), finishReason: 'stop' as const };
    };
    await turn.call({ request: { messages: log }, origins: log, next });
    return { texts: textsOf(requests[0]!), report: turn.report! };
  }

  test.each<[string, unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['returns nothing', () => undefined],
    ['returns a promise', async () => ({ items: [] })],
    ['returns no items', () => ({ items: 'none' })],
    ['returns items without messages', () => ({ items: [{ position: 0 }, null] })],
    ['returns parts that are none', () => ({ items: [{ position: 0, message: { role: 'user', content: [null] } }] })],
    ['returns a message in another role', () => ({ items: [{ position: 0, message: { ...log[0], role: 'system' } }] })],
    [
      'changes the list that it was given',
      ({ items }: { items: unknown[] }) => ({ items: items.splice(4, 1) && items }),
    ],
    ['returns a summary of more than there is', () => ({ items: [], summary: { text: 'all', to: 1e6 } })],
    ['returns a summary without a text', () => ({ items: [], summary: {} })],
  ])('counts for nothing when it %s; the others still do', async (_, broken) => {
    const { texts } = await sentBy(broken as HistoryStrategy, lastTurns(1));
    expect(texts).toEqual(['user: q3', 'model: a3', 'user: now']);
  });

  test('can not send a message that its summary covers', async () => {
    const summary = { text: 'They said q1 and a1.', to: 2, sha256: 'x', tokens: 9 };
    const { texts, report } = await sentBy(({ items }) => ({ items: items.slice(1), summary }));
    expect(texts.slice(1)).toEqual(['model: a2', 'user: q3', 'model: a3', 'user: now']);
    expect(texts[0]).toMatch(/^user: \[Summary .*\| They said q1 and a1\./s);
    expect(report).toMatchObject({ sent: [[2, 5]], dropped: [] });
  });
});

describe('sections', () => {
  const source = (...texts: string[]): ContextSource => ({
    deadlineMs: 1_000,
    fetch: async () => texts.map((text) => ({ text })),
  });
  const words = (count: number) => 'x'.repeat(count);
  /** The report of one call; a character is a token. */
  async function report(options: Parameters<typeof contextWindow>[0]) {
    const { registry } = genkit({});
    const turn = contextWindow({ countTokens: (text) => text.length, ...options }).openTurn({ registry });
    const messages = [...Array.from({ length: 10 }, () => [user(words(46)), model(words(46))]).flat(), user(words(96))];
    const next = async () => ({ message: model('ok'), finishReason: 'stop' as const });
    await turn.call({ request: { messages }, origins: messages, next });
    return turn.report!.sections;
  }

  test('with the lowest rank shrink first', async () => {
    const both = { examples: source(words(100), words(100)), knowledge: source(words(100), words(100)) };
    expect(await report({ maxTokens: 1_400, ...both })).toMatchObject({
      examples: { items: 0, omitted: 2, reasons: ['window'] },
      knowledge: { items: 2, tokens: 254 },
      history: { items: 20, tokens: 1_000 },
    });
    expect(await report({ maxTokens: 1_400, ...both, sections: { examples: { rank: 9 } } })).toMatchObject({
      examples: { items: 2 },
      knowledge: { items: 0, reasons: ['window'] },
    });
    expect(await report({ maxTokens: 690, ...both, sections: { history: { rank: 0 } } })).toMatchObject({
      examples: { items: 2 },
      knowledge: { items: 2 },
      history: { omitted: 20, reasons: ['window'] },
    });
  });

  test('keep to their own budgets, however much room there is', async () => {
    const limits = { history: { maxTokens: 300 }, knowledge: { maxTokens: 200 } };
    const sections = await report({ maxTokens: 9_000, knowledge: source(words(100), words(100)), sections: limits });
    expect(sections).toMatchObject({
      knowledge: { items: 1, omitted: 1, reasons: ['section'] },
      history: { reasons: ['section'] },
    });
    expect(sections.history!.tokens).toBeLessThanOrEqual(300);
  });

  test('leave out a text that is too long, and keep shorter ones after it', async () => {
    const limits = { knowledge: { maxTokens: 200 } };
    const texts = source(words(50), words(500), words(51), words(400));
    const sections = await report({ maxTokens: 9_000, knowledge: texts, sections: limits });
    expect(sections).toMatchObject({ knowledge: { items: 2, omitted: 2, reasons: ['section'] } });
  });

  test.each([
    [{ sections: { prompt: { rank: 1 } } }, "section 'prompt' can't be limited"],
    [{ sections: { history: { max: 1 } } }, "sections.history has no option 'max'"],
    [{ history: [1] }, 'history must be a list of history strategies'],
    [{ history: [summarize(), lastTurns(3), summarize()] }, 'history may have one summarize only'],
    [{ sections: [] }, 'sections must be an object'],
    [[], 'options must be an object'],
    [{ maxTokens: 0 }, 'maxTokens must be a whole number of at least 1'],
    [{ knowledge: 'handbook' }, 'knowledge must be made by fewShot, knowledge or memory.attach'],
    [{ budget: 1 }, "contextWindow has no option 'budget'"],
  ])('refuse %j', (options, message) => {
    expect(() => contextWindow(options as never)).toThrow(message);
  });
});
