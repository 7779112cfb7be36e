import { genkit } from 'genkit/beta';
import { z } from 'genkit';
import { defineAgent, defineCustomAgent, type Artifact, type ClientTransform, type SessionStore } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, deferred, kinds, model, user } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

describe('the stream of a turn', () => {
  test("carries the model's chunks as plain data, then the turn's end", async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, {
      replies: [
        {
          message: model('hello'),
          finishReason: 'stop',
          chunks: [{ content: [{ text: 'hel' }] }, { content: [{ text: 'lo' }] }],
        },
      ],
    });
    const agent = defineAgent(ai, { name: 'streaming', model: scripted.name });
    const { chunks, output } = await call(agent, ['hi']);
    expect(output.state?.messages).toEqual([user('hi'), model('hello')]);
    expect(chunks).toStrictEqual([
      { modelChunk: { role: 'model', index: 0, content: [{ text: 'hel' }] } },
      { modelChunk: { role: 'model', index: 0, content: [{ text: 'lo' }] } },
      { turnEnd: { finishReason: 'stop' } },
    ]);
  });

  test('carries tool calls and tool results as they happen, with what the tools did to the session in between', async () => {
    const ai = genkit({});
    const request = { toolRequest: { name: 'count', input: {}, ref: '1' } };
    const scripted = scriptedModel(ai, {
      replies: [
        { message: { role: 'model', content: [request] }, chunks: [{ content: [request] }] },
        { message: model('one'), finishReason: 'stop', chunks: [{ content: [{ text: 'one' }] }] },
      ],
    });
    const count = ai.defineTool({ name: 'count', description: 'Counts.', inputSchema: z.object({}) }, async () => {
      const session = ai.currentSession<{ n: number }>();
      session.updateCustom((custom) => ({ n: (custom?.n ?? 0) + 1 }));
      session.addArtifacts([{ name: 'tally', parts: [{ text: '|' }] }]);
      return session.getCustom()?.n;
    });
    const agent = defineAgent(ai, { name: 'counting', model: scripted.name, tools: [count] });
    const { chunks, output } = await call(agent, ['count']);
    expect(chunks).toEqual([
      { modelChunk: { role: 'model', index: 0, content: [request] } },
      { customPatch: [{ op: 'replace', path: '', value: { n: 1 } }] },
      { artifact: { name: 'tally', parts: [{ text: '|' }] } },
      { modelChunk: { role: 'tool', index: 1, content: [{ toolResponse: { name: 'count', ref: '1', output: 1 } }] } },
      { modelChunk: { role: 'model', index: 2, content: [{ text: 'one' }] } },
      { turnEnd: { finishReason: 'stop' } },
    ]);
    expect(output.artifacts).toEqual([{ name: 'tally', parts: [{ text: '|' }] }]);
    expect(output.state?.messages?.map(({ role }) => role)).toEqual(['user', 'model', 'tool', 'model']);
  });

  test('comes while the turn runs, and further turns may follow on it', async () => {
    const ai = genkit({});
    const gate = deferred();
    const scripted = scriptedModel(ai, {
      replies: [
        async ({ sendChunk }) => {
          sendChunk({ content: [{ text: 'first' }] });
          await gate.promise;
          return 'first';
        },
        'second',
      ],
    });
    const agent = defineAgent(ai, { name: 'live', model: scripted.name });
    const stream = agent.streamBidi({});
    const reader = stream.stream[Symbol.asyncIterator]();
    stream.send({ message: user('one') });
    expect((await reader.next()).value).toMatchObject({ modelChunk: { content: [{ text: 'first' }] } });
    gate.resolve();
    expect((await reader.next()).value).toEqual({ turnEnd: { finishReason: 'stop' } });
    stream.send({ message: user('two') });
    expect((await reader.next()).value).toEqual({ turnEnd: { finishReason: 'stop' } });
    stream.close();
    expect(scripted.requests[1]?.messages).toEqual([user('one'), model('first'), user('two')]);
    expect(await stream.output).toMatchObject({
      message: model('second'),
      finishReason: 'stop',
      state: { messages: [user('one'), model('first'), user('two'), model('second')] },
    });
  });

  test('artifacts are streamed one by one and kept by name', async () => {
    const ai = genkit({});
    const artifact = (name: string | undefined, text: string): Artifact => ({
      ...(name && { name }),
      parts: [{ text }],
    });
    const agent = defineCustomAgent(ai, { name: 'artist' }, async (sess) => {
      await sess.run(async () => {
        sess.addArtifacts([artifact('a', '1'), artifact(undefined, 'x')]);
        sess.addArtifacts([artifact('a', '2'), artifact(undefined, 'x'), artifact('b', '1')]);
      });
      return { artifacts: sess.getArtifacts() };
    });
    const { chunks, output } = await call(agent, ['go']);
    const told = chunks.flatMap((chunk) => chunk.artifact ?? []);
    expect(told).toEqual([
      artifact('a', '1'),
      artifact(undefined, 'x'),
      artifact(undefined, 'x'),
      artifact('b', '1'),
      artifact('a', '2'),
    ]);
    expect(output.artifacts).toEqual([
      artifact('a', '2'),
      artifact(undefined, 'x'),
      artifact(undefined, 'x'),
      artifact('b', '1'),
    ]);
    expect(output.state?.artifacts).toEqual(output.artifacts);
  });

  test('a caller that stops reading does not disturb the turn', async () => {
    const ai = genkit({});
    const gate = deferred();
    const agent = defineCustomAgent<{ n: number }>(ai, { name: 'unheard' }, async (sess, { sendChunk }) => {
      await sess.run(async () => {
        sess.updateCustom(() => ({ n: 1 }));
        await gate.promise;
        sess.updateCustom(() => ({ n: 2 }));
        sess.addArtifacts([{ name: 'a', parts: [] }]);
        sendChunk({ modelChunk: { content: [{ text: 'hello?' }] } });
      });
      return { message: model('done') };
    });
    const stream = agent.streamBidi({});
    stream.send({ message: user('go') });
    stream.close();
    for await (const chunk of stream.stream) {
      expect(chunk.customPatch).toBeDefined();
      break;
    }
    gate.resolve();
    expect(await stream.output).toMatchObject({ message: model('done'), state: { custom: { n: 2 } } });
  });

  test('streamed values are copies of the session’s', async () => {
    const ai = genkit({});
    const agent = defineCustomAgent<{ list: number[] }>(ai, { name: 'safe' }, async (sess) => {
      await sess.run(async () => {
        sess.updateCustom(() => ({ list: [1] }));
        sess.addArtifacts([{ name: 'a', parts: [{ text: 'kept' }] }]);
        await new Promise((resolve) => setImmediate(resolve));
        sess.updateCustom((custom) => ({ list: [...(custom?.list ?? []), 2] }));
      });
      return {};
    });
    const chat = agent.chat();
    const { stream, response } = chat.sendStream('go');
    for await (const { raw } of stream) {
      const value = raw.customPatch?.[0]?.value as { list?: number[] } | undefined;
      value?.list?.push(99);
      if (raw.artifact) raw.artifact.parts = [];
    }
    const { raw } = await response;
    expect(raw.state?.custom).toEqual({ list: [1, 2] });
    expect(raw.state?.artifacts).toEqual([{ name: 'a', parts: [{ text: 'kept' }] }]);
  });
});

describe.each(STORE_KINDS)('clientTransform on $name', ({ make }) => {
  type State = { public: number; secret: string };

  async function setUp(clientTransform: ClientTransform<State>) {
    const ai = genkit({});
    const agent = defineCustomAgent<State>(
      ai,
      { name: 'discreet', store: await make(), clientTransform },
      async (sess) => {
        await sess.run(async () => {
          sess.updateCustom(() => ({ public: 1, secret: 'a' }));
          sess.updateCustom(() => ({ public: 1, secret: 'b' }));
          sess.updateCustom(() => ({ public: 2, secret: 'b' }));
          sess.addArtifacts([{ name: 'secret', parts: [] }]);
        });
        return { message: model('done') };
      },
    );
    return agent;
  }

  test('patches are the changes of the transformed state; hidden parts are never streamed, read or distinguishable', async () => {
    const agent = await setUp({
      state: (state) => ({ ...state, custom: { public: state.custom?.public }, artifacts: [] }),
    });
    const { chunks, output } = await call(agent, ['go']);
    expect(chunks.flatMap((chunk) => chunk.customPatch ?? [])).toEqual([
      { op: 'replace', path: '', value: { public: 1 } },
      { op: 'replace', path: '/public', value: 2 },
    ]);
    const seen = await agent.getSnapshot(output.snapshotId as string);
    expect(seen?.state).toMatchObject({ custom: { public: 2 }, artifacts: [], messages: [user('go')] });
    expect(JSON.stringify([chunks, seen])).not.toContain('"b"');
  });

  test('a transform may change its argument in place', async () => {
    const agent = await setUp({
      state: (state) => {
        if (state.custom) state.custom.secret = '';
        state.messages?.splice(0);
        return state;
      },
    });
    const { chunks, output } = await call(agent, ['go']);
    expect(JSON.stringify(chunks)).not.toContain('"b"');
    const snapshotId = output.snapshotId as string;
    expect((await agent.getSnapshot(snapshotId))?.state).toMatchObject({
      custom: { public: 2, secret: '' },
      messages: [],
    });
    // The next turn still has all of it.
    const next = await call(agent, ['more'], { snapshotId });
    expect(next.output.finishReason).toBeUndefined();
    expect(JSON.stringify(next.output)).not.toContain('"b"');
  });

  test('a transform of chunks may change or drop any of them', async () => {
    const agent = await setUp({
      chunk: (chunk) => {
        if (chunk.artifact?.name === 'secret') return null;
        if (chunk.customPatch) return undefined;
        return { ...chunk, turnEnd: { finishReason: 'other' } };
      },
    });
    expect((await call(agent, ['go'])).chunks).toEqual([{ turnEnd: { finishReason: 'other' } }]);
  });

  test('a transform that throws hides its value, and the turn continues', async () => {
    const agent = await setUp({
      state: () => {
        throw new Error('cannot');
      },
      chunk: (chunk) => {
        if (chunk.artifact) throw new Error('cannot');
        return chunk;
      },
    });
    const { chunks, output } = await call(agent, ['go']);
    expect(kinds(chunks)).toEqual(['turnEnd']);
    expect(output.snapshotId).toBeDefined();
    await expect(agent.getSnapshot(output.snapshotId as string)).rejects.toThrow('cannot');
  });
});

test('the artifacts and the reply of an output are transformed', async () => {
  const answer = async (state: NonNullable<ClientTransform['state']>) => {
    const agent = defineCustomAgent(genkit({}), { name: 'shy', clientTransform: { state } }, async (sess) => {
      await sess.run(async () => {
        sess.addArtifacts(['public', 'secret'].map((name) => ({ name, parts: [{ text: name }] })));
        sess.addMessages([model('the code is 1234')]);
      });
      return { message: sess.getMessages().at(-1), artifacts: sess.getArtifacts() };
    });
    const { message, artifacts } = (await call(agent, ['go'])).output;
    return { text: message?.content[0]?.text, artifacts: artifacts?.map(({ name }) => name) };
  };
  const all = { text: 'the code is 1234', artifacts: ['public', 'secret'] };
  expect(await answer((state) => state)).toEqual(all);
  expect(await answer((state) => ({ ...state, messages: state.messages?.slice(-1) }))).toEqual(all);
  const publicOnly = await answer((state) => ({
    ...state,
    messages: state.messages?.map((message) => ({ ...message, content: [{ text: 'redacted' }] })),
    artifacts: state.artifacts?.filter(({ name }) => name === 'public'),
  }));
  expect(publicOnly).toEqual({ text: 'redacted', artifacts: ['public'] });
  expect(await answer((state) => ({ ...state, messages: state.messages?.slice(0, -1), artifacts: [] }))).toEqual({});
  expect(await answer(() => ({}))).toEqual({});
});

test('a transform that changes its argument does not change the objects of a store that returns its own', async () => {
  const kept = { snapshotId: 'a', createdAt: 'now', status: 'completed' as const, state: { custom: { secret: 'x' } } };
  const store: SessionStore<{ secret: string }> = { getSnapshot: async () => kept, saveSnapshot: async () => null };
  const clientTransform: ClientTransform<{ secret: string }> = {
    state: (state) => {
      if (state.custom) state.custom.secret = '';
      return state;
    },
  };
  const agent = defineCustomAgent(genkit({}), { name: 'lender', store, clientTransform }, async () => ({}));
  expect((await agent.getSnapshot('a'))?.state?.custom).toEqual({ secret: '' });
  expect(kept.state.custom).toEqual({ secret: 'x' });
});

test('a transform that throws does not expose the untransformed state of a client', async () => {
  const ai = genkit({});
  const clientTransform = {
    state: () => {
      throw new Error('cannot');
    },
  };
  const agent = defineCustomAgent(ai, { name: 'closed', clientTransform }, async (sess) => {
    await sess.run(async () => {});
    return { message: model('done') };
  });
  const { output } = await call(agent, ['go']);
  expect(output).toEqual({
    sessionId: expect.any(String) as string,
    finishReason: 'failed',
    error: { status: 'INTERNAL', message: 'cannot' },
  });
});
