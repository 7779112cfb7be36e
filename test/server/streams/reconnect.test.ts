/** Streams that break and are resumed, over real connections: each chunk arrives once, from either server. */
import { InMemoryStreamManager, type Agent, type AgentStreamChunk } from 'genkit/beta';
import { AgentError, remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, it } from 'vitest';
import { scale } from '../../support/scale.ts';
import { gate } from '../support/agents.ts';
import { cuttingProxy, type CuttingProxy } from '../support/cutting-proxy.ts';
import { serveByGenkit, serveByHandler, serveByRouter, type Running } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent, type StubAgent } from '../support/stub-agent.ts';

catchErrorLog();

const texts = ['é', '日本', '', '🧑‍🚀', '"quoted" \\ \n\n data: {}', '!'];
const chunkOf = (text: string): AgentStreamChunk => ({ modelChunk: { content: [{ text }] } });
const done = { finishReason: 'stop', message: { role: 'model', content: [{ text: texts.join('') }] } };
const speaker = () =>
  stubAgent('a', async (_, { onChunk }) => {
    for (const text of texts) {
      await new Promise(setImmediate);
      onChunk?.(chunkOf(text));
    }
    return done;
  });

const servers = [
  {
    name: 'agentHandler',
    serve: (agent: StubAgent) =>
      serveByHandler([agent], { anonymous: true, streamManager: new InMemoryStreamManager() }),
  },
  {
    name: 'agentRouter',
    serve: (agent: StubAgent) =>
      serveByRouter([agent], { anonymous: true, streamManager: new InMemoryStreamManager() }),
  },
  {
    name: 'Genkit’s expressHandler',
    serve: (agent: StubAgent) =>
      serveByGenkit({ a: agent as unknown as Agent<never> }, { streamManager: new InMemoryStreamManager() }),
  },
];

describe.each(servers)('over $name', ({ serve }) => {
  let running: Running | undefined;
  let proxy: CuttingProxy | undefined;

  const start = async (agent: StubAgent) => {
    running = await serve(agent);
    proxy = await cuttingProxy(running.url);
    return { proxy, remote: remoteAgent({ url: `${proxy.url}/a`, reconnect: { delayMs: 0 } }) };
  };

  afterEach(async () => {
    await proxy?.stop();
    await running?.stop();
  });

  it('HTTP: a connection cut after any byte of the answer loses and repeats no chunk', async () => {
    const agent = speaker();
    const { proxy, remote } = await start(agent);
    proxy.cutAfter(Infinity);
    await remote.chat().send('go');
    const length = proxy.carried();
    const outcomes = { whole: 0, refused: 0 };
    for (let cut = 1; cut < length + 40; cut += scale(19, 1)) {
      const runs = agent.runs.length;
      proxy.cutAfter(cut);
      const turn = remote.chat().sendStream('go');
      const seen: string[] = [];
      try {
        for await (const { text } of turn.stream) {
          seen.push(text);
        }
        expect((await turn.response).text).toBe(texts.join(''));
        expect(seen).toEqual(texts);
        outcomes.whole += 1;
      } catch (error) {
        // Cut in the head of the answer: the client has no id to reconnect with.
        expect(AgentError.isInstance(error) && error.status, `cut after ${cut} bytes, saw ${seen.length}`).toBe(
          'UNAVAILABLE',
        );
        expect(seen).toEqual([]);
        outcomes.refused += 1;
      }
      expect(agent.runs.length, 'The turn ran once.').toBe(runs + 1);
    }
    expect(outcomes.whole).toBeGreaterThan(outcomes.refused);
    expect(outcomes.refused).toBeLessThan(500);
  });

  it('a turn continues while its client is disconnected, and the client gets all chunks after it reconnects', async () => {
    const steps = [gate(), gate(), gate()];
    const agent = stubAgent('a', async (_, { onChunk }) => {
      onChunk?.(chunkOf('one'));
      await steps[0]!.opened;
      onChunk?.(chunkOf('two'));
      onChunk?.(chunkOf('three'));
      steps[1]!.open();
      await steps[2]!.opened;
      onChunk?.(chunkOf('four'));
      return done;
    });
    const { proxy, remote } = await start(agent);
    const turn = remote.chat().sendStream('go');
    const stream = turn.stream[Symbol.asyncIterator]();
    const next = async () => ((await stream.next()).value as { text: string } | undefined)?.text;
    expect(await next()).toBe('one');
    proxy.cut();
    steps[0]!.open();
    await steps[1]!.opened;
    expect([await next(), await next()]).toEqual(['two', 'three']);
    proxy.cut();
    steps[2]!.open();
    expect(await next()).toBe('four');
    expect(await next()).toBeUndefined();
    expect((await turn.response).finishReason).toBe('stop');
    expect(agent.runs).toHaveLength(1);
  });

  it('a turn continues when its headers cannot be created during a reconnect', async () => {
    const mayEnd = gate();
    const agent = stubAgent('a', async (_, { onChunk }) => {
      onChunk?.(chunkOf('one'));
      await mayEnd.opened;
      onChunk?.(chunkOf('two'));
      return done;
    });
    const { proxy } = await start(agent);
    let failures = 0;
    const headers = async () => {
      if (failures-- > 0) throw new TypeError('Failed to fetch');
      return { authorization: 'Bearer token' };
    };
    const turn = remoteAgent({ url: `${proxy.url}/a`, headers, reconnect: { delayMs: 0 } })
      .chat()
      .sendStream('go');
    const stream = turn.stream[Symbol.asyncIterator]();
    await stream.next();
    failures = 2;
    proxy.cut();
    mayEnd.open();
    expect((await stream.next()).value).toMatchObject({ text: 'two' });
    expect((await turn.response).finishReason).toBe('stop');
    expect(failures).toBeLessThan(0);
  });

  it('a turn that fails after the break fails as it would have', async () => {
    const broken = gate();
    const agent = stubAgent('a', async (_, { onChunk }) => {
      onChunk?.(chunkOf('one'));
      await broken.opened;
      return { finishReason: 'failed', error: { status: 'RESOURCE_EXHAUSTED', message: 'Enough.' } };
    });
    const { proxy, remote } = await start(agent);
    const turn = remote.chat().sendStream('go');
    await turn.stream[Symbol.asyncIterator]().next();
    proxy.cut();
    broken.open();
    await expect(turn.response).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
  });
});
