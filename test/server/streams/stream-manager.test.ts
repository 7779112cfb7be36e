/** The server's calls of a stream manager, and the rest of a stream after its end. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { InMemoryStreamManager, StreamNotFoundError, type StreamManager } from 'genkit/beta';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it, vi } from 'vitest';
import { gate } from '../support/agents.ts';
import { framesOf, HOUR, resultFrame, STREAM_ID, twoThenThree } from '../support/kept-turns.ts';
import { catchErrorLog } from '../support/log.ts';
import { SlowManager } from '../support/slow-manager.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello } from '../support/stub-server.ts';

const errorLog = catchErrorLog();

describe('a slow stream manager', () => {
  const request = (body: unknown, headers: Record<string, string> = {}) =>
    new Request('http://agents.test/a', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
      body: JSON.stringify(body),
    });
  const talker = (count: number) =>
    stubAgent('a', async (_, { onChunk }) => {
      for (let n = 0; n < count; n++) {
        onChunk?.(n);
        if (n % 10 === 9) {
          await new Promise(setImmediate);
        }
      }
      return done;
    });
  const numbers = Array.from({ length: 100 }, (_, n) => n);

  it('gets every frame in order, in fewer writes, and is unsubscribed from at the end of the stream', async () => {
    const manager = new SlowManager();
    const handler = agentHandler([talker(100)], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    const whole = framesOf(...numbers) + resultFrame(done);
    expect(await first.text()).toBe(whole);
    expect(await second.text()).toBe(whole);
    expect(manager.writes.join('')).toBe(framesOf(...numbers));
    expect(manager.writes.length).toBeLessThan(40);
    expect(manager.subscribers).toBe(0);
  });

  it('is unsubscribed from when the reader disconnects', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    expect(manager.subscribers).toBe(1);
    await second.body?.cancel();
    expect(manager.subscribers).toBe(0);
    mayEnd.open();
    expect(await first.text()).toContain('"result"');
  });

  it('that cannot open a stream prevents only reconnects: the turn runs, and ends with its connection', async () => {
    const manager = new SlowManager();
    manager.fails = 'open';
    const { agent } = twoThenThree();
    const response = await agentHandler([agent], { anonymous: true, streamManager: manager })(request({ data: hello }));
    expect(response.headers.get(STREAM_ID)).toBeNull();
    await response.body?.cancel();
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('that never opens a stream is 503 within timeoutMs, nothing runs, and a stream that opens late is closed', async () => {
    const inner = new InMemoryStreamManager();
    const [mayOpen, closed] = [gate(), gate()];
    const streamManager: StreamManager = {
      open: async (id) => {
        await mayOpen.opened;
        const input = await inner.open<never, never>(id);
        return { ...input, error: async () => closed.open() };
      },
      subscribe: (id, subscriber) => inner.subscribe(id, subscriber),
    };
    const agent = stubAgent('a', () => done);
    const response = await agentHandler([agent], { anonymous: true, streamManager, timeoutMs: 20 })(
      request({ data: hello }),
    );
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { status: 'UNAVAILABLE' } });
    expect(agent.runs).toEqual([]);
    mayOpen.open();
    await closed.opened;
  });

  it('that never subscribes is 503 within timeoutMs, and a late subscription is ended', async () => {
    const [mayAnswer, unsubscribed] = [gate(), gate()];
    const streamManager: StreamManager = {
      open: () => Promise.reject(new Error('not asked')),
      subscribe: async () => {
        await mayAnswer.opened;
        return { unsubscribe: unsubscribed.open };
      },
    };
    const handler = agentHandler([stubAgent('a', () => done)], { anonymous: true, streamManager, timeoutMs: 20 });
    const response = await handler(request({}, { [STREAM_ID]: globalThis.crypto.randomUUID() }));
    expect(response.status).toBe(503);
    mayAnswer.open();
    await unsubscribed.opened;
  });

  it('that accepts no write loses the stream when it is too far behind, and not the turn', async () => {
    const inner = new InMemoryStreamManager();
    const lost = gate();
    const streamManager: StreamManager = {
      open: async (id) => ({
        ...(await inner.open<never, never>(id)),
        write: () => new Promise(() => {}),
        error: async () => lost.open(),
      }),
      subscribe: (id, subscriber) => inner.subscribe(id, subscriber),
    };
    const handler = agentHandler([talker(100)], { anonymous: true, streamManager, maxUnreadChars: 1000 });
    const reading = (await handler(request({ data: hello }))).text();
    await lost.opened;
    expect(await reading).toBe(framesOf(...numbers) + resultFrame(done));
  });

  it('that loses a write loses the stream for clients that reconnect, without a silent gap', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    await vi.waitFor(() => expect(manager.writes.join('')).toBe(framesOf(1, 2)));
    manager.fails = 'write';
    mayEnd.open();
    expect(await first.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    const lost = await second.text();
    expect(lost).toContain(framesOf(1, 2));
    expect(lost).toMatch(/error: .*"UNAVAILABLE"/);
    expect(lost).not.toContain('10.0.0.7');
    expect(lost).not.toContain('"result"');
  });

  it('that has no such stream is answered with 204, one that throws with 500, and neither shows internals', async () => {
    const manager: StreamManager = {
      open: () => Promise.reject(new Error('no')),
      subscribe: () => Promise.reject(new StreamNotFoundError('Stream x not found.')),
    };
    const handler = agentHandler([talker(1)], { anonymous: true, streamManager: manager });
    const ask = () => handler(request({}, { [STREAM_ID]: globalThis.crypto.randomUUID() }));
    expect((await ask()).status).toBe(204);
    manager.subscribe = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7'));
    const broken = await ask();
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toContain('10.0.0.7');
    expect(errorLog()).toContain('10.0.0.7');
  });

  it('that several servers share lets a client reconnect to any of them', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const options = { anonymous: true, streamManager: manager, reconnectWithinMs: false } as const;
    const [here, there] = [agentHandler([agent], options), agentHandler([agent], options)];
    const first = await here(request({ data: hello }));
    await first.body?.cancel();
    const second = await there(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    mayEnd.open();
    expect(await second.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    expect(agent.runs).toHaveLength(1);
  });

  it('leaves no timer and no subscriber, whatever its clients do', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const manager = new SlowManager();
    const handler = agentHandler([talker(30)], { anonymous: true, streamManager: manager, reconnectWithinMs: HOUR });
    const before = timers();
    for (let n = 0; n < 50; n++) {
      const first = await handler(request({ data: hello }));
      const id = first.headers.get(STREAM_ID)!;
      await (n % 2 === 0 ? first.body?.cancel() : first.text());
      const second = await handler(request({}, { [STREAM_ID]: id }));
      await (n % 3 === 0 ? second.body?.cancel() : second.text());
    }
    // Earlier ones belong to other tests.
    await vi.waitFor(() => expect(timers()).toBeLessThanOrEqual(before));
    await vi.waitFor(() => expect(manager.subscribers).toBe(0));
  });

  it('holds the streamed frames; the server holds none of them after the turn', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // A manager that keeps nothing, so that only the server's memory is measured.
    const manager: StreamManager = {
      open: async () => ({ write: async () => {}, done: async () => {}, error: async () => {} }),
      subscribe: () => Promise.reject(new StreamNotFoundError('none')),
    };
    const outputs: WeakRef<object>[] = [];
    const agent = stubAgent('a', (_, { onChunk, abortSignal }) => {
      const output = { ...done, big: Array.from({ length: 1000 }, (_, n) => ({ n })) };
      outputs.push(new WeakRef(output), new WeakRef(output.big), new WeakRef(abortSignal));
      onChunk?.(output.big);
      return output;
    });
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    for (let n = 0; n < 20; n++) {
      await (await handler(request({ data: hello }))).text();
    }
    agent.runs.length = 0;
    await vi.waitFor(() => {
      collect();
      expect(outputs.filter((output) => output.deref() !== undefined)).toEqual([]);
    });
  });
});
