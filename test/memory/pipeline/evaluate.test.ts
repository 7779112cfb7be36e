/** `evaluate` measures the extraction, `evaluateTasks` tasks that need a memory. */
import { GenkitError } from 'genkit';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { describe, expect, test, vi } from 'vitest';
import { extraction, model as said, range, setUp, PATIENT, textsOf, user } from './support.ts';

test('evaluate returns precision, recall and F1 of the extraction', async () => {
  const { memory, store } = setUp({
    replies: [extraction('The user likes tea.', 'The user is tall.'), extraction('The user has a dog.')],
  });
  const scores = await memory.evaluate({
    cases: [
      { messages: [user('Tea!')], expected: ['the user likes tea'] },
      { messages: [user('Rex, my dog, and Tom, my cat.')], expected: ['The user has a dog.', 'The user has a cat.'] },
    ],
  });
  expect(scores.precision).toBeCloseTo(2 / 3);
  expect(scores.recall).toBeCloseTo(2 / 3);
  expect(scores.f1).toBeCloseTo(2 / 3);
  expect(scores.cases).toEqual([
    { unexpected: ['The user is tall.'], missing: [] },
    { unexpected: [], missing: ['The user has a cat.'] },
  ]);
  expect((await store.listScopes()).items).toEqual([]);
});

test('evaluate sends the same prompts to the model as ingest', async () => {
  const { memory, model, scope } = setUp({
    otherwise: extraction(),
    redact: (text) => text.replaceAll('ada@example.org', '[EMAIL_1]'),
  });
  const messages = [user('Write to ada@example.org.'), said('To ada@example.org it goes.')];
  await memory.ingest({ scope, source: { id: 'a' }, messages, wait: true });
  await memory.evaluate({ cases: [{ messages, expected: [] }] });
  const [ingested, evaluated] = model.requests.map((request) => JSON.stringify(request.messages));
  expect(evaluated).toContain('[EMAIL]');
  expect(evaluated).toBe(ingested);
});

test('evaluate names a case whose answer stays malformed, and scores the others', async () => {
  const { memory } = setUp({ replies: [extraction('The user likes tea.'), 'Tea!', 'Tea!!', extraction()] });
  const expected = ['The user likes tea.'];
  const scores = await memory.evaluate({ cases: range(0, 3).map(() => ({ messages: [user('Tea!')], expected })) });
  expect(scores).toMatchObject({
    precision: 1,
    recall: 1 / 3,
    cases: [{ missing: [] }, { unexpected: [], missing: expected }, { missing: expected }],
    failed: [{ index: 1, error: expect.stringContaining('malformed twice') }],
  });
});

test('evaluate names the cases in which the model throws, and scores the others', async () => {
  let calls = 0;
  const { memory } = setUp({
    otherwise: () => {
      if (++calls % 2 === 0) throw new GenkitError({ status: 'RESOURCE_EXHAUSTED', message: `Quota, call ${calls}.` });
      return extraction('The user likes tea.');
    },
  });
  const expected = ['The user likes tea.'];
  const scores = await memory.evaluate({ cases: range(0, 4).map(() => ({ messages: [user('Tea!')], expected })) });
  expect(scores).toMatchObject({
    precision: 1,
    recall: 0.5,
    cases: [{ missing: [] }, { missing: expected }, { missing: [] }, { missing: expected }],
    failed: [
      { index: 1, error: expect.stringContaining('Quota, call 2.') },
      { index: 3, error: expect.stringContaining('Quota, call 4.') },
    ],
  });
});

test.each([
  new GenkitError({ status: 'CANCELLED', message: 'The run ends.' }),
  new DOMException('The run ends.', 'AbortError'),
])('evaluate ends when it is aborted: %s', async (abort) => {
  const { memory, model } = setUp({
    replies: [
      extraction(),
      () => {
        throw abort;
      },
    ],
    otherwise: extraction(),
  });
  const run = memory.evaluate({ cases: range(0, 3).map(() => ({ messages: [user('Tea!')], expected: [] })) });
  await expect(run).rejects.toThrow('The run ends.');
  expect(model.requests).toHaveLength(2);
});

test('evaluate fails with the error of a model that answers in no case', async () => {
  const isDown = () => {
    throw new GenkitError({ status: 'UNAVAILABLE', message: 'Down.' });
  };
  const { memory } = setUp({ otherwise: isDown });
  const run = memory.evaluate({ cases: [{ messages: [user('Tea!')], expected: [] }] });
  await expect(run).rejects.toMatchObject({ status: 'UNAVAILABLE' });
});

describe('evaluateTasks', () => {
  const judge = 'contains';
  const paris = { sessions: [[user('I live in Paris.')]], question: 'Where do I live?', reference: 'Paris' };
  const oslo = {
    sessions: [[user('Hello.')], [user('I live in Rome.')]],
    question: 'Where do I live?',
    reference: 'Oslo',
  };

  /** An agent that answers with the text before the question, and an evaluator that searches the answer for the reference. */
  function withAgent(options: Parameters<typeof setUp>[0] = {}) {
    const set = setUp({ model: undefined, extract: 'verbatim', ...options });
    const echo = 'echo';
    set.ai.defineModel({ apiVersion: 'v2', name: echo }, async ({ messages }) => ({
      message: {
        role: 'model',
        content: [
          {
            text: messages
              .at(-1)!
              .content.map(({ text }) => text)
              .join(' '),
          },
        ],
      },
      finishReason: 'stop',
    }));
    const agent = defineAgent(set.ai, {
      name: 'a',
      model: echo,
      store: new InMemorySessionStore(),
      memory: set.memory.attach({ preload: PATIENT }),
      ...(options.userId && { userId: options.userId }),
    });
    const judged = vi.fn();
    set.ai.defineEvaluator({ name: judge, displayName: judge, definition: judge }, async (point) => {
      judged(point);
      const status = String(point.output).includes(String(point.reference)) ? 'PASS' : 'FAIL';
      return { testCaseId: point.testCaseId, evaluation: { status } };
    });
    const answer = async ({ question, context }: { question: string; context: object }) =>
      (await agent.chat({}, { context }).send(question)).text;
    return { ...set, judged, answer };
  }

  test('learns, asks and lets an evaluator judge, each task as another user, of whom no memory is left', async () => {
    const { memory, store, judged, answer } = withAgent();
    const scores = await memory.evaluateTasks({ tasks: [paris, oslo], answer, evaluator: judge });
    expect(scores).toMatchObject({ success: 0.5, tasks: [{ isSuccess: true }, { isSuccess: false }], failed: [] });
    expect(await memory.evaluateTasks({ tasks: [paris], answer, evaluator: { name: judge } })).toMatchObject({
      success: 1,
    });
    expect(scores.tasks[1]!.answer).toContain('Rome');
    expect(scores.tasks[1]!.answer).not.toContain('Paris');
    expect(judged.mock.calls.map(([{ input, reference }]) => [input, reference])).toEqual([
      [paris.question, 'Paris'],
      [oslo.question, 'Oslo'],
      [paris.question, 'Paris'],
    ]);
    for (const scope of (await store.listScopes()).items)
      expect((await store.query(scope, { filter: { includeInvalid: true } })).items).toEqual([]);
  });

  test.each([
    [{ score: true }, 1],
    [{ score: false }, 0],
    [{ score: 0.1, status: 'PASS' }, 1],
    [[{ status: 'PASS' }, { status: 'FAIL' }], 0],
  ])('counts %j as %i successes', async (evaluation, success) => {
    const { ai, memory, answer } = withAgent();
    ai.defineEvaluator({ name: 'other', displayName: 'other', definition: 'other' }, async ({ testCaseId }) => ({
      testCaseId,
      evaluation: evaluation as { score: boolean },
    }));
    expect(await memory.evaluateTasks({ tasks: [paris], answer, evaluator: 'other' })).toMatchObject({ success });
  });

  test('goes on after a task without a result, and says why', async () => {
    let sessions = 0;
    const set = withAgent({
      extract: ({ messages }) => {
        if (sessions++ === 0) throw new Error('The model is away.');
        return messages.map(({ content }) => content[0]!.text!);
      },
      limits: { maxAttempts: 1 },
    });
    set.ai.defineEvaluator({ name: 'ill', displayName: 'ill', definition: 'ill' }, async ({ testCaseId }) => {
      if (asked.mock.calls.length === 3) throw new Error('The judge is ill.');
      return { testCaseId, evaluation: { score: true } };
    });
    const asked = vi.fn();
    const answer = async (task: { question: string; context: object }) => {
      asked();
      if (asked.mock.calls.length === 1) throw new Error('The agent is down.');
      return asked.mock.calls.length === 2 ? (7 as never) : set.answer(task);
    };
    const tasks = [paris, paris, paris, paris, paris];
    const scores = await set.memory.evaluateTasks({ tasks, answer, evaluator: 'ill' });
    expect(scores).toMatchObject({ success: 0.2 });
    expect(scores.failed).toMatchObject([
      { index: 0, error: expect.stringContaining("session 0 ended as 'failed'. The model is away.") },
      { index: 1, error: 'The agent is down.' },
      { index: 2, error: 'answer must return a text.' },
      { index: 3, error: expect.stringContaining('The judge is ill.') },
    ]);
    expect(scores.tasks.map((task) => task.answer !== undefined)).toEqual([false, false, false, true, true]);
    expect((await set.store.listJobs()).items).toEqual([]);
  });

  test('learns for its own users where the default is that no consent is given', async () => {
    const { memory, answer } = withAgent({ consent: 'off' });
    expect(await memory.evaluateTasks({ tasks: [paris], answer, evaluator: judge })).toMatchObject({ success: 1 });
  });

  test('throws when no task has a result', async () => {
    const { memory, judged, answer } = withAgent({
      redact: () => {
        throw new Error('The redactor is away.');
      },
    });
    const run = memory.evaluateTasks({ tasks: [paris], answer, evaluator: judge });
    await expect(run).rejects.toThrow('no task has a result. The redactor is away.');
    expect(judged).not.toHaveBeenCalled();
  });

  test.each([{ score: 0.9 }, { score: 'good' }, { score: true, status: 'UNKNOWN' }])(
    'treats %j as no result, and reports the missing status',
    async (evaluation) => {
      const { ai, memory, answer } = withAgent();
      ai.defineEvaluator({ name: 'vague', displayName: 'vague', definition: 'vague' }, async ({ testCaseId }) => ({
        testCaseId,
        evaluation: evaluation as { score: boolean },
      }));
      const run = memory.evaluateTasks({ tasks: [paris], answer, evaluator: 'vague' });
      await expect(run).rejects.toThrow('Let it set a status');
    },
  );

  test('changes no other users', async () => {
    const { memory, scope, store, answer } = withAgent({ userId: () => 'ada' });
    await memory.ingest({ scope, source: { id: 's' }, messages: [user('I love tea.')], wait: true });
    const run = memory.evaluateTasks({ tasks: [paris], answer, evaluator: judge });
    await expect(run).rejects.toThrow(
      'The manager\'s userId must return a text that contains auth.uid of the context; it returned "ada".',
    );
    expect(await textsOf(store)).toEqual(['I love tea.']);
  });

  test.each([
    [{ tasks: [] }, 'at least one task'],
    [{ tasks: [{ ...paris, question: ' ' }] }, 'tasks[0]: question must be a string that is not blank'],
    [{ tasks: [{ ...paris, sessions: [[]] }] }, 'tasks[0].sessions[0] has no message'],
    [{ tasks: [{ ...paris, answer: 'Paris' }] }, "no option 'answer'"],
    [{ evaluator: { name: 'unheard of' }, tasks: [paris] }, 'no evaluator "unheard of"'],
    [{ evaluator: 'unheard of', tasks: [paris] }, 'no evaluator "unheard of"'],
    [{ tasks: [{ ...paris, sessions: [[{ role: 'user' }]] }] }, 'tasks[0].sessions[0]'],
    [{ tasks: [paris], judge }, "no option 'judge'"],
  ])('refuses %j', async (options, says) => {
    const { memory, answer } = withAgent();
    await expect(memory.evaluateTasks({ answer, evaluator: judge, ...options } as never)).rejects.toThrow(says);
  });
});
