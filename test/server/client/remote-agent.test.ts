/** `remoteAgent` with valid and invalid answers. The answers are bytes that the test writes. */
import { remoteAgent, type RemoteAgentOptions } from 'genkitx-agents/client';
import { describe, expect, it } from 'vitest';
import { gate } from '../support/agents.ts';
import { listen } from '../support/http.ts';
import { refusal } from '../support/refusal.ts';
import { collect } from '../../support/collect.ts';

const encoder = new TextEncoder();
const chunk = (text: string) => `data: ${JSON.stringify({ message: { modelChunk: { content: [{ text }] } } })}\n\n`;
const result = (output: unknown) => `data: ${JSON.stringify({ result: output })}\n\n`;
const reply = (text: string) => ({
  snapshotId: 's1',
  finishReason: 'stop',
  message: { role: 'model', content: [{ text }] },
});

/** Bytes in pieces of `size`, and then the end, or an error. */
function body(bytes: Uint8Array | string, size = Infinity, error?: Error): ReadableStream<Uint8Array> {
  const all = typeof bytes === 'string' ? encoder.encode(bytes) : bytes;
  let at = 0;
  return new ReadableStream({
    pull: (controller) => {
      if (at < all.length) {
        controller.enqueue(all.slice(at, at + Math.min(size, all.length)));
        at += Math.min(size, all.length);
      } else if (error) {
        controller.error(error);
      } else {
        controller.close();
      }
    },
  });
}

function stream(bytes: Uint8Array | string, size?: number, error?: Error): Response {
  return new Response(body(bytes, size, error), { headers: { 'content-type': 'text/event-stream' } });
}

function json(status: number, value: unknown): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });
}

interface Sent {
  url: string;
  headers: Record<string, string>;
  body: unknown;
  signal: AbortSignal | undefined;
}

/** An agent that is answered by `answers`, one after the other. */
function agentAnswering(...answers: (Response | (() => Promise<Response>))[]) {
  return agentOf({}, ...answers);
}

function agentOf(options: Partial<RemoteAgentOptions>, ...answers: (Response | (() => Promise<Response>))[]) {
  const sent: Sent[] = [];
  const send = async (url: string, init: RequestInit) => {
    const answer = answers[sent.length];
    sent.push({
      url,
      headers: init.headers as Record<string, string>,
      body: JSON.parse(init.body as string),
      signal: init.signal ?? undefined,
    });
    return typeof answer === 'function' ? answer() : answer!;
  };
  const agent = remoteAgent({ url: 'http://agents.test/a', fetch: send as typeof fetch, ...options });
  return { agent, sent };
}

describe('a stream', () => {
  const text = 'é日本🧑‍🚀';
  const wire = chunk(text) + chunk('!') + result(reply(`${text}!`));

  it.each([1, 2, 3, 5, 7, 11, 64])('is read in network chunks of any size: %i bytes', async (size) => {
    const { agent } = agentAnswering(stream(wire, size));
    const turn = agent.chat().sendStream('go');
    expect((await collect(turn.stream)).map((part) => part.text)).toEqual([text, '!']);
    expect((await turn.response).text).toBe(`${text}!`);
  });

  it('may end its lines with CRLF, hold comments, and spread its data over lines', async () => {
    const events = `: hello\r\n\r\nevent: message\r\n${chunk('a').trim()}\r\n\r\ndata: {"result":\r\ndata: {"message": {"role":"model","content":[{"text":"a"}]}}}\r\n\r\n`;
    for (const size of [1, 1000]) {
      const { agent } = agentAnswering(stream(events, size));
      expect((await agent.chat().send('go')).text).toBe('a');
    }
  });

  it('may lack the blank line after its result', async () => {
    const { agent } = agentAnswering(stream(wire.trimEnd()));
    expect((await agent.chat().send('go')).text).toBe(`${text}!`);
  });

  it('that is cut off anywhere is UNAVAILABLE, at once', async () => {
    const bytes = encoder.encode(wire);
    const whole = encoder.encode(wire.trimEnd()).length;
    let cuts = 0;
    for (let length = 0; length < whole; length += 3) {
      const { agent } = agentAnswering(stream(bytes.slice(0, length)));
      const error = await refusal(agent.chat().send('go'));
      expect(error.status).toBe('UNAVAILABLE');
      cuts += 1;
    }
    expect(cuts).toBeGreaterThan(50);
  });

  it('whose connection breaks is UNAVAILABLE, after the chunks that arrived', async () => {
    const { agent } = agentAnswering(stream(chunk('a'), 1000, new TypeError('terminated')));
    const chat = agent.chat();
    const turn = chat.sendStream('go');
    const texts: string[] = [];
    const reading = (async () => {
      for await (const part of turn.stream) {
        texts.push(part.text);
      }
    })();
    expect((await refusal(reading)).status).toBe('UNAVAILABLE');
    expect(texts).toEqual(['a']);
    expect(chat.messages).toEqual([]);
  });

  it('that is not UTF-8 is DATA_LOSS', async () => {
    const bytes = encoder.encode(chunk('aXb'));
    bytes[bytes.indexOf(88)] = 0xff;
    const { agent } = agentAnswering(stream(bytes));
    expect((await refusal(agent.chat().send('go'))).status).toBe('DATA_LOSS');
  });

  it.each(['error', 'data'])('may report a failed turn in a field "%s"', async (field) => {
    const error = { status: 'NOT_FOUND', message: 'No such thing.', details: { what: 'x' } };
    const { agent } = agentAnswering(stream(`${chunk('a')}${field}: ${JSON.stringify({ error })}\n\n`));
    expect(await refusal(agent.chat().send('go'))).toMatchObject(error);
  });

  it('of something else is refused', async () => {
    for (const wrong of ['data: {"hello": 1}\n\n', 'data: {"result": 7}\n\n']) {
      const { agent } = agentAnswering(stream(wrong));
      expect((await refusal(agent.chat().send('go'))).status).toBe('UNKNOWN');
    }
  });

  it('is released when its result has arrived', async () => {
    let cancelled = false;
    const open = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(result(reply('a')))),
      cancel: () => {
        cancelled = true;
      },
    });
    const { agent } = agentAnswering(new Response(open));
    expect((await agent.chat().send('go')).text).toBe('a');
    expect(cancelled).toBe(true);
  });
});

describe('a stream that the server keeps', () => {
  const texts = ['é日本', '🧑‍🚀', '!'];
  const wire = texts.map(chunk).join('') + result(reply('all'));
  const bytes = encoder.encode(wire);
  const reconnect = { delayMs: 0 };
  const kept = (part: Uint8Array | string, error?: Error) => {
    const response = stream(part, undefined, error);
    response.headers.set('x-genkit-stream-id', 'S1');
    return response;
  };
  const broken = () => new TypeError('terminated');

  const read = async ({ agent }: ReturnType<typeof agentOf>) => {
    const turn = agent.chat().sendStream('go');
    const seen: string[] = [];
    for await (const { text } of turn.stream) {
      seen.push(text);
    }
    return { seen, text: (await turn.response).text };
  };

  it.each([
    ['breaks', broken()],
    ['ends too soon', undefined],
  ])('and that %s after any byte is asked for again by its id, and each chunk comes once', async (_, error) => {
    const whole = encoder.encode(wire.trimEnd()).length;
    for (let length = 0; length < whole; length++) {
      const made = agentOf({ reconnect }, kept(bytes.slice(0, length), error), kept(wire));
      expect(await read(made)).toEqual({ seen: texts, text: 'all' });
      expect(made.sent[1]).toMatchObject({ url: 'http://agents.test/a', body: {} });
      expect(made.sent[1]?.headers).toMatchObject({ 'x-genkit-stream-id': 'S1', accept: 'text/event-stream' });
    }
  });

  it('may break repeatedly, as long as it has new chunks', async () => {
    const made = agentOf(
      { reconnect: { delayMs: 0, attempts: 1 } },
      kept(chunk(texts[0]!), broken()),
      kept(texts.slice(0, 2).map(chunk).join(''), broken()),
      kept(texts.map(chunk).join(''), broken()),
      kept(wire),
    );
    expect(await read(made)).toEqual({ seen: texts, text: 'all' });
  });

  it('fails after the maximum of attempts, for any error', async () => {
    const made = agentOf(
      { reconnect: { delayMs: 0, attempts: 3 } },
      kept(chunk('a'), broken()),
      () => Promise.reject(broken()),
      new Response('<h1>Bad gateway</h1>', { status: 502 }),
      kept(chunk('a'), broken()),
    );
    expect((await refusal(read(made))).status).toBe('UNAVAILABLE');
    expect(made.sent).toHaveLength(4);
  });

  it.each([
    ['is gone', new Response(null, { status: 204 }), 'UNAVAILABLE'],
    ['is not for us any more', json(401, { error: { status: 'UNAUTHENTICATED', message: 'x' } }), 'UNAUTHENTICATED'],
    ['ended in an error', stream(`error: ${JSON.stringify({ error: { status: 'UNAVAILABLE' } })}`), 'UNAVAILABLE'],
  ])('is not asked for again when it %s', async (_, answer, status) => {
    const made = agentOf({ reconnect }, kept(chunk('a'), broken()), answer);
    expect((await refusal(read(made))).status).toBe(status);
    expect(made.sent).toHaveLength(2);
  });

  it('is not requested if reconnect is false, or the server gave no id', async () => {
    for (const made of [
      agentOf({ reconnect: false }, kept(chunk('a'), broken())),
      agentOf({ reconnect }, stream(chunk('a'), undefined, broken())),
      agentOf({ reconnect }, () => Promise.reject(broken())),
    ]) {
      expect((await refusal(read(made))).status).toBe('UNAVAILABLE');
      expect(made.sent).toHaveLength(1);
    }
  });

  it('is not requested after an abort, also in a pause: the server gets an abort of the turn', async () => {
    const made = agentOf(
      { reconnect: { delayMs: 3_600_000, maxDelayMs: 3_600_000 } },
      kept(chunk('a'), broken()),
      json(200, { result: { streamId: 'S1', status: 'pending' } }),
    );
    const turn = made.agent.chat().sendStream('go');
    await turn.stream[Symbol.asyncIterator]().next();
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    expect(made.sent[1]).toMatchObject({ url: 'http://agents.test/a/abort', body: { data: { streamId: 'S1' } } });
    expect(made.sent).toHaveLength(2);
  });

  it.each([{ attempts: -1 }, { delayMs: NaN }, { maxDelayMs: 2 ** 31 }])('refuses %j', (wrong) => {
    expect(() => agentOf({ reconnect: wrong })).toThrow(/reconnect\./);
  });
});

describe('an answer', () => {
  it('in JSON is the output', async () => {
    const { agent } = agentAnswering(json(200, { result: reply('a') }));
    expect((await agent.chat().send('go')).text).toBe('a');
  });

  it('to a failed turn has the whole output, with any HTTP status', async () => {
    const error = { status: 'UNAVAILABLE', message: 'No model.' };
    const output = { finishReason: 'failed', sessionId: 'S', snapshotId: 's1', error };
    const { agent } = agentAnswering(json(503, { result: output, error }));
    const chat = agent.chat();
    const thrown = await refusal(chat.send('go'));
    expect(thrown).toMatchObject({ ...error, snapshotId: 's1' });
    expect(thrown.response.raw).toEqual(output);
    expect(chat.sessionId).toBe('S');
  });

  it.each([
    [400, 'INVALID_ARGUMENT'],
    [401, 'UNAUTHENTICATED'],
    [403, 'PERMISSION_DENIED'],
    [404, 'NOT_FOUND'],
    [408, 'DEADLINE_EXCEEDED'],
    [409, 'ABORTED'],
    [413, 'INVALID_ARGUMENT'],
    [429, 'RESOURCE_EXHAUSTED'],
    [500, 'INTERNAL'],
    [502, 'UNAVAILABLE'],
    [503, 'UNAVAILABLE'],
    [504, 'DEADLINE_EXCEEDED'],
    [418, 'UNKNOWN'],
  ])('of HTTP %i without an error in it is %s', async (httpStatus, status) => {
    const { agent } = agentAnswering(new Response('<h1>Oh</h1>', { status: httpStatus }));
    expect(await refusal(agent.chat().send('go'))).toMatchObject({ status, details: { httpStatus } });
  });

  it('reports the error in its body rather than its HTTP status, enveloped or not', async () => {
    const error = { status: 'FAILED_PRECONDITION', message: 'Not now.', details: { why: 1 } };
    const { agent } = agentAnswering(
      json(400, { error }),
      json(500, error),
      json(400, { status: 'ODD ONE', message: 'x' }),
    );
    const chat = agent.chat();
    expect(await refusal(chat.send('1'))).toMatchObject(error);
    expect(await refusal(chat.send('2'))).toMatchObject(error);
    expect(await refusal(chat.send('3'))).toMatchObject({ status: 'INVALID_ARGUMENT', message: 'x' });
  });

  it('of a page that is not an agent is refused', async () => {
    const page = () => new Response('<html></html>', { headers: { 'content-type': 'text/html' } });
    const { agent } = agentAnswering(page(), page(), new Response(null, { status: 204 }));
    expect((await refusal(agent.chat().send('go'))).message).toMatch(/URL/);
    expect((await refusal(agent.getSnapshot('s1'))).message).toMatch(/URL/);
    expect((await refusal(agent.chat().send('go'))).status).toBe('NOT_FOUND');
  });
});

describe('getSnapshot', () => {
  it('of a missing snapshot is undefined, as in process', async () => {
    const none = { status: 'NOT_FOUND', message: 'No snapshot.' };
    const { agent } = agentAnswering(json(404, { error: none }), json(404, none));
    expect(await agent.getSnapshot('s1')).toBeUndefined();
    expect(await agent.getSnapshot({ sessionId: 'S' })).toBeUndefined();
  });

  it('at an address without an agent is an error', async () => {
    const noRoute = { status: 'NOT_FOUND', message: 'Nothing here.', details: { reason: 'NO_SUCH_PATH' } };
    const { agent } = agentAnswering(new Response('Cannot POST', { status: 404 }), json(404, { error: noRoute }));
    expect((await refusal(agent.getSnapshot('s1'))).status).toBe('NOT_FOUND');
    expect((await refusal(agent.getSnapshot('s1'))).status).toBe('NOT_FOUND');
  });

  it('and abort report the error', async () => {
    const denied = { status: 'PERMISSION_DENIED', message: 'Not yours.' };
    const { agent } = agentAnswering(json(403, { error: denied }), json(403, { error: denied }));
    expect((await refusal(agent.getSnapshot('s1'))).status).toBe('PERMISSION_DENIED');
    expect((await refusal(agent.abort('s1'))).status).toBe('PERMISSION_DENIED');
  });
});

describe('a request', () => {
  it('goes to the agent’s URL and those of its companions', async () => {
    const { agent, sent } = agentAnswering(
      stream(result(reply('a'))),
      json(200, { result: { snapshotId: 's1' } }),
      json(200, { result: { snapshotId: 's1', status: 'pending' } }),
    );
    await agent.chat({ sessionId: 'S' }).send('go');
    await agent.getSnapshot('s1');
    expect(await agent.abort('s1')).toBe('pending');
    expect(sent.map(({ url, body }) => [url, body])).toEqual([
      [
        'http://agents.test/a',
        { data: { message: { role: 'user', content: [{ text: 'go' }] } }, init: { sessionId: 'S' } },
      ],
      ['http://agents.test/a/getSnapshot', { data: { snapshotId: 's1' } }],
      ['http://agents.test/a/abort', { data: { snapshotId: 's1' } }],
    ]);
    expect(sent[0]?.headers).toMatchObject({ accept: 'text/event-stream', 'content-type': 'application/json' });
  });

  it('ends when it is stopped, or times out, while it waits for its headers', async () => {
    const headers = () => new Promise<Record<string, string>>(() => {});
    const remote = remoteAgent({ url: 'http://127.0.0.1:9/a', headers });
    const turn = remote.chat().sendStream('go');
    await turn.stop();
    expect((await turn.response).finishReason).toBe('aborted');
    const limited = remote.chat().sendStream('go', { abortSignal: AbortSignal.timeout(1) });
    await expect(limited.response).rejects.toMatchObject({ status: 'DEADLINE_EXCEEDED' });
  });

  it('requests its headers each time', async () => {
    let token = 0;
    const tokens: unknown[] = [];
    const agent = remoteAgent({
      url: '/a',
      getSnapshotUrl: '/read',
      abortUrl: '/stop',
      headers: async () => ({ authorization: `Bearer ${++token}` }),
      fetch: (async (url: string, init: RequestInit) => {
        tokens.push([url, (init.headers as Record<string, string>).authorization]);
        return json(200, { result: { snapshotId: 's1' } });
      }) as typeof fetch,
    });
    await agent.chat().send('go');
    await agent.getSnapshot('s1');
    await agent.abort('s1');
    expect(tokens).toEqual([
      ['/a', 'Bearer 1'],
      ['/read', 'Bearer 2'],
      ['/stop', 'Bearer 3'],
    ]);
  });

  it('whose headers cannot be created fails the turn', async () => {
    const headers = () => Promise.reject(new Error('no token'));
    const error = await refusal(remoteAgent({ url: '/a', headers }).chat().send('go'));
    expect(error).toMatchObject({ status: 'INTERNAL', message: 'no token' });
  });

  it('without a server is UNAVAILABLE', async () => {
    const { url, stop } = await listen(() => {});
    await stop();
    const agent = remoteAgent({ url });
    expect((await refusal(agent.chat().send('go'))).status).toBe('UNAVAILABLE');
    expect((await refusal(agent.getSnapshot('s1'))).status).toBe('UNAVAILABLE');
  });

  it('is closed when its turn is aborted', async () => {
    const arrived = gate();
    const closed = gate();
    const { url, stop } = await listen((request, response) => {
      response.on('close', closed.open);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk('a'));
      request.resume();
      arrived.open();
    });
    const turn = remoteAgent({ url }).chat().sendStream('go');
    await arrived.opened;
    await turn.stream[Symbol.asyncIterator]().next();
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    await closed.opened;
    await stop();
  });
});
