/** Whatever is cut from whatever history: every provider accepts what is left, and nothing is lost unsaid. */
import { genkit, type GenerateRequest, type MessageData, type Part } from 'genkit';
import {
  ContextOverflowError,
  contextWindow,
  lastTurns,
  tokenBudget,
  type ContextReport,
  type History,
  type HistoryStrategy,
} from 'genkitx-agents/context';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../core/json/generate.ts';
import { Random } from '../support/random.ts';
import { scale, seed } from '../support/scale.ts';
import { model, user } from '../agent/support/helpers.ts';
import { textsOf } from './support/context-reports.ts';
import { brokenRules } from './support/provider-rules.ts';
import { RandomHistory, randomStrategies } from './support/random-history.ts';

const { registry } = genkit({});

/** What one model call is sent through a window, and the report; `undefined` when it can't fit. */
async function windowOf(messages: MessageData[], options: Parameters<typeof contextWindow>[0]) {
  const turn = contextWindow(options).openTurn({ registry });
  const system: MessageData = { role: 'system', content: [{ text: 'Be brief.' }] };
  let sent: GenerateRequest | undefined;
  try {
    await turn.call({
      request: { messages: [system, ...messages] },
      origins: [undefined, ...messages],
      next: async (request) => {
        sent = request;
        return { message: model('ok'), finishReason: 'stop' };
      },
    });
  } catch (error) {
    if (!ContextOverflowError.isInstance(error)) throw error;
    return undefined;
  }
  return { sent: sent!.messages, report: turn.report! };
}

/** The names of the parts in a list of messages, in order. */
const namesIn = (messages: readonly MessageData[]) =>
  [...JSON.stringify(messages).matchAll(/#\d+;/g)].map(([name]) => name);

/** What is wrong with a window. */
function faultsOf(log: readonly MessageData[], sent: readonly MessageData[], report: ContextReport): string[] {
  const faults = brokenRules(sent);
  const names = namesIn(sent);
  if (new Set(names).size < names.length) faults.push('a part is sent twice');
  // Responses of one message may be put in the order of their requests.
  const homes = new Map(log.flatMap((message, i) => namesIn([message]).map((name) => [name, i] as const)));
  const places = names.map((name) => homes.get(name)!);
  if (places.some((place, i) => i > 0 && place < places[i - 1]!)) faults.push('order');
  const current = log.slice(log.findLastIndex(({ role }) => role === 'user'));
  for (const name of namesIn(current)) if (!names.includes(name)) faults.push(`the current turn lost ${name}`);
  const { reasons = [] } = report.sections.history ?? {};
  log.forEach((message, i) => {
    const isLast = i === log.length - current.length - 1;
    const isWaiting = message.content.some((part) => part.metadata?.['interrupt']) && log[i + 1]?.role !== 'tool';
    // Only a full window leaves out one that the user has not answered for several turns.
    if (!isWaiting || (!isLast && (reasons.includes('window') || reasons.includes('section')))) return;
    for (const name of namesIn([message])) if (!names.includes(name)) faults.push(`lost the interrupt ${name}`);
  });
  // A request and its response go together.
  const hasStubs = JSON.stringify(sent).includes('Left out');
  log.forEach(({ role, content }, i) => {
    const answer = log[i + 1];
    if (role !== 'model' || answer?.role !== 'tool' || !content.some((part) => part.toolRequest)) return;
    const isSent = (message: MessageData) => namesIn([message]).some((name) => names.includes(name));
    const isAnswered = hasStubs || isSent(answer) || namesIn([answer]).length === 0;
    if (isSent({ role, content }) && !isAnswered && !hasOnlyLost(answer, content))
      faults.push(`separated message ${i}`);
  });
  const isWaitingTurn = (i: number) => {
    const end = log.findIndex(({ role }, at) => at > i && role === 'user');
    return log[end - 1]?.content.some((part) => part.metadata?.['interrupt']) ?? false;
  };
  const states = Array.from({ length: report.messages }, () => 0);
  const covered = report.summary ? [[0, report.summary.to] as const] : [];
  for (const [from, to] of [...covered, ...report.sent, ...report.dropped])
    for (let i = from; i < to; i++) states[i]!++;
  const turnStart = states.findLastIndex((count) => count > 0) + 1;
  // A turn that waits for the user is sent although the summary covers it.
  const isFine = (count: number, i: number) => count === 1 || (count === 2 && isWaitingTurn(i));
  if (!states.slice(0, turnStart).every(isFine)) faults.push('a message that is neither sent nor dropped, or both');
  if (report.estimatedTokens > report.maxTokens) faults.push('over the budget');
  return faults;
}

/** Whether the message answers none of these requests. */
function hasOnlyLost(answer: MessageData, requests: MessageData['content']): boolean {
  const asked = new Set(requests.map((part) => part.toolRequest?.name));
  return answer.content.every((part) => !asked.has(part.toolResponse?.name));
}

const RUNS = scale(200, 10_000);

test(`safe cut: ${RUNS} random histories, each accepted by strict rules of roles and tools (seed ${seed})`, async () => {
  const random = new Random(seed);
  let refused = 0;
  for (let run = 0; run < RUNS; run++) {
    const log = deepFreeze(new RandomHistory(random).messages);
    const window = await windowOf(log, { maxTokens: 200 + random.below(6_000), history: randomStrategies(random) });
    if (!window) {
      refused++;
      continue;
    }
    const faults = faultsOf(log, window.sent, window.report);
    expect({ run, faults, ...(faults.length > 0 && { log, sent: window.sent }) }).toEqual({ run, faults: [] });
  }
  expect(refused).toBeLessThan(RUNS / 2);
});

describe('the strict rules', () => {
  const asks: MessageData = { role: 'model', content: [{ toolRequest: { name: 'look', ref: '1' } }] };
  const answers: MessageData = { role: 'tool', content: [{ toolResponse: { name: 'look', ref: '1', output: 1 } }] };

  test('accept a conversation that is right', () => {
    expect(brokenRules([user('a'), asks, answers, model('b'), user('c')])).toEqual([]);
  });

  test.each<[string, MessageData[]]>([
    ['a model that begins', [model('a'), user('b')]],
    ['a request without a response', [user('a'), asks, user('b')]],
    ['a response without a request', [user('a'), answers]],
    ['two users', [user('a'), user('b')]],
    ['an empty message', [user('a'), { role: 'model', content: [] }, user('b')]],
    [
      'a response for another request',
      [user('a'), asks, { role: 'tool', content: [{ toolResponse: { name: 'look', ref: '2' } }] }],
    ],
    ['a model at the end', [user('a'), model('b')]],
  ])('refuse %s', (_, messages) => {
    expect(brokenRules(messages)).not.toEqual([]);
  });
});

describe('an orphan that is in the log', () => {
  const asks: MessageData = { role: 'model', content: [{ toolRequest: { name: 'look', ref: '1' } }] };

  test('is answered for the model', async () => {
    const { sent } = (await windowOf([user('a'), asks, user('b'), model('c'), user('d')], {}))!;
    expect(sent[3]).toEqual({
      role: 'tool',
      content: [{ toolResponse: { name: 'look', ref: '1', output: 'The tool did not answer.' } }],
    });
  });

  test('a greeting of the assistant stays, after a word of the user', async () => {
    const { sent } = (await windowOf([model('Welcome!'), user('a')], {}))!;
    expect(sent.slice(1)).toEqual([user('(The assistant begins the conversation.)'), model('Welcome!'), user('a')]);
  });
});

describe.each<[string, HistoryStrategy[] | undefined]>([
  ['no strategy', undefined],
  ['lastTurns', [lastTurns(1)]],
  ['tokenBudget', [tokenBudget(1)]],
  ['a summary of it', [() => ({ items: [], summary: { text: 'Notes.', to: 6, sha256: 'x', tokens: 2 } })]],
  ['one that leaves out all', [() => ({ items: [] })]],
])('with %s', (_, history) => {
  const asks: MessageData = {
    role: 'model',
    content: [{ toolRequest: { name: 'refund', ref: '1' }, metadata: { interrupt: true } }],
  };
  const log = [user('a'), model('b'), user('Refund A7.'), asks, user('Hm.'), model('ok'), user('c'), model('d')];

  test('a tool request that waits for the user is sent, also after later messages', async () => {
    const { sent, report } = (await windowOf([...log, user('now')], { ...(history && { history }) }))!;
    const at = sent.findIndex(({ content }) => content.some((part) => part.toolRequest));
    expect(sent[at - 1]!.content.at(-1)).toEqual({ text: 'Refund A7.' });
    expect(sent[at + 1]).toEqual({
      role: 'tool',
      content: [{ toolResponse: { name: 'refund', ref: '1', output: 'Waits for the user.' } }],
    });
    expect(brokenRules(sent)).toEqual([]);
    expect(JSON.stringify(sent).includes('"b"'), 'the others are left out').toBe(history === undefined);
    expect(report.sent.some(([from, to]) => from <= 2 && to >= 4)).toBe(true);
  });

  test('an answered one may be left out', async () => {
    const answer: MessageData = { role: 'tool', content: [{ toolResponse: { name: 'refund', ref: '1', output: 1 } }] };
    const answered = [...log.slice(0, 4), answer, ...log.slice(4), user('e'), model('f'), user('now')];
    const { sent } = (await windowOf(answered, { ...(history && { history }) }))!;
    expect(JSON.stringify(sent).includes('refund')).toBe(history === undefined);
  });
});

describe('a message of empty texts', () => {
  test.each<[string, Part[], string[]]>([
    ['is left out as one without parts is', [{ text: '' }], ['user: a + b']],
    ['leaves its other parts', [{ text: '' }, { text: 'hi' }], ['user: a', 'model: hi', 'user: b']],
    [
      'keeps a mark of its provider',
      [{ text: '', metadata: { thoughtSignature: 'x' } }],
      ['user: a', 'model: ', 'user: b'],
    ],
  ])('%s', async (_, content, texts) => {
    const { sent } = (await windowOf([user('a'), { role: 'model', content }, user('b')], {}))!;
    expect(textsOf({ messages: sent.slice(1) })).toEqual(texts);
  });

  test('is sent if it is the prompt: no request ends with a message of the model', async () => {
    const { sent } = (await windowOf([user('a'), model('b'), user('')], {}))!;
    expect(sent.at(-1)).toEqual(user(''));
  });
});

test('a strategy that leaves out the question of the first turn gets it back', async () => {
  const history = [({ items }: History) => ({ items: items.filter(({ position }) => position === 3) })];
  const { sent } = (await windowOf([user('a'), model('b'), user('c'), model('d'), user('e')], { history }))!;
  expect(sent.slice(1)).toEqual([user('c'), model('d'), user('e')]);
});
