import { z } from 'genkit';
import { genkit, type GenkitBeta, type Part } from 'genkit/beta';
import {
  defineAgent,
  InMemorySessionStore,
  type Agent,
  type AgentAPI,
  type AgentInput,
  type SessionStore,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { serveByRouter } from '../../server/support/http.ts';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { call, deferred, type Deferred, model, recordingStore, user } from '../support/helpers.ts';
import { faultTest } from '../support/runtimes.ts';
import { CHANGING_STORE_KINDS } from '../support/stores.ts';

/** Streams half of its reply, then waits to be stopped. */
function untilStopped(speaking: Deferred, stopped: Deferred): ScriptedReply {
  return ({ sendChunk, abortSignal }) => {
    sendChunk({ content: [{ text: 'Once upon ' }] });
    sendChunk({ content: [{ text: 'a time' }] });
    speaking.resolve();
    return new Promise((_, reject) => {
      const stop = () => {
        stopped.resolve();
        reject(abortSignal.reason as Error);
      };
      abortSignal.addEventListener('abort', stop, { once: true });
    });
  };
}

/** A model that replies `first`, if given, calls a tool, and waits to be stopped in the middle of its reply. Later calls return the whole reply. */
function tellerOf(ai: GenkitBeta, ...first: string[]) {
  const speaking = deferred();
  const stopped = deferred();
  const tool = ai.defineTool({ name: 'look', description: 'Looks.', inputSchema: z.object({}) }, async () => 'seen');
  const scripted = scriptedModel(ai, {
    replies: [...first, [{ toolRequest: { name: 'look', ref: '1', input: {} } }], untilStopped(speaking, stopped)],
    otherwise: 'The end.',
  });
  return { scripted, speaking, stopped, config: { name: 'teller', model: scripted.name, tools: [tool] } };
}

const transports: { name: string; reach: (agent: Agent) => Promise<AgentAPI> }[] = [
  { name: 'in process', reach: async (agent) => agent },
  {
    name: 'over HTTP',
    reach: async (agent) => {
      const running = await serveByRouter([agent], { anonymous: true });
      onTestFinished(running.stop);
      return remoteAgent({ url: `${running.url}/teller` });
    },
  },
];

describe.each(transports)('abort: $name', ({ reach }) => {
  test('stops the model call within 100 ms, and nothing is committed', async () => {
    const ai = genkit({});
    const { store, calls } = recordingStore(new InMemorySessionStore());
    const { config, speaking, stopped } = tellerOf(ai);
    const chat = (await reach(defineAgent(ai, { ...config, store }))).chat();
    const turn = chat.sendStream('Tell me.');
    await speaking.promise;
    // Independent of the machine's load: no timer has to fire first.
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    await stopped.promise;
    await nextMacrotask();
    expect(calls.filter(({ method }) => method === 'saveSnapshot')).toEqual([]);
    expect(chat.messages).toEqual([]);
  });

  test.each(['discard', 'keep'] as const)(
    'ends the tool loop: the running tool sees it, and no further call begins (onAbort: %s)',
    async (onAbort) => {
      const ai = genkit({});
      const events: string[] = [];
      const [searching, found] = [deferred(), deferred()];
      let signal: AbortSignal | undefined;
      ai.defineModel({ name: 'm' }, async ({ messages }) => {
        const name = messages.length === 1 ? 'search' : 'pay';
        events.push(`model asks for ${name}`);
        return {
          message: { role: 'model', content: [{ toolRequest: { name, ref: String(messages.length), input: {} } }] },
        };
      });
      const search = ai.defineTool({ name: 'search', description: '.' }, async (_, { abortSignal }) => {
        signal = abortSignal;
        searching.resolve();
        await found.promise;
      });
      const pay = ai.defineTool({ name: 'pay', description: '.' }, async () => void events.push('pays'));
      const store = new InMemorySessionStore();
      const agent = defineAgent(ai, { name: 'a', model: 'm', store, tools: [search, pay], onAbort });
      const turn = agent.chat().sendStream('go');
      await searching.promise;
      turn.abort();
      expect((await turn.response).finishReason).toBe('aborted');
      expect(signal?.aborted).toBe(true);
      found.resolve();
      for (let i = 0; i < 100; i++) await new Promise(setImmediate);
      expect(events).toEqual(['model asks for search']);
    },
  );

  test('chat.abort() during a turn aborts that turn, not the snapshot before it', async () => {
    const ai = genkit({});
    const { config, speaking, stopped } = tellerOf(ai, 'Hello.');
    const agent = defineAgent(ai, { ...config, store: new InMemorySessionStore() });
    const chat = (await reach(agent)).chat();
    const { snapshotId } = await chat.send('Hi.');
    const turn = chat.sendStream('Tell me.');
    await speaking.promise;
    expect(await chat.abort()).toBe('pending');
    expect((await turn.response).finishReason).toBe('aborted');
    await stopped.promise;
    expect((await agent.getSnapshot(snapshotId!))?.status).toBe('completed');
    expect((await chat.send('Go on.')).text).toBe('The end.');
    expect(await chat.abort()).toBe('completed');
  });
});

const partial = { role: 'model', content: [{ text: 'Once upon a time' }], metadata: { partial: true } };
const toolRoundTrip = [
  { role: 'model', content: [{ toolRequest: { name: 'look', ref: '1', input: {} } }] },
  { role: 'tool', content: [{ toolResponse: { name: 'look', ref: '1', output: 'seen' } }] },
];

describe.each(CHANGING_STORE_KINDS)("abort: with onAbort: 'keep' on $name", ({ make }) => {
  test('keeps the prompt, the tools that ran and the reply so far, and the chat continues from them', async () => {
    const ai = genkit({});
    const { config, scripted, speaking } = tellerOf(ai);
    const agent = defineAgent(ai, { ...config, store: await make(), onAbort: 'keep' });
    const chat = agent.chat({ sessionId: 's' });
    const turn = chat.sendStream('Tell me.');
    await speaking.promise;
    turn.abort();
    const response = await turn.response;
    expect(response).toMatchObject({ finishReason: 'aborted', text: 'Once upon a time' });
    expect(await agent.getSnapshot(response.snapshotId!)).toMatchObject({
      status: 'aborted',
      finishReason: 'aborted',
      state: { messages: [user('Tell me.'), ...toolRoundTrip, partial] },
    });
    await chat.send('Shorter, please.');
    expect(scripted.requests.at(-1)?.messages).toMatchObject([
      user('Tell me.'),
      ...toolRoundTrip,
      partial,
      user('Shorter, please.'),
    ]);
    expect(chat.messages).toMatchObject([user('Tell me.'), partial, user('Shorter, please.'), model('The end.')]);
  });

  test('a turn without a message from the aborted snapshot generates the reply again', async () => {
    const ai = genkit({});
    const { config, scripted, speaking } = tellerOf(ai);
    const agent = defineAgent(ai, { ...config, store: await make(), onAbort: 'keep' });
    const caller = new AbortController();
    const running = call(agent, ['Tell me.'], {}, { abortSignal: caller.signal });
    await speaking.promise;
    caller.abort();
    const { snapshotId } = (await running).output;
    const again = await call(agent, [{}], { snapshotId });
    expect(scripted.requests.at(-1)?.messages).toMatchObject([user('Tell me.'), ...toolRoundTrip]);
    expect(await agent.getSnapshot(again.output.snapshotId!)).toMatchObject({
      parentId: snapshotId,
      status: 'completed',
      state: { messages: [user('Tell me.'), ...toolRoundTrip, model('The end.')] },
    });
  });
});

test("with onAbort: 'keep' a retry that fails before its model call keeps the partial reply", async () => {
  const ai = genkit({});
  const caller = new AbortController();
  const { name } = scriptedModel(ai, {
    replies: [
      ({ sendChunk }) => {
        sendChunk({ content: [{ text: 'Once' }] });
        caller.abort();
        return new Promise<never>(() => {});
      },
    ],
  });
  const store = new InMemorySessionStore();
  const config = { name: 'teller', model: name, store, onAbort: 'keep', turnOverrides: { models: true } } as const;
  const agent = defineAgent(ai, config);
  const { output } = await call(agent, ['Tell me.'], { sessionId: 's' }, { abortSignal: caller.signal });
  const again = await call(agent, [{ model: 'gone' } as AgentInput], { snapshotId: output.snapshotId! });
  expect(again.output).toMatchObject({ finishReason: 'failed', snapshotId: output.snapshotId });
  const failed = await store.getSnapshot({ sessionId: 's' });
  expect(failed).toMatchObject({ status: 'failed', parentId: output.snapshotId });
  expect(failed?.state?.messages).toMatchObject([user('Tell me.'), { ...model('Once'), metadata: { partial: true } }]);
});

test("with onAbort: 'keep' and no store the partial reply is in the state that the caller gets", async () => {
  const ai = genkit({});
  const { config, speaking } = tellerOf(ai);
  const chat = defineAgent(ai, { ...config, onAbort: 'keep' }).chat();
  const turn = chat.sendStream('Tell me.');
  await speaking.promise;
  turn.abort();
  expect((await turn.response).raw.state?.messages).toMatchObject([user('Tell me.'), ...toolRoundTrip, partial]);
  await chat.send('Shorter, please.');
  expect(chat.messages).toHaveLength(6);
});

describe('abort: while the turn is being saved', () => {
  /** A store whose saves wait after the test asks for it. */
  function slowStore() {
    const inner = new InMemorySessionStore();
    const saving = deferred();
    const goOn = deferred();
    let isSlow = false;
    const store: SessionStore = {
      getSnapshot: (lookup) => inner.getSnapshot(lookup),
      saveSnapshot: async (snapshotId, mutator, options) => {
        if (isSlow) {
          saving.resolve();
          await goOn.promise;
        }
        return inner.saveSnapshot(snapshotId, mutator, options);
      },
    };
    return { inner, store, saving, goOn, slowDown: () => (isSlow = true) };
  }

  test.each(['discard', 'keep'] as const)(
    'the output matches the store (onAbort: %s), and the chat continues from it',
    async (onAbort) => {
      const ai = genkit({});
      const { inner, store, saving, goOn, slowDown } = slowStore();
      const scripted = scriptedModel(ai, { replies: ['one', 'two', 'three'] });
      const chat = defineAgent(ai, { name: 'teller', model: scripted.name, store, onAbort }).chat({ sessionId: 's' });
      await chat.send('1');
      slowDown();
      const caller = new AbortController();
      const turn = chat.send('2', { abortSignal: caller.signal });
      await saving.promise;
      caller.abort();
      goOn.resolve();
      const { finishReason, text, snapshotId } = await turn;
      expect({ finishReason, text }).toEqual({ finishReason: 'stop', text: 'two' });
      expect(await inner.getSnapshot({ sessionId: 's' })).toMatchObject({ snapshotId, status: 'completed' });
      const third = await chat.send('3');
      expect((await inner.getSnapshot({ sessionId: 's' }))?.parentId).toBe(snapshotId);
      expect((await inner.getSnapshot({ snapshotId: third.snapshotId! }))?.state?.messages).toHaveLength(6);
      expect((await inner.listSessions()).items).toMatchObject([{ leafCount: 1 }]);
    },
  );

  test.each(['discard', 'keep'] as const)(
    'the output matches the store when the abort comes from inside its save (onAbort: %s)',
    async (onAbort) => {
      const ai = genkit({});
      const inner = new InMemorySessionStore();
      const caller = new AbortController();
      const store: SessionStore = {
        getSnapshot: (lookup) => inner.getSnapshot(lookup),
        saveSnapshot: (snapshotId, mutator, options) => {
          caller.abort();
          return inner.saveSnapshot(snapshotId, mutator, options);
        },
      };
      const scripted = scriptedModel(ai, { replies: ['one'] });
      const agent = defineAgent(ai, { name: 'teller', model: scripted.name, store, onAbort });
      const { finishReason, text, snapshotId } = await agent.chat().send('1', { abortSignal: caller.signal });
      expect({ finishReason, text }).toEqual({ finishReason: 'stop', text: 'one' });
      expect(await inner.getSnapshot({ snapshotId: snapshotId! })).toMatchObject({ status: 'completed' });
    },
  );

  test('the output of a queued turn matches the store', async () => {
    const ai = genkit({});
    const { inner, store, saving, goOn, slowDown } = slowStore();
    const scripted = scriptedModel(ai, { replies: ['one'] });
    const agent = defineAgent(ai, { name: 'teller', model: scripted.name, store, onConflict: 'queue' });
    slowDown();
    const caller = new AbortController();
    const turn = call(agent, ['1'], { sessionId: 's' }, { abortSignal: caller.signal });
    await saving.promise;
    caller.abort();
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    goOn.resolve();
    const { output } = await turn;
    expect(output).toMatchObject({ finishReason: 'stop', message: model('one') });
    expect(await inner.getSnapshot({ sessionId: 's' })).toMatchObject({ snapshotId: output.snapshotId });
  });

  test('a save fails within its time limit if the store does not answer', async () => {
    const ai = genkit({});
    const { store, saving, slowDown } = slowStore();
    const scripted = scriptedModel(ai, { replies: ['one'] });
    const agent = defineAgent(ai, { name: 'teller', model: scripted.name, store, storeTimeoutMs: 20 });
    slowDown();
    const caller = new AbortController();
    const turn = call(agent, ['1'], {}, { abortSignal: caller.signal });
    await saving.promise;
    caller.abort();
    expect((await turn).output).toMatchObject({
      finishReason: 'failed',
      error: { status: 'DEADLINE_EXCEEDED' },
      message: model('one'),
    });
  });

  test('waiting turns are aborted', async () => {
    const ai = genkit({});
    const { store, saving, goOn, slowDown } = slowStore();
    const scripted = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'teller', model: scripted.name, store });
    slowDown();
    const caller = new AbortController();
    const turn = call(agent, ['1', '2'], {}, { abortSignal: caller.signal });
    await saving.promise;
    caller.abort();
    goOn.resolve();
    const { output } = await turn;
    expect(output.finishReason).toBe('aborted');
    expect((await agent.getSnapshot(output.snapshotId!))?.state?.messages).toHaveLength(2);
    expect(scripted.requests).toHaveLength(1);
  });
});

describe("abort: with onAbort: 'keep'", () => {
  test('the client sees the transformed partial reply', async () => {
    const ai = genkit({});
    const { config, speaking } = tellerOf(ai);
    const agent = defineAgent(ai, {
      ...config,
      store: new InMemorySessionStore(),
      onAbort: 'keep',
      clientTransform: {
        state: (state) => ({ ...state, messages: state.messages?.filter(({ role }) => role === 'user') }),
      },
    });
    const turn = agent.chat().sendStream('Tell me.');
    await speaking.promise;
    turn.abort();
    const { raw } = await turn.response;
    expect(raw.finishReason).toBe('aborted');
    expect(JSON.stringify(raw)).not.toContain('Once upon');
  });

  test('results of finished parallel tools are kept, and no tool runs twice', async () => {
    const ai = genkit({});
    const waiting = deferred();
    let charged = 0;
    ai.defineTool({ name: 'charge', description: 'Charges.', inputSchema: z.object({}) }, async () => {
      charged++;
      return 'charged';
    });
    ai.defineTool({ name: 'wait', description: 'Waits.', inputSchema: z.object({}) }, async () => {
      waiting.resolve();
      return new Promise<string>(() => {});
    });
    const ask = (name: string) => ({ toolRequest: { name, ref: name, input: {} } });
    const scripted = scriptedModel(ai, {
      replies: [[{ text: 'A moment.' }, ask('charge'), ask('wait')]],
      otherwise: 'done',
    });
    const agent = defineAgent(ai, {
      name: 'teller',
      model: scripted.name,
      tools: ['charge', 'wait'],
      store: new InMemorySessionStore(),
      onAbort: 'keep',
    });
    const chat = agent.chat();
    const turn = chat.sendStream('Go.');
    await waiting.promise;
    await vi.waitUntil(() => charged === 1);
    await nextMacrotask();
    turn.abort();
    const { snapshotId } = await turn.response;
    expect((await agent.getSnapshot(snapshotId!))?.state?.messages).toEqual([
      user('Go.'),
      { role: 'model', content: [{ text: 'A moment.' }, ask('charge')] },
      { role: 'tool', content: [{ toolResponse: { name: 'charge', ref: 'charge', output: 'charged' } }] },
    ]);
    expect((await call(agent, [{}], { snapshotId: snapshotId! })).output.message).toEqual(model('done'));
    expect(charged).toBe(1);
  });
});

describe("abort: with onAbort: 'keep' while tools run", () => {
  /** A tool that returns its input, or never ends, and an agent whose model makes the given requests. */
  function setUp(requests: Part[]) {
    const ai = genkit({});
    const ran: number[] = [];
    const waiting = deferred();
    ai.defineTool(
      { name: 'work', description: 'Works.', inputSchema: z.object({ n: z.number(), asks: z.boolean().optional() }) },
      async ({ n, asks }, { interrupt, resumed }) => {
        if (asks && !resumed) interrupt();
        ran.push(n);
        if (n > 0) return `done ${n}`;
        waiting.resolve();
        return new Promise<string>(() => {});
      },
    );
    const scripted = scriptedModel(ai, { replies: [requests], otherwise: 'done' });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, { name: 'worker', model: scripted.name, tools: ['work'], store, onAbort: 'keep' });
    const stopped = async (
      running: { abort: () => void; response: Promise<{ snapshotId?: string }> },
      done: number,
    ) => {
      await waiting.promise;
      await vi.waitUntil(() => ran.length > done);
      await nextMacrotask();
      running.abort();
      const { snapshotId } = await running.response;
      return { snapshotId, messages: (await agent.getSnapshot(snapshotId!))?.state?.messages };
    };
    return { agent, ran, stopped };
  }
  const work = (n: number, ref?: string): Part => ({
    toolRequest: { name: 'work', input: { n }, ...(ref && { ref }) },
  });
  const worked = (n: number): Part => ({ toolResponse: { name: 'work', output: `done ${n}` } });

  test('requests of one tool without refs are distinguished', async () => {
    const noted = { ...work(2), metadata: { signature: 'abc' } };
    const { agent, stopped } = setUp([work(0), work(1), noted]);
    const { messages } = await stopped(agent.chat().sendStream('Go.'), 2);
    expect(messages).toEqual([
      user('Go.'),
      { role: 'model', content: [work(1), noted] },
      { role: 'tool', content: [worked(1), worked(2)] },
    ]);
  });

  test('after an aborted approval the finished tools are kept and no request waits', async () => {
    const asking = (n: number, ref: string) => ({
      toolRequest: { name: 'work', ref, input: { n, asks: true } },
    });
    const { agent, ran, stopped } = setUp([asking(1, 'a'), asking(0, 'b')]);
    const chat = agent.chat();
    await chat.send('Go.');
    const restart = [asking(1, 'a'), asking(0, 'b')].map((part) => ({ ...part, metadata: { resumed: true } }));
    const { snapshotId, messages } = await stopped(chat.resumeStream({ restart }), 1);
    expect(messages).toEqual([
      user('Go.'),
      { role: 'model', content: [asking(1, 'a')] },
      { role: 'tool', content: [{ toolResponse: { name: 'work', ref: 'a', output: 'done 1' } }] },
    ]);
    expect((await call(agent, [{}], { snapshotId: snapshotId! })).output.message).toEqual(model('done'));
    expect(ran).toEqual([1, 0]);
  });
});

test('onAbort accepts two values only', () => {
  expect(() => defineAgent(genkit({}), { name: 'a', onAbort: 'save' as never })).toThrow(
    "onAbort must be 'discard' or 'keep'",
  );
});

describe('abort: beside Genkit', () => {
  faultTest('the caller’s signal ends the turn, and nothing is committed', async (makeGenkit) => {
    const ai = makeGenkit();
    const { store, calls } = recordingStore(new InMemorySessionStore());
    const started = deferred();
    const agent = ai.defineCustomAgent({ name: 'teller', store }, async (sess, { abortSignal }) => {
      await sess.run(async () => {
        started.resolve();
        // A turn that takes 50 ms unless it is stopped.
        await new Promise((resolve) => {
          const timer = setTimeout(resolve, 50);
          abortSignal?.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
        });
      });
      return {};
    });
    const caller = new AbortController();
    const running = call(agent, ['go'], {}, { abortSignal: caller.signal });
    await started.promise;
    caller.abort();
    expect((await running).output.finishReason).toBe('aborted');
    expect(calls.filter(({ method }) => method === 'saveSnapshot')).toEqual([]);
  });

  faultTest('chat.abort() during a turn stops the turn', async (makeGenkit) => {
    const ai = makeGenkit();
    const { config, speaking, stopped } = tellerOf(ai, 'Hello.');
    const chat = ai.defineAgent({ ...config, store: new InMemorySessionStore() }).chat();
    await chat.send('Hi.');
    const turn = chat.sendStream('Tell me.');
    turn.response.catch(() => {});
    await speaking.promise;
    await chat.abort();
    let hasStopped = false;
    void stopped.promise.then(() => (hasStopped = true));
    await vi.waitUntil(() => hasStopped, { timeout: 2000, interval: 2 });
  });
});

function nextMacrotask(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
