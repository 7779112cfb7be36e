/** Faults of Genkit's runtime that have no test file of their own (detach, abort, forged resumes). */
import { z } from 'genkit';
import { genkit as genkitOfGenkit, type SessionStore } from 'genkit/beta';
import { defineAgent, defineCustomAgent, genkit, InMemorySessionStore, type Agent } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, deferred, kinds, model, recordingStore, user } from '../support/helpers.ts';
import { faultTest, type MakeGenkit } from '../support/runtimes.ts';
import { ALL_STORE_KINDS } from '../support/stores.ts';

describe('store failure: a store that never answers', () => {
  const never = () => new Promise<never>(() => {});

  test('ends the turn with a typed error, and the reply comes with it', async () => {
    const inner = new InMemorySessionStore();
    const store: SessionStore = { getSnapshot: (lookup) => inner.getSnapshot(lookup), saveSnapshot: never };
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store, storeTimeoutMs: 20 });
    const { output } = await call(agent, ['hi']);
    expect(output).toMatchObject({
      finishReason: 'failed',
      message: model('hello'),
      error: { status: 'DEADLINE_EXCEEDED', message: 'The session store did not answer a save within 20 ms.' },
    });
    expect(scripted.requests).toHaveLength(1);
  });

  test('ends the call when it can not be read, before any model call, and a background run is not begun', async () => {
    const store: SessionStore = { getSnapshot: never, saveSnapshot: never };
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store, storeTimeoutMs: 20 });
    const late = { finishReason: 'failed', error: { status: 'DEADLINE_EXCEEDED' } };
    expect((await call(agent, ['hi'], { sessionId: 's' })).output).toMatchObject(late);
    expect((await call(agent, [{ message: user('hi'), detach: true }])).output).toMatchObject(late);
    await expect(agent.getSnapshot('s')).rejects.toMatchObject({ status: 'DEADLINE_EXCEEDED' });
    await expect(agent.abort('s')).rejects.toMatchObject({ status: 'DEADLINE_EXCEEDED' });
    expect(scripted.requests).toHaveLength(0);
  });

  test('writes nothing when it answers later', async () => {
    const inner = new InMemorySessionStore();
    const awake = deferred();
    const store: SessionStore = {
      getSnapshot: (lookup) => inner.getSnapshot(lookup),
      saveSnapshot: (...args) => awake.promise.then(() => inner.saveSnapshot(...args)),
    };
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store, storeTimeoutMs: 20 });
    await call(agent, ['hi'], { sessionId: 's' });
    awake.resolve();
    await new Promise(setImmediate);
    expect(await inner.getSnapshot({ sessionId: 's' })).toBeUndefined();
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 31])('a limit of %s ms is refused', (storeTimeoutMs) => {
    expect(() => defineAgent(genkit({}), { name: 'a', storeTimeoutMs })).toThrow(
      'storeTimeoutMs must be a whole number',
    );
  });
});

faultTest('store failure: a save that fails once does not cost the reply', async (makeGenkit) => {
  let failures = 1;
  const { store } = recordingStore(new InMemorySessionStore(), ({ method }) => {
    if (method === 'saveSnapshot' && failures-- > 0) throw new Error('not now');
  });
  const ai = makeGenkit();
  const scripted = scriptedModel(ai, { otherwise: 'hello' });
  const agent: Agent = ai.defineAgent({ name: 'a', model: scripted.name, store });
  expect((await call(agent, ['hi'])).output).toMatchObject({ finishReason: 'stop', message: model('hello') });
});

describe('the custom state', () => {
  /** An agent that changes its state in place, with or without an announcement. */
  const mutating = (makeGenkit: MakeGenkit): Agent =>
    makeGenkit().defineCustomAgent<{ steps: string[] }>(
      { name: 'a', store: new InMemorySessionStore() },
      async (sess) => {
        await sess.run(async () => {
          sess.updateCustom((custom) => custom ?? { steps: [] });
          sess.getCustom()?.steps.push('quietly');
        });
        return {};
      },
    );

  faultTest('a change in place streams at the turn’s end at the latest', async (makeGenkit) => {
    const { chunks } = await call(mutating(makeGenkit), ['go']);
    expect(chunks.map(({ customPatch }) => customPatch).filter(Boolean)).toEqual([
      [{ op: 'replace', path: '', value: { steps: [] } }],
      [{ op: 'add', path: '/steps/-', value: 'quietly' }],
    ]);
  });

  test('streams nothing if no turn changed it', async () => {
    const store = new InMemorySessionStore();
    const agent = defineCustomAgent<{ n: number }>(genkit({}), { name: 'a', store }, async (sess) => {
      await sess.run(async () => {
        if (!sess.getCustom()) sess.updateCustom(() => ({ n: 1 }));
      });
      return {};
    });
    const { chunks } = await call(agent, ['go', 'go'], { sessionId: 's' });
    expect(kinds(chunks)).toEqual(['customPatch', 'turnEnd', 'turnEnd']);
    expect(kinds((await call(agent, ['go'], { sessionId: 's' })).chunks)).toEqual(['turnEnd']);
  });

  faultTest('the chat goes on after a first turn that failed with a patch sent', async (makeGenkit) => {
    const ai = makeGenkit();
    let turns = 0;
    const agent = ai.defineCustomAgent<{ n: number }>(
      { name: 'a', store: new InMemorySessionStore() },
      async (sess) => {
        await sess.run(async () => {
          sess.updateCustom((custom) => ({ n: (custom?.n ?? 0) + 1 }));
          if (turns++ === 0) throw new Error('first');
        });
        return {};
      },
    );
    const chat = agent.chat();
    await expect(chat.send('one')).rejects.toThrow('first');
    await chat.send('two');
    expect(chat.state).toEqual({ n: 1 });
  });
});

describe('a tool that is restarted', () => {
  function setUp(makeGenkit: MakeGenkit) {
    const ai = makeGenkit();
    const scripted = scriptedModel(ai, {
      replies: [
        [
          { toolRequest: { name: 'deploy', ref: '1', input: {} } },
          { toolRequest: { name: 'confirm', ref: '2', input: {} } },
          { toolRequest: { name: 'count', ref: '3', input: {} } },
        ],
      ],
      otherwise: 'deployed',
    });
    const seen: unknown[] = [];
    const deploy = ai.defineTool(
      { name: 'deploy', description: 'Deploys.', inputSchema: z.object({}) },
      async (_, options) => {
        seen.push(options.resumed);
        const step = (options.resumed as { step?: string } | undefined)?.step;
        if (step !== 'second') options.interrupt({ needs: step === 'first' ? 'second' : 'first' });
        return 'up';
      },
    );
    const confirm = ai.defineTool(
      { name: 'confirm', description: 'Asks.', inputSchema: z.object({}) },
      async (_, { resumed, interrupt }) => (resumed ? 'confirmed' : interrupt()),
    );
    let counted = 0;
    const count = ai.defineTool(
      { name: 'count', description: 'Counts.', inputSchema: z.object({}) },
      async () => ++counted,
    );
    const store = new InMemorySessionStore();
    const agent: Agent = ai.defineAgent({ name: 'ops', model: scripted.name, tools: [deploy, confirm, count], store });
    return { agent, scripted, seen, counted: () => counted };
  }

  test('gets the approval’s metadata, may interrupt again, and tools beside it do not run again', async () => {
    const { agent, scripted, seen, counted } = setUp(() => genkit({}));
    const chat = agent.chat();
    const first = await chat.send('go');
    expect(first.interrupts.map(({ name }) => name)).toEqual(['deploy', 'confirm']);
    const [deploy, confirm] = first.interrupts;
    const second = await chat.resume({ restart: [deploy!.restart({ step: 'first' }), confirm!.restart()] });
    expect(second.finishReason).toBe('interrupted');
    expect(second.message?.content[0]?.metadata).toMatchObject({ interrupt: { needs: 'second' } });
    expect(second.interrupts.map(({ name }) => name)).toEqual(['deploy']);
    expect(scripted.requests).toHaveLength(1);
    const third = await chat.resume({ restart: [second.interrupts[0]!.restart({ step: 'second' })] });
    expect(third.text).toBe('deployed');
    expect(seen).toEqual([undefined, { step: 'first' }, { step: 'second' }]);
    expect(counted()).toBe(1);
    const outputs = scripted.requests[1]?.messages.at(-1)?.content.map(({ toolResponse }) => toolResponse?.output);
    expect(new Set(outputs)).toEqual(new Set(['up', 'confirmed', 1]));
  });

  faultTest('may interrupt a second time', async (makeGenkit) => {
    const { agent } = setUp(makeGenkit);
    const restart = (ref: string, name: string, resumed: unknown) => ({
      toolRequest: { name, ref, input: {} },
      metadata: { resumed },
    });
    const { output } = await call(agent, ['go']);
    const again = await call(
      agent,
      [{ resume: { restart: [restart('1', 'deploy', { step: 'first' }), restart('2', 'confirm', true)] } }],
      { snapshotId: output.snapshotId },
    );
    expect(again.output.finishReason).toBe('interrupted');
  });
});

describe.each(ALL_STORE_KINDS.slice(1))('two turns on one session on $name', ({ make }) => {
  async function setUp(onConflict?: 'reject' | 'queue' | 'branch') {
    const ai = genkitOfGenkit({});
    const gates: ReturnType<typeof deferred<string>>[] = [];
    const scripted = scriptedModel(ai, {
      otherwise: () => {
        const gate = deferred<string>();
        gates.push(gate);
        return gate.promise;
      },
    });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store: await make(), onConflict });
    const called = async (n: number) => {
      while (gates.length < n) await new Promise(setImmediate);
      return gates[n - 1]!;
    };
    const first = call(agent, ['zero'], { sessionId: 's' });
    (await called(1)).resolve('0');
    return { agent, scripted, called, gates, root: (await first).output.snapshotId };
  }

  test('by sessionId: the turn that is saved second is rejected with its reply, nothing is lost', async () => {
    const { agent, called } = await setUp();
    const one = call(agent, ['one'], { sessionId: 's' });
    const two = call(agent, ['two'], { sessionId: 's' });
    (await called(2)).resolve('1');
    const { output: won } = await one;
    (await called(3)).resolve('2');
    const { output: lost } = await two;
    expect(won.finishReason).toBe('stop');
    expect(lost).toMatchObject({ finishReason: 'failed', error: { status: 'ABORTED' }, message: model('2') });
    expect((await agent.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(won.snapshotId);
  });

  test('by sessionId: when the first fails, the other is saved', async () => {
    const { agent, called } = await setUp();
    const one = call(agent, ['one'], { sessionId: 's' });
    const two = call(agent, ['two'], { sessionId: 's' });
    (await called(2)).resolve(Promise.reject(new Error('no')) as never);
    expect((await one).output.finishReason).toBe('failed');
    (await called(3)).resolve('2');
    expect((await two).output.finishReason).toBe('stop');
  });

  test('by sessionId: one fails after the other was saved, which stays', async () => {
    const { agent, called } = await setUp();
    const one = call(agent, ['one'], { sessionId: 's' });
    const two = call(agent, ['two'], { sessionId: 's' });
    (await called(2)).resolve('1');
    const { output: won } = await one;
    (await called(3)).resolve(Promise.reject(new Error('no')) as never);
    expect((await two).output).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
    expect((await agent.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(won.snapshotId);
    const three = call(agent, ['three'], { sessionId: 's' });
    (await called(4)).resolve('3');
    const { snapshotId } = (await three).output;
    expect((await agent.getSnapshot(snapshotId!))?.parentId).toBe(won.snapshotId);
  });

  test('by sessionId: a turn between two turns of another call rejects the later one, nothing is lost', async () => {
    const { agent, called } = await setUp();
    const both = call(agent, ['one', 'two'], { sessionId: 's' });
    (await called(2)).resolve('1');
    const gate = await called(3);
    const between = call(agent, ['between'], { sessionId: 's' });
    (await called(4)).resolve('b');
    const { output: won } = await between;
    gate.resolve('2');
    expect((await both).output).toMatchObject({
      finishReason: 'failed',
      error: { status: 'ABORTED' },
      message: model('2'),
    });
    expect((await agent.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(won.snapshotId);
  });

  test('by sessionId, two first turns: one session, one root', async () => {
    const { agent, called } = await setUp();
    const calls = [1, 2].map(() => call(agent, ['hi'], { sessionId: 'new' }));
    (await called(2)).resolve('a');
    (await called(3)).resolve('b');
    const reasons = (await Promise.all(calls)).map(({ output }) => output.finishReason);
    expect(new Set(reasons)).toEqual(new Set(['failed', 'stop']));
  });

  test('by sessionId while one runs in the background: refused at once, the model is not called', async () => {
    const { agent, called, scripted } = await setUp();
    const { output } = await call(agent, [{ message: user('one'), detach: true }], { sessionId: 's' });
    const refused = (await call(agent, ['two'], { sessionId: 's' })).output;
    expect(refused).toMatchObject({ finishReason: 'failed', error: { status: 'ABORTED' } });
    expect(refused.error?.message).toContain(output.snapshotId);
    await called(2);
    expect(scripted.requests).toHaveLength(2);
  });

  test('by snapshotId: the session branches', async () => {
    const { agent, called, root } = await setUp();
    const calls = ['one', 'two'].map((text) => call(agent, [text], { snapshotId: root }));
    (await called(2)).resolve('1');
    (await called(3)).resolve('2');
    for (const { output } of await Promise.all(calls)) {
      expect(await agent.getSnapshot(output.snapshotId!)).toMatchObject({ status: 'completed', parentId: root });
    }
  });

  test("by snapshotId with onConflict: 'reject': only the leaf can be continued", async () => {
    const { agent, called, root } = await setUp('reject');
    const one = call(agent, ['one'], { snapshotId: root });
    (await called(2)).resolve('1');
    expect((await one).output.finishReason).toBe('stop');
    const two = call(agent, ['two'], { snapshotId: root });
    (await called(3)).resolve('2');
    expect((await two).output.error?.status).toBe('ABORTED');
  });

  test("with onConflict: 'branch' also by sessionId", async () => {
    const { agent, called } = await setUp('branch');
    const calls = ['one', 'two'].map((text) => call(agent, [text], { sessionId: 's' }));
    (await called(2)).resolve('1');
    (await called(3)).resolve('2');
    expect((await Promise.all(calls)).map(({ output }) => output.finishReason)).toEqual(['stop', 'stop']);
  });

  test("with onConflict: 'queue' each waits for the one before, also for one in the background", async () => {
    const { agent, called, gates } = await setUp('queue');
    const one = call(agent, [{ message: user('one'), detach: true }], { sessionId: 's' });
    const two = call(agent, ['two'], { sessionId: 's' });
    const three = call(agent, ['three'], { sessionId: 's' });
    await one;
    (await called(2)).resolve('1');
    (await called(3)).resolve('2');
    await two;
    expect(gates).toHaveLength(3);
    (await called(4)).resolve('3');
    const snapshot = await agent.getSnapshot((await three).output.snapshotId!);
    expect(snapshot?.state?.messages).toHaveLength(8);
  });

  test("with onConflict: 'queue' a turn that is aborted while it waits never runs", async () => {
    const { agent, called, scripted } = await setUp('queue');
    const one = call(agent, ['one'], { sessionId: 's' });
    await called(2);
    const caller = new AbortController();
    const two = call(agent, ['two'], { sessionId: 's' }, { abortSignal: caller.signal });
    caller.abort();
    expect((await two).output.finishReason).toBe('aborted');
    (await called(2)).resolve('1');
    await one;
    const three = call(agent, ['three'], { sessionId: 's' });
    (await called(3)).resolve('3');
    await three;
    expect(scripted.requests).toHaveLength(3);
  });
});

test("with onConflict: 'queue' a tool that talks to its own session is refused, and blocks nothing", async () => {
  const ai = genkitOfGenkit({});
  const model = scriptedModel(ai, {
    replies: [[{ toolRequest: { name: 'note', ref: '1', input: {} } }]],
    otherwise: 'ok',
  });
  const answers: unknown[] = [];
  const ended = deferred();
  let later: Promise<string> | undefined;
  const note = ai.defineTool({ name: 'note', description: '.', inputSchema: z.object({}) }, async () => {
    for (const sessionId of ['s', 'other']) {
      const turn = agent.chat({ sessionId }).send('noted');
      answers.push(await turn.then(({ text }) => text).catch(({ status }: { status: string }) => status));
    }
    later = ended.promise.then(async () => (await agent.chat({ sessionId: 's' }).send('later')).text);
  });
  const store = new InMemorySessionStore();
  const agent: Agent = defineAgent(ai, { name: 'a', model: model.name, store, tools: [note], onConflict: 'queue' });
  expect((await agent.chat({ sessionId: 's' }).send('go')).text).toBe('ok');
  expect(answers).toEqual(['FAILED_PRECONDITION', 'ok']);
  expect((await agent.chat({ sessionId: 's' }).send('next')).text).toBe('ok');
  ended.resolve();
  expect(await later).toBe('ok');
});

test("with onConflict: 'queue' a tool that asks an agent which talks to the tool's session is refused, and blocks nothing", async () => {
  const ai = genkitOfGenkit({});
  const asks = [{ toolRequest: { name: 'ask', ref: '1', input: {} } }];
  const first = scriptedModel(ai, { name: 'first', replies: [asks], otherwise: 'ok' });
  const second = scriptedModel(ai, {
    name: 'second',
    replies: [[{ toolRequest: { name: 'answer', ref: '1', input: {} } }]],
    otherwise: 'answered',
  });
  const answers: unknown[] = [];
  const input = { description: '.', inputSchema: z.object({}) };
  const ask = ai.defineTool({ name: 'ask', ...input }, async () => {
    answers.push((await b.chat({ sessionId: 's' }).send('please')).text);
  });
  const answer = ai.defineTool({ name: 'answer', ...input }, async () => {
    for (const sessionId of ['s', 'other']) {
      const turn = a.chat({ sessionId }).send('back');
      answers.push(await turn.then(({ text }) => text).catch(({ status }: { status: string }) => status));
    }
  });
  const options = { onConflict: 'queue' } as const;
  const a: Agent = defineAgent(ai, {
    name: 'a',
    model: first.name,
    store: new InMemorySessionStore(),
    tools: [ask],
    ...options,
  });
  const b: Agent = defineAgent(ai, {
    name: 'b',
    model: second.name,
    store: new InMemorySessionStore(),
    tools: [answer],
    ...options,
  });
  expect((await a.chat({ sessionId: 's' }).send('go')).text).toBe('ok');
  expect(answers).toEqual(['FAILED_PRECONDITION', 'ok', 'answered']);
  expect((await a.chat({ sessionId: 's' }).send('next')).text).toBe('ok');
});
