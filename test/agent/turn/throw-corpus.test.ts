import { genkit, GenkitError, z, type Genkit } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { defineAgent, defineCustomAgent, InMemorySessionStore, type Agent, type AgentOutput } from 'genkitx-agents';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, test } from 'vitest';
import { catchErrorLog } from '../../server/support/log.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

const circular: Record<string, unknown> = { name: 'circular' };
circular['self'] = circular;

const SENTENCE = 'Something went wrong inside the agent.';
const ERROR_ID = expect.stringMatching(/^[\da-f-]{36}$/) as string;

/** The errorId, which identifies a record in the log. */
const errorIdOf = (record: { details?: unknown } | undefined) => (record!.details as { errorId: string }).errorId;

/** What a snapshot holds of an error: its status, a sentence and the errorId, nothing of the thrown message. */
function expectRedacted(
  stored: { error?: { status?: string; message: string; details?: unknown } } | undefined,
  told: object,
  words: string,
): void {
  const { status } = told as { status: string };
  expect(stored?.error).toStrictEqual({
    status,
    message: expect.any(String) as string,
    details: { errorId: ERROR_ID },
  });
  if (status === 'INTERNAL') expect(stored?.error?.message).toBe(SENTENCE);
  expect(JSON.stringify(stored)).not.toMatch(/secret|stack|orderId|tries/);
  expect(JSON.stringify(stored?.error)).not.toContain(words);
}

const hugeStack = new Error('deep');
hugeStack.stack = `Error: deep\n${'    at /srv/app/secret.ts:1:1\n'.repeat(50_000)}`;

/** Thrown values, and the errors reported for them in the same process. */
const THROWN: [name: string, thrown: unknown, told: object][] = [
  ['an Error', new Error('plain'), { status: 'INTERNAL', message: 'plain' }],
  [
    'a GenkitError with details',
    new GenkitError({ status: 'NOT_FOUND', message: 'no order', detail: { orderId: 7 } }),
    { status: 'NOT_FOUND', message: 'no order', details: { orderId: 7 } },
  ],
  [
    "a GenkitError with the model's request in it",
    new GenkitError({ status: 'ABORTED', message: 'loop', detail: { request: { messages: ['secret'] }, tries: 5 } }),
    { status: 'ABORTED', message: 'loop', details: { tries: 5 } },
  ],
  ['a string', 'just text', { status: 'INTERNAL', message: 'just text' }],
  ['undefined', undefined, { status: 'INTERNAL', message: 'The agent failed without a message.' }],
  ['null', null, { status: 'INTERNAL', message: 'The agent failed without a message.' }],
  ['a number', 404, { status: 'INTERNAL', message: 'The agent failed without a message.' }],
  ['a symbol', Symbol('s'), { status: 'INTERNAL', message: 'The agent failed without a message.' }],
  ['a plain object', { message: 'object', code: 'E1' }, { status: 'INTERNAL', message: 'object' }],
  [
    'a circular object',
    Object.assign(circular, { message: 'round', details: circular }),
    { status: 'INTERNAL', message: 'round' },
  ],
  ['an error with a huge stack', hugeStack, { status: 'INTERNAL', message: 'deep' }],
  [
    'an error with an HTTP status',
    Object.assign(new Error('busy'), { status: 503 }),
    { status: 'INTERNAL', message: 'busy' },
  ],
  ['a frozen error', Object.freeze(new Error('cold')), { status: 'INTERNAL', message: 'cold' }],
  [
    'an object whose members throw',
    Object.defineProperty({}, 'message', {
      get: () => {
        throw new Error('trap');
      },
    }),
    { status: 'INTERNAL', message: 'The agent threw a value that could not be read.' },
  ],
  [
    'a promise',
    Promise.resolve('never awaited'),
    { status: 'INTERNAL', message: 'The agent failed without a message.' },
  ],
];

function thrower(ai: Genkit, place: string, thrown: unknown, store: SessionStore): Agent {
  return defineCustomAgent(ai, { name: 'thrower', store }, async (sess) => {
    if (place === 'beside the turns') throw thrown;
    await sess.run(async () => {
      throw thrown;
    });
    return { message: sess.getMessages().at(-1) };
  });
}

const errorLog = catchErrorLog();

describe.each(['inside a turn', 'beside the turns'])('throw corpus: thrown %s', (place) => {
  describe.each(STORE_KINDS)('on $name', ({ make }) => {
    test.each(THROWN)('%s ends the call as failed, and what is stored has no word of it', async (_, thrown, told) => {
      const store = await make();
      const agent = thrower(genkit({}), place, thrown, store);
      const { output } = await call(agent, ['hi'], { sessionId: 's' });
      const errorId = errorIdOf(output.error);
      const { details } = told as { details?: object };
      const error = { ...told, details: { ...details, errorId: ERROR_ID } };
      expect(output).toStrictEqual({ sessionId: 's', finishReason: 'failed', error });
      const kept = await store.getSnapshot({ sessionId: 's' });
      expect(kept).toMatchObject({ status: 'failed', finishReason: 'failed', sessionId: 's' });
      expectRedacted(kept, told, (told as { message: string }).message);
      expect(errorIdOf(kept?.error)).toBe(errorId);
      expect(errorLog().split(errorId)).toHaveLength(2);
      if (thrown instanceof Error) expect(errorLog()).toContain(thrown.message);
      // Only the output of the turn has the thrown message.
      expect((await agent.getSnapshot({ sessionId: 's' }))?.error).toStrictEqual(kept?.error);
    });
  });
});

test('an agent remembers the error of its last detached turn, for readers in its process', async () => {
  const store = new InMemorySessionStore();
  const agent = thrower(genkit({}), 'inside a turn', new Error('the first'), store);
  const fail = async () => {
    const { snapshotId } = await agent.chat().detach('hi');
    return agent.waitForSnapshot(snapshotId);
  };
  const first = await fail();
  expect(first.error).toMatchObject({ message: 'the first', details: { errorId: ERROR_ID } });
  expect((await store.getSnapshot({ snapshotId: first.snapshotId }))?.error?.message).toBe(SENTENCE);
  await fail();
  expect((await agent.getSnapshot(first.snapshotId))?.error?.message).toBe(SENTENCE);
});

const trap: object = new Proxy(
  {},
  {
    get: () => {
      throw trap;
    },
    has: () => {
      throw trap;
    },
    getPrototypeOf: () => {
      throw trap;
    },
  },
);

test.each([...THROWN, ['an object that throws whatever is asked of it', trap, { status: 'INTERNAL' }] as const])(
  'throw corpus: thrown by the save, %s fails the call, which has the reply all the same',
  async (_, thrown, told) => {
    const store: SessionStore = {
      getSnapshot: async () => undefined,
      saveSnapshot: async () => {
        throw thrown;
      },
    };
    const ai = genkit({});
    const { name: model } = scriptedModel(ai, { otherwise: 'reply' });
    const { output } = await call(defineAgent(ai, { name: 'unsaved', model, store }), ['hi']);
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: (told as { status: string }).status } });
    if (thrown !== trap) expect(output.message?.content).toEqual([{ text: 'reply' }]);
  },
);

/** An agent whose model, or whose tool, throws. */
function promptAgent(place: string, thrown: unknown, store: SessionStore): Agent {
  const ai = genkit({});
  const fail = () => {
    throw thrown;
  };
  const asks = [{ toolRequest: { name: 'broken', input: {} } }];
  const scripted = scriptedModel(ai, { otherwise: place === 'the model' ? fail : asks });
  ai.defineTool({ name: 'broken', description: 'Breaks.', inputSchema: z.object({}) }, async () => fail());
  return defineAgent(ai, { name: 'thrower', model: scripted.name, tools: ['broken'], store });
}

/** Genkit reads and marks values that its actions throw; it fails on these, with another error. */
const TRIPS_GENKIT = new Set(['undefined', 'null', 'a symbol', 'a frozen error']);

describe.each(['the model', 'a tool'])('throw corpus: thrown by %s', (place) => {
  test.each(THROWN)('%s ends the call as failed, and the session continues', async (name, thrown, told) => {
    const store = new InMemorySessionStore();
    const agent = promptAgent(place, thrown, store);
    const { output, chunks } = await call(agent, ['hi'], { sessionId: 's' });
    expect(output).toMatchObject({ sessionId: 's', finishReason: 'failed' });
    if (TRIPS_GENKIT.has(name)) expect(output.error).toMatchObject({ status: 'INTERNAL' });
    else expect(output.error).toMatchObject(told);
    expect(chunks.at(-1)).toMatchObject({ turnEnd: { finishReason: 'failed' } });
    const kept = await store.getSnapshot({ sessionId: 's' });
    expect(kept).toMatchObject({ status: 'failed' });
    expectRedacted(kept, output.error!, output.error!.message);
    expect(errorLog()).toContain(errorIdOf(kept?.error));
    expect((await call(agent, ['again'], { sessionId: 's' })).output.finishReason).toBe('failed');
  });

  test.each(THROWN)('%s reaches a client over HTTP as a status, without a word of it', async (_, thrown, told) => {
    const handler = agentHandler([promptAgent(place, thrown, new InMemorySessionStore())], { anonymous: true });
    for (const accept of ['application/json', 'text/event-stream']) {
      const response = await handler(
        new Request('http://localhost/thrower', {
          method: 'POST',
          headers: { 'content-type': 'application/json', accept },
          body: JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'hi' }] } } }),
        }),
      );
      const body = await response.text();
      const last = body.split('data: ').at(-1)!;
      const { result } = JSON.parse(last) as { result: AgentOutput };
      expect(result.finishReason).toBe('failed');
      expect(result.error?.status).toBe((told as { status: string }).status);
      expect(body).not.toContain(`"${(told as { message: string }).message}"`);
      expect(body).not.toMatch(/secret|stack|srv|orderId|extensible|null/);
    }
  });
});
