/** Clients that request streams and do not read them, and servers whose frames never end. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { InMemoryStreamManager } from 'genkit/beta';
import { AgentError, remoteAgent } from 'genkitx-agents/client';
import { agentHandler, agentRouter, type AgentServerOptions } from 'genkitx-agents/server';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { gate } from '../support/agents.ts';
import { framesOf, HOUR, resultFrame, STREAM_ID } from '../support/kept-turns.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, streamed } from '../support/stub-server.ts';

catchErrorLog();

const KILO = 'x'.repeat(1000);

const request = (body: unknown = { data: hello }, headers: Record<string, string> = {}) =>
  new Request('http://agents.test/a', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...streamed, ...headers },
    body: JSON.stringify(body),
  });

/** An agent that streams until it is stopped. `onSend` and `onStop` get the number of the run. */
function endlessAgent({
  onSend = () => {},
  onStop = () => {},
}: Partial<Record<'onSend' | 'onStop', (run: number) => void>>) {
  let runs = 0;
  return stubAgent('a', async (_, { onChunk, abortSignal }) => {
    const run = runs++;
    while (!abortSignal.aborted) {
      onChunk?.(KILO);
      onSend(run);
      await new Promise(setImmediate);
    }
    onStop(run);
    return { finishReason: 'aborted' };
  });
}

describe('slow readers: agentHandler', () => {
  it('clients that stop reading leave no more unread than the limit, are ended typed, and their turns are stopped', async () => {
    const CLIENTS = 10;
    const LIMIT = 100_000;
    const frame = framesOf(KILO).length;
    const unread = new Map<number, number>();
    const held = () => [...unread.values()].reduce((sum, chars) => sum + chars, 0);
    let most = 0;
    const stopped: (() => void)[] = [];
    const allStopped = Array.from({ length: CLIENTS }, () => new Promise<void>((resolve) => stopped.push(resolve)));
    const agent = endlessAgent({
      onSend: (run) => {
        if (!agent.runs[run]!.options.abortSignal.aborted) {
          unread.set(run, (unread.get(run) ?? 0) + frame);
        }
        // A client that was ended for this frame has no backlog.
        for (const [each] of unread) if (agent.runs[each]!.options.abortSignal.aborted) unread.delete(each);
        most = Math.max(most, held());
      },
      onStop: (run) => stopped[run]!(),
    });
    const handler = agentHandler([agent], { anonymous: true, maxUnreadChars: LIMIT, readTimeoutMs: HOUR });
    const readers = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, run) => {
        const reader = (await handler(request())).body!.getReader();
        const { value } = await reader.read();
        unread.set(run, (unread.get(run) ?? 0) - value!.byteLength);
        return reader;
      }),
    );
    await Promise.all(allStopped);
    expect(most).toBeGreaterThan(LIMIT / 2);
    expect(most).toBeLessThanOrEqual(LIMIT + frame);
    for (const reader of readers) {
      const { value } = await reader.read();
      expect(new TextDecoder().decode(value)).toMatch(/^error: \{"error":\{"status":"RESOURCE_EXHAUSTED"/);
      expect((await reader.read()).done).toBe(true);
    }
  });

  it('a client that reads is not ended, however fast its turn writes, even beside clients that do not read', async () => {
    const stopped = gate();
    const idle = endlessAgent({ onStop: stopped.open });
    const burst = Array.from({ length: 900 }, () => KILO);
    const fast = stubAgent('b', async (_, { onChunk }) => {
      burst.forEach((chunk) => onChunk?.(chunk));
      await stopped.opened;
      return done;
    });
    const options = { anonymous: true, maxUnreadChars: 1_000_000, readTimeoutMs: HOUR };
    const handler = agentHandler({ a: idle, b: fast }, options);
    const stuck = (await handler(request())).body!.getReader();
    await stuck.read();
    const answer = await handler(new Request('http://agents.test/b', request()));
    expect(await answer.text()).toBe(framesOf(...burst) + resultFrame(done));
    expect(idle.runs[0]!.options.abortSignal.aborted).toBe(true);
    await stuck.cancel();
  });

  it('clients that read nothing are ended before a client that has just read, though it has a longer backlog', async () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => void vi.restoreAllMocks());
    const mayEnd = gate();
    const talker = (name: string, count: number) =>
      stubAgent(name, async (_, { onChunk, abortSignal }) => {
        for (let n = 0; n < count; n++) onChunk?.(KILO);
        abortSignal.addEventListener('abort', mayEnd.open);
        await mayEnd.opened;
        return done;
      });
    const [idle, busy] = [talker('a', 40), talker('b', 500)];
    const handler = agentHandler([idle, busy], { anonymous: true, maxUnreadChars: 700_000, readTimeoutMs: HOUR });
    const stalled = await Promise.all(Array.from({ length: 10 }, () => handler(request())));
    now = 60_000;
    const reading = (await handler(new Request('http://agents.test/b', request()))).body!;
    const another = await handler(request());
    mayEnd.open();
    expect(await new Response(reading).text()).toContain('"finishReason":"stop"');
    const texts = await Promise.all(stalled.map((answer) => answer.text()));
    expect(texts.some((text) => text.includes('RESOURCE_EXHAUSTED'))).toBe(true);
    await another.body?.cancel();
  });

  it('a client whose stream is kept is disconnected, its turn continues, and it gets all of it when it reconnects', async () => {
    const mayEnd = gate();
    const talker = (name: string, count: number) => {
      const written = gate();
      const chunks = Array.from({ length: count }, (_, n) => `${n} ${KILO}`);
      const agent = stubAgent(name, async (_, { onChunk }) => {
        for (const chunk of chunks) {
          onChunk?.(chunk);
          await new Promise(setImmediate);
        }
        written.open();
        await mayEnd.opened;
        return done;
      });
      return { agent, written, chunks };
    };
    const [longer, shorter] = [talker('a', 220), talker('b', 140)];
    const handler = agentHandler([longer.agent, shorter.agent], {
      anonymous: true,
      maxUnreadChars: 250_000,
      readTimeoutMs: HOUR,
      streamManager: new InMemoryStreamManager(),
      reconnectWithinMs: HOUR,
    });
    const first = await handler(request());
    const reader = first.body!.getReader();
    await reader.read();
    await longer.written.opened;
    const other = await handler(new Request('http://agents.test/b', request()));
    await shorter.written.opened;
    await expect(reader.read()).rejects.toThrow('too slow');
    expect(longer.agent.runs[0]!.options.abortSignal.aborted).toBe(false);
    const again = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    mayEnd.open();
    expect(await again.text()).toBe(framesOf(...longer.chunks) + resultFrame(done));
    await other.body?.cancel();
  });

  it('by default, 60 clients that request 20 MB each and stop reading leave at most 17 million characters unread', async () => {
    const CLIENTS = 60;
    const big = 'x'.repeat(100_000);
    const held = new Map<number, number>();
    let most = 0;
    const over = gate();
    const agent = stubAgent('a', async (_, { onChunk, abortSignal }) => {
      const run = agent.runs.length - 1;
      for (let sent = 0; sent < 20_000_000 && !abortSignal.aborted; sent += big.length) {
        onChunk?.(big);
        held.set(run, sent + big.length);
        for (const [each] of held) if (agent.runs[each]!.options.abortSignal.aborted) held.delete(each);
        most = Math.max(
          most,
          [...held.values()].reduce((sum, chars) => sum + chars, 0),
        );
        await new Promise(setImmediate);
      }
      held.delete(run);
      if (++ended === CLIENTS) over.open();
      await over.opened;
      return done;
    });
    let ended = 0;
    const handler = agentHandler([agent], { anonymous: true, readTimeoutMs: HOUR });
    const answers = await Promise.all(Array.from({ length: CLIENTS }, () => handler(request())));
    await over.opened;
    expect(most).toBeGreaterThan(10_000_000);
    expect(most).toBeLessThan(17_000_000);
    for (const answer of answers) await answer.body?.cancel();
  });

  it.each([
    ['frame', streamed],
    ['document', { accept: 'application/json' }],
  ])('a large %s counts until the client has taken all of it', async (_, accept) => {
    const agent = stubAgent('a', () => ({ ...done, x: 'y'.repeat(1_000_000) }));
    const handler = agentHandler([agent], { anonymous: true, maxUnreadChars: 2_500_000, readTimeoutMs: HOUR });
    const ask = async () => {
      const { body } = await handler(request({ data: hello }, accept));
      const reader = body!.getReader();
      const { value } = await reader.read();
      expect(value!.byteLength).toBeLessThan(100_000);
      return async () => {
        let text = '';
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          text += new TextDecoder().decode(next.value);
        }
        return text;
      };
    };
    const readers: (() => Promise<string>)[] = [];
    for (let client = 0; client < 5; client++) readers.push(await ask());
    const texts = await Promise.all(readers.map((readRest) => readRest().catch(String)));
    // Three of them are more than the limit, so the fourth and the fifth each end one.
    expect(texts.filter((text) => text.includes('too slow'))).toHaveLength(2);
    expect(texts.filter((text) => text.length > 900_000)).toHaveLength(3);
  });

  it('turns that fail before their first chunk leave no backlog, so that a slow client of another turn is not ended', async () => {
    const failing = stubAgent('b', () => {
      throw new Error('broken');
    });
    const mayEnd = gate();
    const agent = stubAgent('a', async (_, { onChunk }) => {
      onChunk?.(KILO);
      await mayEnd.opened;
      onChunk?.(KILO);
      return done;
    });
    const handler = agentHandler([agent, failing], { anonymous: true, maxUnreadChars: 10_000, readTimeoutMs: HOUR });
    for (let n = 0; n < 100; n++) {
      expect((await handler(new Request('http://agents.test/b', request()))).status).toBe(500);
    }
    const answer = await handler(request());
    mayEnd.open();
    await new Promise(setImmediate);
    expect(await answer.text()).toBe(framesOf(KILO, KILO) + resultFrame(done));
  });

  it('a client that reads nothing for readTimeoutMs is disconnected', async () => {
    const stopped = gate();
    const agent = endlessAgent({ onStop: stopped.open });
    const handler = agentHandler([agent], { anonymous: true, readTimeoutMs: 20 });
    const answer = await handler(request());
    await stopped.opened;
    await expect(answer.text()).rejects.toThrow('did not read');
  });
});

describe('slow readers: agentRouter', () => {
  /** A server of the agent, and clients that send requests and read nothing. */
  async function serve(agent: ReturnType<typeof stubAgent>, options: Partial<AgentServerOptions>) {
    const router = agentRouter([agent], { anonymous: true, ...options });
    const responses: ServerResponse[] = [];
    const server = createServer((incoming, response) => {
      responses.push(response);
      router(incoming, response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const sockets: Socket[] = [];
    onTestFinished(() => {
      sockets.forEach((socket) => socket.destroy());
      server.close();
    });
    const ask = (accept: string) => {
      const body = JSON.stringify({ data: hello });
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.pause();
      socket.write(
        `POST /a HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\naccept: ${accept}\r\n` +
          `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
      return socket;
    };
    return { ask, responses };
  }

  it('clients that never read are ended typed, their turns are stopped, and what is buffered for them is bounded', async () => {
    const CLIENTS = 5;
    let buffered = 0;
    let stops = 0;
    const stopped = gate();
    const big = 'y'.repeat(100_000);
    const agent = stubAgent('a', async (_, { onChunk, abortSignal }) => {
      while (!abortSignal.aborted) {
        onChunk?.(big);
        buffered = Math.max(buffered, ...responses.map((response) => response.writableLength));
        await new Promise(setImmediate);
      }
      stops += 1;
      if (stops === CLIENTS) stopped.open();
      return { finishReason: 'aborted' };
    });
    const { ask, responses } = await serve(agent, { maxUnreadChars: 500_000, readTimeoutMs: HOUR });
    const sockets = Array.from({ length: CLIENTS }, () => ask('text/event-stream'));
    await stopped.opened;
    expect(buffered).toBeLessThan(300_000);
    // A late read ends with the error.
    let text = '';
    sockets[0]!.on('data', (data) => {
      text = (text + data.toString()).slice(-1000);
    });
    sockets[0]!.resume();
    await once(sockets[0]!, 'close');
    expect(text).toContain('error: {"error":{"status":"RESOURCE_EXHAUSTED"');
  });

  it.each(['application/json', 'text/event-stream'])(
    'a client that takes nothing of an answer for readTimeoutMs is cut off (%s)',
    async (accept) => {
      const agent = stubAgent('a', () => ({ ...done, x: 'y'.repeat(30_000_000) }));
      const { ask, responses } = await serve(agent, { readTimeoutMs: 20 });
      ask(accept);
      await vi.waitFor(() => expect(responses).toHaveLength(1));
      if (!responses[0]!.closed) await once(responses[0]!, 'close');
      expect(responses[0]!.writableFinished).toBe(false);
    },
  );
});

describe('slow readers: servers whose frames never end', () => {
  const MEGA = 1_048_576;

  /** Answers with the same part forever, and counts the bytes that are read. */
  function endlessServer(type: string, piece: string) {
    const bytes = new TextEncoder().encode(piece);
    const seen = { taken: 0, requests: 0, cancelled: false };
    const send = async () => {
      seen.requests += 1;
      const body = new ReadableStream<Uint8Array>(
        {
          pull: (controller) => {
            seen.taken += bytes.byteLength;
            controller.enqueue(bytes);
          },
          cancel: () => {
            seen.cancelled = true;
          },
        },
        { highWaterMark: 0 },
      );
      return new Response(body, { headers: { 'content-type': type, [STREAM_ID]: 'kept' } });
    };
    return { seen, fetch: send as unknown as typeof fetch };
  }

  it.each([
    ['a line', 'text/event-stream', 'x'.repeat(MEGA)],
    ['an event of many lines', 'text/event-stream', 'data: 1\n'.repeat(MEGA / 8)],
    ['a document', 'application/json', ' '.repeat(MEGA)],
  ])('a client takes %s without end no further than the limit', async (_, type, piece) => {
    for (const maxFrameChars of [undefined, 3 * MEGA]) {
      const server = endlessServer(type, piece);
      const agent = remoteAgent({ url: 'http://agents.test/a', fetch: server.fetch, maxFrameChars });
      const error: unknown = await agent
        .chat()
        .send('go')
        .catch((thrown: unknown) => thrown);
      expect(AgentError.isInstance(error) && error.status).toBe('RESOURCE_EXHAUSTED');
      expect(server.seen.taken).toBeLessThanOrEqual((maxFrameChars ?? 64 * MEGA) * 1.2 + 2 * MEGA);
      expect(server.seen).toMatchObject({ cancelled: true, requests: 1 });
    }
  });

  it('an endless snapshot is read only up to the limit', async () => {
    const server = endlessServer('application/json', ' '.repeat(MEGA));
    const agent = remoteAgent({ url: 'http://agents.test/a', fetch: server.fetch, maxFrameChars: MEGA });
    await expect(agent.getSnapshot('s')).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    expect(server.seen.taken).toBe(2 * MEGA);
  });

  it('an invalid limit is refused', () => {
    expect(() => remoteAgent({ url: 'http://agents.test/a', maxFrameChars: 0 })).toThrow('maxFrameChars');
  });
});
