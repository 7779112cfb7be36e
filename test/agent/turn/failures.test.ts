import { getEventListeners } from 'node:events';
import { genkit, GenkitError } from 'genkit';
import { genkit as betaGenkit, InMemorySessionStore as GenkitStore, type SessionStore } from 'genkit/beta';
import { AgentError, defineAgent, defineCustomAgent } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, deferred, kinds, model, recordingStore, user } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

describe.each(STORE_KINDS)('a turn that fails on $name', ({ make }) => {
  test('is saved for inspection, ends the call, and the session continues from the last good turn', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, {
      replies: [
        'one',
        () => {
          throw new GenkitError({ status: 'RESOURCE_EXHAUSTED', message: 'too many requests' });
        },
        'three',
      ],
    });
    const store = await make();
    const agent = defineAgent(ai, { name: 'unlucky', model: scripted.name, store });
    const { output, chunks } = await call(agent, ['a', 'b', 'c'], { sessionId: 's' });
    const [good, bad] = chunks.map(({ turnEnd }) => turnEnd);
    expect(chunks).toHaveLength(2);
    expect(bad?.finishReason).toBe('failed');
    expect(output).toEqual({
      sessionId: 's',
      snapshotId: good?.snapshotId,
      finishReason: 'failed',
      error: {
        status: 'RESOURCE_EXHAUSTED',
        message: 'too many requests',
        details: { errorId: expect.any(String) as string },
      },
    });
    expect(await store.getSnapshot({ sessionId: 's' })).toMatchObject({
      snapshotId: bad?.snapshotId,
      parentId: good?.snapshotId,
      state: { messages: [user('a'), model('one'), user('b')] },
    });
    const next = await call(agent, ['c'], { sessionId: 's' });
    expect(next.output.message).toEqual(model('three'));
    expect(scripted.requests.at(-1)?.messages).toEqual([user('a'), model('one'), user('c')]);
  });
});

describe('store failure:', () => {
  function setUp(
    failures: number,
    error: unknown = new GenkitError({ status: 'UNAVAILABLE', message: 'store is away' }),
  ) {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'the reply' });
    let left = failures;
    const { store, calls } = recordingStore(new GenkitStore(), ({ method }) => {
      if (method === 'saveSnapshot' && left-- > 0) throw error;
    });
    return { agent: defineAgent(ai, { name: 'stored', model: scripted.name, store }), scripted, calls, store };
  }

  test('a save that fails once is repeated, and the model is called once', async () => {
    const { agent, scripted, calls } = setUp(1);
    const { output } = await call(agent, ['hi']);
    expect(output).toMatchObject({ finishReason: 'stop', message: model('the reply') });
    expect(calls.map(({ method }) => method)).toEqual(['saveSnapshot', 'saveSnapshot']);
    expect(scripted.requests).toHaveLength(1);
  });

  test('a save that keeps failing returns the reply together with the error', async () => {
    const { agent, scripted, calls } = setUp(Infinity);
    const { output, chunks } = await call(agent, ['hi', 'never'], { sessionId: 's' });
    expect(output).toEqual({
      sessionId: 's',
      message: model('the reply'),
      finishReason: 'failed',
      error: { status: 'UNAVAILABLE', message: 'store is away', details: { errorId: expect.any(String) as string } },
    });
    expect(chunks).toEqual([{ turnEnd: { finishReason: 'failed' } }]);
    expect(calls).toHaveLength(4);
    expect(scripted.requests).toHaveLength(1);
  });

  test('the chat gets the reply with the error, and its next turn continues from the last good snapshot', async () => {
    const { agent } = setUp(3);
    const chat = agent.chat();
    const error = (await chat.send('lost').catch((thrown: unknown) => thrown)) as AgentError;
    expect(error.status).toBe('UNAVAILABLE');
    expect(error.response.text).toBe('the reply');
    expect((await chat.send('again')).finishReason).toBe('stop');
  });

  test('a save that is refused is not repeated', async () => {
    const { agent, calls } = setUp(Infinity, new GenkitError({ status: 'PERMISSION_DENIED', message: 'no' }));
    expect((await call(agent, ['hi'])).output).toMatchObject({
      message: model('the reply'),
      error: { status: 'PERMISSION_DENIED' },
    });
    expect(calls).toHaveLength(1);
  });

  test('a save whose response was lost counts as done', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const inner = new GenkitStore();
    let saves = 0;
    const store: SessionStore = {
      getSnapshot: (lookup) => inner.getSnapshot(lookup),
      saveSnapshot: async (id, mutator, options) => {
        const saved = await inner.saveSnapshot(id, mutator, options);
        if (++saves === 1) throw new Error('connection reset');
        return saved;
      },
    };
    const agent = defineAgent(ai, { name: 'lossy', model: scripted.name, store });
    const { output } = await call(agent, ['hi']);
    expect(output.finishReason).toBe('stop');
    expect(saves).toBe(2);
    expect((await inner.getSnapshot({ snapshotId: output.snapshotId }))?.status).toBe('completed');
  });

  test('a store that cannot read ends the call as failed before any turn', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai);
    const { store } = recordingStore(new GenkitStore(), ({ method }) => {
      if (method === 'getSnapshot') throw new GenkitError({ status: 'DATA_LOSS', message: 'snapshot is broken' });
    });
    const agent = defineAgent(ai, { name: 'blind', model: scripted.name, store });
    const { output } = await call(agent, ['hi'], { sessionId: 's' });
    expect(output).toEqual({
      sessionId: 's',
      finishReason: 'failed',
      error: { status: 'DATA_LOSS', message: 'snapshot is broken' },
    });
    expect(scripted.requests).toHaveLength(0);
  });
});

describe.each(STORE_KINDS)("abort: the caller's signal on $name", ({ make }) => {
  test('reaches the model, ends the turn as aborted, and nothing is saved', async () => {
    const ai = genkit({});
    const started = deferred();
    const stopped = deferred();
    const scripted = scriptedModel(ai, {
      replies: [
        'one',
        async ({ abortSignal }) => {
          abortSignal.addEventListener('abort', () => stopped.resolve());
          started.resolve();
          await stopped.promise;
          throw new Error('stopped');
        },
      ],
    });
    const { store, calls } = recordingStore(await make());
    const agent = defineAgent(ai, { name: 'patient', model: scripted.name, store });
    const first = await call(agent, ['a'], { sessionId: 's' });
    calls.length = 0;
    const controller = new AbortController();
    const running = call(agent, ['b', 'never'], { sessionId: 's' }, { abortSignal: controller.signal });
    await started.promise;
    controller.abort();
    await stopped.promise;
    const { output, chunks } = await running;
    const { snapshotId } = first.output;
    expect(output).toEqual({ sessionId: 's', snapshotId, finishReason: 'aborted' });
    expect(chunks).toEqual([{ turnEnd: { snapshotId, finishReason: 'aborted' } }]);
    expect(calls.map(({ method }) => method)).toEqual(['getSnapshot']);
    expect((await store.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(snapshotId);
  });

  test('ends a turn that ignores it, and later changes of that turn have no effect', async () => {
    const ai = genkit({});
    const started = deferred();
    const release = deferred();
    const finished = deferred();
    const store = await make();
    const agent = defineCustomAgent<{ late: boolean }>(ai, { name: 'deaf', store }, async (sess, { sendChunk }) => {
      await sess.run(async () => {
        started.resolve();
        await release.promise;
        sess.updateCustom(() => ({ late: true }));
        sendChunk({ artifact: { parts: [] } });
        finished.resolve();
      });
      return { message: model('late') };
    });
    const controller = new AbortController();
    const running = call(agent, ['go'], { sessionId: 's' }, { abortSignal: controller.signal });
    await started.promise;
    controller.abort();
    const { output, chunks } = await running;
    release.resolve();
    await finished.promise;
    expect(output).toEqual({ sessionId: 's', finishReason: 'aborted' });
    expect(kinds(chunks)).toEqual(['turnEnd']);
    expect(await store.getSnapshot({ sessionId: 's' })).toBeUndefined();
  });

  test.each(['inside a turn', 'without a turn'])('ends an agent that returns normally %s', async (place) => {
    const started = deferred();
    const { store, calls } = recordingStore(await make());
    const agent = defineCustomAgent<{ stopped: boolean }>(
      genkit({}),
      { name: 'obedient', store },
      async (sess, { abortSignal }) => {
        const work = () =>
          new Promise<void>((resolve) => {
            abortSignal.addEventListener('abort', () => {
              sess.updateCustom(() => ({ stopped: true }));
              resolve();
            });
            started.resolve();
          });
        await (place === 'inside a turn' ? sess.run(work) : work());
        return { message: model('stopped') };
      },
    );
    const controller = new AbortController();
    const running = call(agent, ['go'], {}, { abortSignal: controller.signal });
    await started.promise;
    controller.abort();
    expect((await running).output).toEqual({ sessionId: expect.any(String) as string, finishReason: 'aborted' });
    expect(calls).toEqual([]);
  });

  test('before the call reads nothing', async () => {
    const ai = genkit({});
    const { store, calls } = recordingStore(await make());
    const agent = defineAgent(ai, { name: 'early', model: scriptedModel(ai).name, store });
    const { output } = await call(agent, ['go'], { sessionId: 's' }, { abortSignal: AbortSignal.abort() });
    expect(output).toEqual({ sessionId: 's', finishReason: 'aborted' });
    expect(calls).toEqual([]);
  });

  test('while the agent waits for the next input ends the call', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const agent = defineAgent(ai, { name: 'waiting', model: scripted.name, store: await make() });
    const controller = new AbortController();
    const stream = agent.streamBidi({}, { abortSignal: controller.signal });
    stream.send({ message: user('one') });
    const { value } = await stream.stream[Symbol.asyncIterator]().next();
    controller.abort();
    expect(await stream.output).toMatchObject({ finishReason: 'aborted', snapshotId: value?.turnEnd?.snapshotId });
  });

  test('a chat continues from before its aborted turn', async () => {
    const ai = genkit({});
    const started = deferred();
    const scripted = scriptedModel(ai, {
      replies: [
        'one',
        () => {
          started.resolve();
          return new Promise(() => {});
        },
        'three',
      ],
    });
    const agent = defineAgent(ai, { name: 'again', model: scripted.name, store: await make() });
    const chat = agent.chat();
    await chat.send('a');
    const turn = chat.sendStream('b');
    await started.promise;
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    await chat.send('c');
    expect(scripted.requests.at(-1)?.messages).toEqual([user('a'), model('one'), user('c')]);
  });
});

test.each(STORE_KINDS)('a snapshot that was aborted meanwhile is not overwritten on $name', async ({ make }) => {
  const store = await make();
  for (const ending of ['well', 'badly']) {
    const agent = defineCustomAgent(genkit({}), { name: 'beaten', store }, async (sess) => {
      await sess.run(async (_input, { snapshotId }) => {
        const createdAt = new Date().toISOString();
        await store.saveSnapshot(snapshotId, () => ({ sessionId: sess.sessionId, createdAt, status: 'aborted' }));
        if (ending === 'badly') throw new Error('too late');
      });
      return { message: model('done') };
    });
    const { output } = await call(agent, ['go'], { sessionId: ending });
    expect(output).toEqual({ sessionId: ending, finishReason: 'aborted' });
    expect((await store.getSnapshot({ sessionId: ending }))?.status).toBe('aborted');
  }
});

test('soak: a signal that outlives many turns is left without listeners', async () => {
  const ai = betaGenkit({});
  const scripted = scriptedModel(ai, { otherwise: 'ok' });
  const agent = defineAgent(ai, { name: 'soak', model: scripted.name });
  const { signal } = new AbortController();
  for (let i = 0; i < 50; i++) await call(agent, ['hi'], {}, { abortSignal: signal });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
