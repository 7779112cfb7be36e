import { GenkitError, type GenerateRequest } from 'genkit';
import { genkit, type MessageData, type Part, type SessionStore } from 'genkit/beta';
import {
  AgentInitError,
  defineAgent,
  defineCustomAgent,
  handOverRuns,
  InMemorySessionStore,
  type Agent,
  type AgentInput,
} from 'genkitx-agents';
import { describe, expect, test, vi } from 'vitest';
import { scale } from '../../support/scale.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, deferred, kinds, model, recordingStore, user } from '../support/helpers.ts';
import { faultTest, type MakeGenkit } from '../support/runtimes.ts';
import { CHANGING_STORE_KINDS } from '../support/stores.ts';
import { collect } from '../../support/collect.ts';

/** A prompt agent whose model waits until the test answers each call. */
async function setUp(store: SessionStore, options: { background?: object } = {}) {
  const ai = genkit({});
  const calls: { answer: (text: string) => void; fail: (error: Error) => void; signal: AbortSignal }[] = [];
  const scripted = scriptedModel(ai, {
    otherwise: ({ abortSignal, sendChunk }) =>
      new Promise((resolve, reject) => {
        sendChunk({ content: [{ text: 'thin' }] });
        sendChunk({ content: [{ text: 'king' }] });
        calls.push({ answer: resolve, fail: reject, signal: abortSignal });
      }),
  });
  const agent = defineAgent(ai, { name: 'worker', model: scripted.name, store, ...options });
  const called = (n: number) => vi.waitUntil(() => calls[n - 1]);
  return { ai, agent, scripted, calls, called };
}

async function settled(agent: Agent, snapshotId: string | undefined) {
  await vi.waitUntil(async () => (await agent.getSnapshot(snapshotId!))?.status !== 'pending', { interval: 2 });
  return (await agent.getSnapshot(snapshotId!))!;
}

const later = (text: string): AgentInput => ({ message: user(text), detach: true });

/** From the snapshot to the root. */
async function lineage(agent: Agent, snapshotId: string): Promise<string[]> {
  const ids: string[] = [];
  for (let id: string | undefined = snapshotId; id !== undefined;) {
    if (ids.includes(id)) throw new Error(`${id} is its own ancestor`);
    ids.push(id);
    id = (await agent.getSnapshot(id))?.parentId;
  }
  return ids;
}

describe.each(CHANGING_STORE_KINDS)('detach: while the turn is being saved on $name', ({ make }) => {
  /** Saves wait until the test releases them, one by one. */
  async function setUpDoor() {
    const inner = await make();
    const waiting: (() => void)[] = [];
    const store: SessionStore = {
      getSnapshot: (lookup) => inner.getSnapshot(lookup),
      saveSnapshot: async (snapshotId, mutator, options) => {
        await new Promise<void>((resolve) => void waiting.push(resolve));
        return inner.saveSnapshot(snapshotId, mutator, options);
      },
    };
    const ai = genkit({});
    const { name } = scriptedModel(ai, { otherwise: 'reply' });
    const agent = defineAgent(ai, { name: 'worker', model: name, store });
    const arrived = (count: number) => vi.waitUntil(() => waiting.length >= count, { interval: 1 });
    const letAllIn = async (isOver: () => boolean) => {
      await vi.waitUntil(() => (waiting.splice(0).forEach((enter) => enter()), isOver()), { interval: 1 });
    };
    return { agent, inner, waiting, arrived, letAllIn };
  }

  test.each([0, 1])('the turn is not lost, with %d more waiting', async (more) => {
    const { agent, inner, arrived, letAllIn } = await setUpDoor();
    const stream = agent.streamBidi({ sessionId: 'job' });
    stream.send({ message: user('one') });
    await arrived(1);
    for (let i = 0; i < more; i++) stream.send({ message: user('two') });
    stream.send({ detach: true });
    stream.close();
    // The detach arrives while the save waits.
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    let isOver = false;
    const output = stream.output.finally(() => (isOver = true));
    await letAllIn(() => isOver);
    const { snapshotId, finishReason } = await output;
    expect(finishReason).toBe('detached');
    let isSettled = false;
    const end = settled(agent, snapshotId).finally(() => (isSettled = true));
    await letAllIn(() => isSettled);
    const expected = [user('one'), model('reply'), ...(more > 0 ? [user('two'), model('reply')] : [])];
    expect(await end).toMatchObject({ status: 'completed', state: { messages: expected } });
    expect((await inner.getSnapshot({ sessionId: 'job' }))?.snapshotId).toBe(snapshotId);
    expect(await lineage(agent, snapshotId!)).toHaveLength(1 + more);
  });

  test('a detach at any moment around the reply loses no turn', async () => {
    const lost: string[] = [];
    for (let moment = 0; moment < 60; moment += scale(5, 1)) {
      const store = await make();
      const ai = genkit({});
      const begun = deferred();
      ai.defineModel({ name: 'brief', apiVersion: 'v2' }, async () => {
        begun.resolve();
        return { message: { role: 'model', content: [{ text: 'reply' }] }, finishReason: 'stop' };
      });
      const agent = defineAgent(ai, { name: 'worker', model: 'brief', store });
      const stream = agent.streamBidi({ sessionId: 'job' });
      stream.send({ message: user('one') });
      await begun.promise;
      for (let tick = 0; tick < moment; tick++) await Promise.resolve();
      stream.send({ message: user('two'), detach: true });
      stream.close();
      const { snapshotId, error } = await stream.output;
      const { status, state } = snapshotId === undefined ? {} : await settled(agent, snapshotId);
      if (status !== 'completed' || state?.messages?.length !== 4) {
        lost.push(`${moment} microtasks: ${status}, ${error?.message}`);
      }
    }
    expect(lost).toEqual([]);
  });

  test('a turn that ends at any moment around the detach is not lost', async () => {
    const lost: string[] = [];
    for (let moment = 0; moment < 60; moment += scale(5, 1)) {
      const inner = await make();
      const store: SessionStore = {
        getSnapshot: (lookup) => inner.getSnapshot(lookup),
        saveSnapshot: async (snapshotId, mutator, options) => {
          for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
          return inner.saveSnapshot(snapshotId, mutator, options);
        },
      };
      const end = deferred();
      const begun = deferred();
      const agent = defineCustomAgent(genkit({}), { name: 'worker', store }, async (sess) => {
        await sess.run(async () => {
          begun.resolve();
          await end.promise;
          sess.addMessages([model('reply')]);
        });
        return {};
      });
      const stream = agent.streamBidi({});
      stream.send({ message: user('one') });
      await begun.promise;
      stream.send({ detach: true });
      stream.close();
      for (let tick = 0; tick < moment; tick++) await Promise.resolve();
      end.resolve();
      const { snapshotId } = await stream.output;
      const { status, state } = await settled(agent, snapshotId);
      if (status !== 'completed' || state?.messages?.length !== 2) lost.push(`${moment} microtasks: ${status}`);
    }
    expect(lost).toEqual([]);
  });

  test('a turn that ends while it is being stored as pending is not lost, whichever write is first', async () => {
    const { agent, waiting, arrived, letAllIn } = await setUpDoor();
    const stream = agent.streamBidi({ sessionId: 'job' });
    stream.send({ message: user('one') });
    stream.send({ detach: true });
    stream.close();
    await arrived(1);
    // The second save is released first.
    await new Promise((resolve) => setImmediate(resolve));
    waiting.reverse();
    let isOver = false;
    const output = stream.output.finally(() => (isOver = true));
    await letAllIn(() => isOver);
    let isSettled = false;
    const end = settled(agent, (await output).snapshotId).finally(() => (isSettled = true));
    await letAllIn(() => isSettled);
    expect(await end).toMatchObject({ status: 'completed', state: { messages: [user('one'), model('reply')] } });
  });
});

test('detach: when watching fails, the waiting turns end and the session continues', async () => {
  const inner = new InMemorySessionStore();
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: (snapshotId, mutator, options) => inner.saveSnapshot(snapshotId, mutator, options),
    onSnapshotStateChange: () => {
      throw new Error('too many watchers');
    },
  };
  const ai = genkit({});
  const { name } = scriptedModel(ai, { otherwise: 'reply' });
  const agent = defineAgent(ai, { name: 'worker', model: name, store });
  const { output } = await call(agent, ['one', 'two', later('three')], { sessionId: 'job' });
  expect(output).toMatchObject({ finishReason: 'failed', error: { message: 'too many watchers' } });
  await vi.waitUntil(
    async () => (await inner.listSnapshots({ sessionId: 'job' })).items.every(({ status }) => status !== 'pending'),
    { interval: 2 },
  );
  expect((await call(agent, ['four'], { sessionId: 'job' })).output.finishReason).toBe('stop');
});

describe.each(CHANGING_STORE_KINDS)('detach: on $name', ({ make }) => {
  test('complete: the caller has a pending snapshot with the prompt at once, and the session continues from the result', async () => {
    const { agent, called } = await setUp(await make());
    const { output, chunks } = await call(agent, [later('one')], { sessionId: 'job' });
    expect(output).toMatchObject({ finishReason: 'detached', sessionId: 'job' });
    expect(chunks).toEqual([]);
    expect(await agent.getSnapshot(output.snapshotId!)).toMatchObject({
      status: 'pending',
      heartbeatAt: expect.any(String) as string,
      state: { messages: [user('one')] },
    });
    (await called(1)).answer('done');
    const snapshot = await settled(agent, output.snapshotId);
    expect(snapshot).toMatchObject({
      status: 'completed',
      finishReason: 'stop',
      state: { messages: [user('one'), model('done')] },
    });
    const next = call(agent, ['two'], { sessionId: 'job' });
    (await called(2)).answer('more');
    const after = (await next).output;
    expect(await lineage(agent, after.snapshotId!)).toEqual([after.snapshotId, output.snapshotId]);
  });

  test('complete: nothing is streamed, and its changes are saved', async () => {
    const agent = defineCustomAgent<{ step: number }>(
      genkit({}),
      { name: 'worker', store: await make() },
      async (sess, { sendChunk }) => {
        await sess.run(async () => {
          sess.updateCustom(() => ({ step: 1 }));
          sess.addArtifacts([{ name: 'plan', parts: [{ text: 'go' }] }]);
          sendChunk({ modelChunk: { content: [{ text: 'a' }] } });
        });
        return {};
      },
    );
    const { output, chunks } = await call(agent, [later('one')]);
    const { status, state } = await settled(agent, output.snapshotId);
    expect(status).toBe('completed');
    expect(state).toMatchObject({ custom: { step: 1 }, artifacts: [{ name: 'plan' }] });
    expect(chunks).toEqual([]);
  });

  test('fail: the snapshot says so, and the session continues from the turn before', async () => {
    const { agent, called } = await setUp(await make());
    const first = call(agent, ['one'], { sessionId: 'job' });
    (await called(1)).answer('1');
    const before = (await first).output.snapshotId;
    const { output } = await call(agent, [later('two')], { sessionId: 'job' });
    (await called(2)).fail(new Error('overloaded'));
    expect(await settled(agent, output.snapshotId)).toMatchObject({
      status: 'failed',
      finishReason: 'failed',
      error: { message: 'overloaded' },
      parentId: before,
      state: { messages: [user('one'), model('1'), user('two'), { role: 'model', metadata: { partial: true } }] },
    });
    const next = call(agent, ['three'], { sessionId: 'job' });
    (await called(3)).answer('3');
    expect(await lineage(agent, (await next).output.snapshotId!)).toEqual([(await next).output.snapshotId, before]);
  });

  test('abort: the model call is stopped, the prompt and the reply so far are kept, and the run can be run again', async () => {
    const { agent, called } = await setUp(await make());
    const { output } = await call(agent, [later('one')], { sessionId: 'job' });
    const { signal } = await called(1);
    expect(await agent.abort(output.snapshotId!)).toBe('pending');
    await vi.waitUntil(() => signal.aborted, { interval: 1 });
    const partial = { role: 'model', content: [{ text: 'thinking' }], metadata: { partial: true } };
    await vi.waitUntil(async () => (await agent.getSnapshot(output.snapshotId!))?.state?.messages?.length === 2, {
      interval: 2,
    });
    expect(await agent.getSnapshot(output.snapshotId!)).toMatchObject({
      status: 'aborted',
      finishReason: 'aborted',
      state: { messages: [user('one'), partial] },
    });
    const again = call(agent, [{}], { snapshotId: output.snapshotId });
    (await called(2)).answer('done');
    const snapshot = await agent.getSnapshot((await again).output.snapshotId!);
    expect(snapshot).toMatchObject({ parentId: output.snapshotId, state: { messages: [user('one'), model('done')] } });
    expect((await agent.getSnapshot({ sessionId: 'job' }))?.snapshotId).toBe(snapshot?.snapshotId);
  });

  test('mid-turn: the running turn becomes the pending snapshot under its reserved id, with the progress made', async () => {
    const store = await make();
    const ai = genkit({});
    const started = deferred();
    const mayEnd = deferred();
    const reserved: string[] = [];
    const agent = defineCustomAgent(ai, { name: 'worker', store }, async (sess, { sendChunk }) => {
      await sess.run(async (_input, { snapshotId }) => {
        reserved.push(snapshotId);
        sess.updateCustom(() => ({ step: 1 }));
        sendChunk({ modelChunk: { content: [{ text: 'a' }] } });
        started.resolve();
        await mayEnd.promise;
        sendChunk({ modelChunk: { content: [{ text: 'b' }] } });
        sess.updateCustom(() => ({ step: 2 }));
        sess.addMessages([model('done')]);
      });
      return {};
    });
    const stream = agent.streamBidi({});
    stream.send({ message: user('go') });
    await started.promise;
    stream.send({ detach: true });
    const output = await stream.output;
    expect(output).toMatchObject({ finishReason: 'detached', snapshotId: reserved[0] });
    expect(await agent.getSnapshot(reserved[0]!)).toMatchObject({
      status: 'pending',
      state: { messages: [user('go')], custom: { step: 1 } },
    });
    mayEnd.resolve();
    expect(await settled(agent, output.snapshotId)).toMatchObject({
      status: 'completed',
      state: { messages: [user('go'), model('done')], custom: { step: 2 } },
    });
    expect(kinds(await collect(stream.stream))).toEqual(['customPatch', 'modelChunk']);
    expect(await lineage(agent, reserved[0]!)).toEqual(reserved);
  });

  test('3 queued: each is saved as a child of the one before, and the output names the last', async () => {
    const { agent, called } = await setUp(await make());
    const { output } = await call(agent, ['one', 'two', 'three', { detach: true }], { sessionId: 'job' });
    expect((await agent.getSnapshot(output.snapshotId!))?.state?.messages).toEqual(
      expect.arrayContaining([user('three')]),
    );
    for (const n of [1, 2, 3]) (await called(n)).answer(`${n}`);
    const last = await settled(agent, output.snapshotId);
    expect(last.state?.messages).toEqual([user('one'), model('1'), user('two'), model('2'), user('three'), model('3')]);
    const ids = await lineage(agent, output.snapshotId!);
    expect(ids).toHaveLength(3);
    for (const id of ids) expect((await agent.getSnapshot(id))?.status).toBe('completed');
    expect((await agent.getSnapshot({ sessionId: 'job' }))?.snapshotId).toBe(output.snapshotId);
  });

  test('3 queued, aborted by the last: the running one stops, and each keeps its prompt', async () => {
    const { agent, called, scripted } = await setUp(await make());
    const { output } = await call(agent, [later('one'), 'two', 'three']);
    const { signal } = await called(1);
    await agent.abort(output.snapshotId!);
    await vi.waitUntil(() => signal.aborted, { interval: 1 });
    const ids = await lineage(agent, output.snapshotId!);
    for (const id of ids) expect((await settled(agent, id)).status).toBe('aborted');
    // The last state is written after the abort, with the running turn's reply so far.
    await vi.waitUntil(async () => (await agent.getSnapshot(ids[0]!))?.state?.messages?.length === 4, { interval: 2 });
    expect((await agent.getSnapshot(ids[1]!))?.state?.messages?.at(-1)).toEqual(user('two'));
    expect((await agent.getSnapshot(ids[0]!))?.state?.messages?.at(-1)).toEqual(user('three'));
    expect(scripted.requests).toHaveLength(1);
  });

  test('3 queued, the first fails: the others fail as not run', async () => {
    const { agent, called } = await setUp(await make());
    const { output } = await call(agent, ['one', 'two', later('three')]);
    (await called(1)).fail(new Error('no'));
    expect(await settled(agent, output.snapshotId)).toMatchObject({
      status: 'failed',
      error: { status: 'ABORTED', message: 'This turn was not run because the previous turn failed.' },
    });
    expect(await lineage(agent, output.snapshotId!)).toHaveLength(3);
  });

  test('a detach without a message is a snapshot too', async () => {
    const { agent } = await setUp(await make());
    const { output } = await call(agent, [{ detach: true }]);
    expect(output).toMatchObject({ finishReason: 'detached', snapshotId: expect.any(String) as string });
    expect((await settled(agent, output.snapshotId)).status).toBe('completed');
  });

  test('a function that throws outside of its turns makes the snapshot failed', async () => {
    const agent = defineCustomAgent(genkit({}), { name: 'worker', store: await make() }, async (sess) => {
      for await (const _input of sess.inputCh) throw new Error('no turns here');
      return {};
    });
    const { output } = await call(agent, [later('one')]);
    expect(await settled(agent, output.snapshotId)).toMatchObject({
      status: 'failed',
      error: { message: 'no turns here' },
    });
  });

  test('the chat continues after a background turn, whether it completed or failed', async () => {
    const { agent, called } = await setUp(await make());
    const chat = agent.chat();
    const task = await chat.detach('one');
    await expect(chat.send('too early')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    (await called(1)).answer('1');
    expect((await task.wait({ intervalMs: 2 })).status).toBe('completed');
    const second = chat.send('two');
    (await called(2)).answer('2');
    await second;
    expect(chat.messages).toMatchObject([user('one'), model('1'), user('two'), model('2')]);
    const failing = await chat.detach('three');
    (await called(3)).fail(new Error('no'));
    expect((await failing.wait({ intervalMs: 2 })).status).toBe('failed');
    const fourth = chat.send('four');
    (await called(4)).answer('4');
    expect((await agent.getSnapshot((await fourth).snapshotId!))?.state?.messages).toMatchObject([
      user('one'),
      model('1'),
      user('two'),
      model('2'),
      user('four'),
      model('4'),
    ]);
  });

  test('the chat continues after a first turn that failed in the background', async () => {
    const { agent, called } = await setUp(await make());
    const chat = agent.chat();
    const task = await chat.detach('one');
    (await called(1)).fail(new Error('no'));
    expect((await task.wait({ intervalMs: 2 })).status).toBe('failed');
    const second = chat.send('two');
    (await called(2)).answer('2');
    expect((await second).text).toBe('2');
    expect(chat.messages).toMatchObject([user('two'), model('2')]);
  });
});

describe('a run in the background', () => {
  test('ignores the caller’s signal', async () => {
    const { agent, called } = await setUp(new InMemorySessionStore());
    const caller = new AbortController();
    const { output } = await call(agent, [later('one')], {}, { abortSignal: caller.signal });
    caller.abort();
    const { answer, signal } = await called(1);
    expect(signal.aborted).toBe(false);
    answer('done');
    expect((await settled(agent, output.snapshotId)).status).toBe('completed');
  });

  test('writes heartbeats, and reads as expired when they stop for longer than its lease', async () => {
    const { agent, called } = await setUp(new InMemorySessionStore(), {
      background: { heartbeatIntervalMs: 5, leaseMs: 1000 },
    });
    const { output } = await call(agent, [later('one')]);
    const id = output.snapshotId!;
    const first = (await agent.getSnapshot(id))?.heartbeatAt;
    await vi.waitUntil(async () => (await agent.getSnapshot(id))?.heartbeatAt !== first, { interval: 2 });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 });
    expect((await agent.getSnapshot(id))?.status).toBe('expired');
    vi.useRealTimers();
    (await called(1)).answer('done');
    expect((await settled(agent, id)).status).toBe('completed');
  });

  test('of a deleted session stops with the next heartbeat and saves nothing', async () => {
    const store = new InMemorySessionStore();
    const { agent, called } = await setUp(store, { background: { heartbeatIntervalMs: 5, leaseMs: 1000 } });
    const { output } = await call(agent, [later('one')], { sessionId: 'job' });
    const { signal } = await called(1);
    await store.deleteSession({ sessionId: 'job' });
    await vi.waitUntil(() => signal.aborted, { interval: 1 });
    expect(await agent.getSnapshot(output.snapshotId!)).toBeUndefined();
    expect(await store.listSessions()).toEqual({ items: [] });
  });

  test('is aborted by the heartbeat where the store cannot be watched', async () => {
    const { store } = recordingStore(new InMemorySessionStore());
    const { agent, called } = await setUp(store, { background: { heartbeatIntervalMs: 5, leaseMs: 1000 } });
    const { output } = await call(agent, [later('one')]);
    const { signal } = await called(1);
    await agent.abort(output.snapshotId!);
    await vi.waitUntil(() => signal.aborted, { interval: 1 });
    expect((await agent.getSnapshot(output.snapshotId!))?.status).toBe('aborted');
  });

  test('that cannot be stored does not begin: the caller gets the error, and no model is called', async () => {
    const { store } = recordingStore(new InMemorySessionStore(), ({ method }) => {
      if (method === 'saveSnapshot') throw new Error('disk full');
    });
    const { agent, scripted } = await setUp(store);
    const { output } = await call(agent, [later('one')]);
    expect(output).toMatchObject({ finishReason: 'failed', error: { message: 'disk full' } });
    expect(scripted.requests).toHaveLength(0);
  });

  test('leaves no timer and no watcher', async () => {
    const inner = new InMemorySessionStore();
    let watchers = 0;
    const timers = vi.spyOn(globalThis, 'setInterval');
    const cleared = vi.spyOn(globalThis, 'clearInterval');
    const subscribe = inner.onSnapshotStateChange.bind(inner);
    inner.onSnapshotStateChange = (...args) => {
      watchers++;
      const end = subscribe(...args);
      return () => {
        watchers--;
        end();
      };
    };
    const { agent, called } = await setUp(inner);
    const { output } = await call(agent, ['one', 'two', later('three')]);
    expect(watchers).toBe(3);
    for (const n of [1, 2, 3]) (await called(n)).answer(`${n}`);
    await settled(agent, output.snapshotId);
    await vi.waitUntil(() => watchers === 0, { interval: 1 });
    expect(cleared).toHaveBeenCalledTimes(timers.mock.calls.length);
    vi.restoreAllMocks();
  });

  test('an agent without a store refuses it', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'hi' });
    const agent = defineAgent(ai, { name: 'worker', model: scripted.name });
    await expect(call(agent, [later('one')])).rejects.toMatchObject({
      name: 'AgentInitError',
      status: 'FAILED_PRECONDITION',
    });
    await expect(agent.chat().detach('one')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(scripted.requests).toHaveLength(0);
  });
});

describe('detach: beside Genkit', () => {
  /** A custom agent whose turns end when the test lets them. */
  function gated(makeGenkit: MakeGenkit) {
    const started = deferred();
    const mayEnd = deferred();
    const agent = makeGenkit().defineCustomAgent(
      { name: 'worker', store: new InMemorySessionStore() },
      async (sess, { abortSignal }) => {
        await sess.run(async () => {
          started.resolve();
          await Promise.race([
            mayEnd.promise,
            new Promise((resolve) => abortSignal?.addEventListener('abort', resolve, { once: true })),
          ]);
          sess.addMessages([model('done')]);
        });
        return {};
      },
    );
    return { agent, started, mayEnd };
  }

  faultTest('a turn that is detached in its middle is not lost', async (makeGenkit) => {
    const { agent, started, mayEnd } = gated(makeGenkit);
    const stream = agent.streamBidi({});
    stream.send({ message: user('go') });
    await started.promise;
    stream.send({ detach: true });
    stream.close();
    const { snapshotId } = await stream.output;
    mayEnd.resolve();
    await vi.waitFor(
      async () =>
        expect(await agent.getSnapshotData({ snapshotId: snapshotId! })).toMatchObject({
          status: 'completed',
          state: { messages: [user('go'), model('done')] },
        }),
      { timeout: 2000 },
    );
  });

  faultTest('queued turns are all saved', async (makeGenkit) => {
    const { agent, mayEnd } = gated(makeGenkit);
    mayEnd.resolve();
    const { output } = await call(agent, [later('one'), 'two', 'three'], { sessionId: 'job' });
    expect(output.finishReason).toBe('detached');
    await vi.waitFor(
      async () => expect((await agent.getSnapshotData({ sessionId: 'job' }))?.state?.messages).toHaveLength(6),
      { timeout: 2000 },
    );
  });

  faultTest('an aborted run keeps its prompt', async (makeGenkit) => {
    const { agent, started } = gated(makeGenkit);
    const { output } = await call(agent, [later('precious')]);
    await started.promise;
    await agent.abort(output.snapshotId!);
    expect((await agent.getSnapshotData({ snapshotId: output.snapshotId! }))?.state?.messages).toEqual([
      user('precious'),
    ]);
  });
});

/** Damages that a model, or a middleware before it, may do to its request. */
const DAMAGE: Record<string, (request: GenerateRequest) => void> = {
  'strips the content of the messages': ({ messages }) => {
    for (const message of messages) delete (message as Partial<MessageData>).content;
  },
  'makes parts of them nothing': ({ messages }) => {
    for (const { content } of messages) content.fill(null as unknown as Part);
  },
  'makes messages nothing': ({ messages }) => void messages.fill(null as unknown as MessageData),
  'puts into them what JSON cannot hold': ({ messages }) => {
    for (const { content } of messages) content.push({ custom: { size: 1n } });
  },
  'makes them throw when they are read': ({ messages }) => {
    for (const { content } of messages) {
      const get = () => {
        throw new Error('unreadable');
      };
      Object.defineProperty(content, 0, { get, configurable: true });
    }
  },
};

const ENDINGS = {
  answers: 'reply',
  fails: new Error('overloaded'),
  'is aborted': 'abort',
} as const;

describe.each(Object.entries(DAMAGE))('a run in the background whose model %s', (_, damage) => {
  test.each(Object.entries(ENDINGS))('and then %s has an end', async (_name, ending) => {
    const ai = genkit({});
    const asked = deferred();
    ai.defineModel({ name: 'rude', apiVersion: 'v2' }, async (request, { abortSignal }) => {
      damage(request);
      asked.resolve();
      if (ending === 'abort') await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve));
      if (ending instanceof Error) throw ending;
      return { message: model('reply'), finishReason: 'stop' };
    });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, { name: 'worker', model: 'rude', store });
    await store.saveSnapshot('first', () => ({
      sessionId: 'job',
      createdAt: new Date().toISOString(),
      status: 'completed',
      state: { sessionId: 'job', messages: [user('before'), model('said')] },
    }));
    const task = await agent.chat({ sessionId: 'job' }).detach('go');
    await asked.promise;
    if (ending === 'abort') await task.abort();
    const { status } = await agent.waitForSnapshot(task.snapshotId, { timeoutMs: 5000 });
    expect(['completed', 'failed', 'aborted']).toContain(status);
    if (ending !== 'reply') expect(status).toBe(ending === 'abort' ? 'aborted' : 'failed');
    expect(await handOverRuns(ai, { graceMs: 5000 })).toEqual({ handedOver: 0 });
    // The model's damage to its copy is not in the conversation.
    const { state } = (await store.getSnapshot({ snapshotId: task.snapshotId }))!;
    expect(state?.messages?.slice(0, 2)).toEqual([user('before'), model('said')]);
  });
});

test('a background turn keeps its reply if the store is down longer than a call is retried, and runs once', async () => {
  const ai = genkit({});
  const store = new InMemorySessionStore();
  let failures = 0;
  const save = store.saveSnapshot.bind(store);
  let isDown = false;
  store.saveSnapshot = async (...args) => {
    if (!isDown || failures === 7) return save(...args);
    failures++;
    throw new GenkitError({ status: 'UNAVAILABLE', message: 'down' });
  };
  const gate = deferred();
  const scripted = scriptedModel(ai, {
    replies: [
      async () => {
        await gate.promise;
        isDown = true;
        return 'report';
      },
    ],
  });
  const background = { heartbeatIntervalMs: 20, leaseMs: 60_000 };
  const agent = defineAgent(ai, { name: 'worker', model: scripted.name, store, background });
  const task = await agent.chat().detach('go');
  gate.resolve();
  await vi.waitUntil(
    async () => (await store.getSnapshot({ snapshotId: task.snapshotId }))?.status !== 'pending',
    20_000,
  );
  expect(failures).toBe(7);
  expect(scripted.requests).toHaveLength(1);
  const saved = await store.getSnapshot({ snapshotId: task.snapshotId });
  expect(saved?.state?.messages?.at(-1)).toEqual(model('report'));
});

test('a background turn whose end can’t be saved does not delay the end of its process', async () => {
  const ai = genkit({});
  const store = new InMemorySessionStore();
  const save = store.saveSnapshot.bind(store);
  let isDown = false;
  const failed = deferred();
  store.saveSnapshot = async (...args) => {
    if (!isDown) return save(...args);
    failed.resolve();
    throw new GenkitError({ status: 'UNAVAILABLE', message: 'down' });
  };
  const gate = deferred();
  const reply = async () => {
    await gate.promise;
    isDown = true;
    return 'report';
  };
  const scripted = scriptedModel(ai, { replies: [reply] });
  // Without the hand-over the save is tried again for two hours.
  const background = { heartbeatIntervalMs: 3_600_000, leaseMs: 7_200_000 };
  const agent = defineAgent(ai, { name: 'worker', model: scripted.name, store, background });
  await agent.chat().detach('go');
  gate.resolve();
  await failed.promise;
  await handOverRuns(ai, { graceMs: 1 });
});

test('a background run whose function throws an AgentInitError ends as failed', async () => {
  const ai = genkit({});
  const mayEnd = deferred();
  const store = new InMemorySessionStore();
  const agent = defineCustomAgent(ai, { name: 'caller', store }, async (sess) => {
    await sess.run(async () => {});
    await mayEnd.promise;
    throw new AgentInitError({ status: 'FAILED_PRECONDITION', message: 'Another agent has no store.' });
  });
  const task = await agent.chat().detach('go');
  mayEnd.resolve();
  expect(await handOverRuns(ai, { graceMs: 5000 })).toEqual({ handedOver: 0 });
  expect((await agent.getSnapshot(task.snapshotId))?.status).not.toBe('pending');
});

test('a background run whose state the store refuses ends as failed', async () => {
  const ai = genkit({});
  const { name } = scriptedModel(ai, { replies: ['unspeakable'] });
  const inner = new InMemorySessionStore();
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: (snapshotId, mutator, options) =>
      inner.saveSnapshot(
        snapshotId,
        (current) => {
          const next = mutator(current);
          if (JSON.stringify(next).includes('unspeakable')) {
            throw new GenkitError({ status: 'INVALID_ARGUMENT', message: 'No such words.' });
          }
          return next;
        },
        options,
      ),
  };
  const agent = defineAgent(ai, { name: 'worker', model: name, store });
  const task = await agent.chat().detach('go');
  const { status, state } = await agent.waitForSnapshot(task.snapshotId, { timeoutMs: 5000 });
  expect(status).toBe('failed');
  expect(state?.messages).toEqual([user('go')]);
});
