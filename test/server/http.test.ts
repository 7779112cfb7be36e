/** The outside of the server: what it lets in, what it turns away, and that nothing of its inside is in an answer. */
import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { GenkitError, UserFacingError, type ActionContext } from 'genkit';
import { InMemoryStreamManager } from 'genkit/beta';
import { apiKey, type ContextProvider } from 'genkit/context';
import { agentHandler, type AgentServerOptions } from 'genkitx-agents/server';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addressTo } from '../../src/errors.ts';
import { gate, makeAgents, makers } from './support/agents.ts';
import { ourServers, type Running } from './support/http.ts';
import { catchErrorLog } from './support/log.ts';
import { stubAgent, type StubAgent } from './support/stub-agent.ts';

const errorLog = catchErrorLog();
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/;
const hello = { message: { role: 'user', content: [{ text: 'hello' }] } };
const done = { finishReason: 'stop', message: { role: 'model', content: [{ text: 'hi' }] } };

interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // eslint-disable-next-line typescript/no-explicit-any -- the tests reach into answers of any form
  json: any;
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

async function post(url: string, body: BodyInit | object, headers: Record<string, string> = {}): Promise<Answer> {
  const raw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: raw ? (body as BodyInit) : JSON.stringify(body),
    duplex: 'half',
  };
  return read(await fetch(url, init));
}

const streamed = { accept: 'text/event-stream' };

describe.each(ourServers)('H1 HTTP: $name', ({ serve }) => {
  let running: Running | undefined;
  let agent: StubAgent;

  const start = async (options: AgentServerOptions = { anonymous: true }, served: StubAgent = agent) => {
    running = await serve({ a: served }, options);
    return `${running.url}/a`;
  };

  beforeEach(() => {
    agent = stubAgent('a', () => done);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await running?.stop();
    running = undefined;
  });

  describe('identity', () => {
    it('nobody is let in without the key, and none but the right one', async () => {
      // Genkit's provider says what it does on the console.
      vi.spyOn(console, 'error').mockImplementation(() => {});
      const url = await start({ context: apiKey('right') });
      const bare = await post(url, { data: hello });
      expect(bare.status).toBe(401);
      expect(bare.json.error).toEqual({ status: 'UNAUTHENTICATED', message: 'Unauthenticated' });
      expect((await post(url, { data: hello }, { authorization: 'wrong' })).status).toBe(403);
      expect((await post(`${url}/getSnapshot`, { data: { snapshotId: 's' } })).status).toBe(401);
      expect((await post(`${url}/abort`, { data: { snapshotId: 's' } })).status).toBe(401);
      expect(agent.runs).toEqual([]);
      expect((await post(url, { data: hello }, { authorization: 'right' })).status).toBe(200);
      expect(agent.runs[0]?.options.context).toEqual({ auth: { apiKey: 'right' } });
    });

    it('the provider is asked with the request and comes before any look at the data', async () => {
      const asked: unknown[] = [];
      const context: ContextProvider = ({ method, headers, input }) => {
        asked.push({ method, token: headers['x-token'], input });
        throw new UserFacingError('PERMISSION_DENIED', 'Not you.', { why: 'closed' });
      };
      const answer = await post(await start({ context }), { data: 7 }, { 'X-Token': 'T' });
      expect(asked).toEqual([{ method: 'POST', token: 'T', input: 7 }]);
      expect(answer.status).toBe(403);
      expect(answer.json.error).toEqual({
        status: 'PERMISSION_DENIED',
        message: 'Not you.',
        details: { why: 'closed' },
      });
    });

    it('a provider that breaks tells nothing of itself', async () => {
      const context = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432 password=hunter2'));
      const answer = await post(await start({ context }), { data: hello });
      expect(answer.status).toBe(500);
      expect(answer.text).not.toMatch(/10\.0\.0\.7|hunter2/);
      expect(errorLog()).toContain(answer.json.error.details.errorId);
      expect(errorLog()).toContain('hunter2');
    });

    it('another’s snapshot looks like none', async () => {
      const mine = 'f0b0c4f4-0000-4000-8000-000000000001';
      const getSnapshot = (input: unknown, { context }: { context: ActionContext }) => {
        const { snapshotId } = input as { snapshotId: string };
        if (snapshotId === mine && context.auth?.uid === 'ada') {
          return { snapshotId, createdAt: '', state: {} };
        }
        throw new GenkitError({ status: 'NOT_FOUND', message: `Snapshot '${snapshotId}' not found for agent 'a'.` });
      };
      const context = ({ headers }: { headers: Record<string, string> }) => ({ auth: { uid: headers.authorization } });
      const url = `${await start(
        { context },
        stubAgent('a', () => done, { getSnapshot }),
      )}/getSnapshot`;
      expect((await post(url, { data: { snapshotId: mine } }, { authorization: 'ada' })).status).toBe(200);
      const another = await post(url, { data: { snapshotId: mine } }, { authorization: 'eve' });
      const none = await post(url, { data: { snapshotId: mine.replace('f0', 'f1') } }, { authorization: 'eve' });
      expect(another.status).toBe(404);
      const withoutErrorId = ({ text }: Answer) => text.replaceAll('f0b0', 'f1b0').replace(UUID, '');
      expect(withoutErrorId(another)).toBe(withoutErrorId(none));
      expect([...another.headers].filter(([name]) => name !== 'date')).toEqual(
        [...none.headers].filter(([name]) => name !== 'date'),
      );
    });
  });

  describe('paths and methods', () => {
    it('an unknown path is 404', async () => {
      const url = await start();
      const answer = await post(`${url}/nothing`, { data: hello });
      expect(answer.status).toBe(404);
      expect(agent.runs).toEqual([]);
    });

    it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is 405 and told what is allowed', async (method) => {
      const answer = await read(await fetch(await start(), { method }));
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('POST');
      expect(answer.json.error.status).toBe('UNIMPLEMENTED');
    });
  });

  describe('bodies', () => {
    const nested = (depth: number) => `{"data":${'['.repeat(depth)}${']'.repeat(depth)}}`;

    it.each([
      ['no type', hello, { 'content-type': '' }, 415],
      ['a form', 'data=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
      ['text', '{"data":{}}', { 'content-type': 'text/plain' }, 415],
      ['another charset', '{"data":{}}', { 'content-type': 'application/json; charset=latin1' }, 415],
      ['compression', gzipSync('{"data":{}}'), { 'content-encoding': 'gzip' }, 415],
      ['nothing', '', {}, 400],
      ['half a document', '{"data":', {}, 400],
      ['two documents', '{}{}', {}, 400],
      ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), {}, 400],
      ['a list', '[]', {}, 400],
      ['a word', '"data"', {}, 400],
      ['null', 'null', {}, 400],
      ['a bomb of brackets', nested(100_000), {}, 400],
      ['unclosed brackets', '['.repeat(100_000), {}, 400],
    ])('of %s are refused', async (_, body, headers, status) => {
      const answer = await post(await start(), body, headers);
      expect(answer.status).toBe(status);
      expect(answer.json.error.status).toBe('INVALID_ARGUMENT');
      expect(agent.runs).toEqual([]);
    });

    it.each([
      'application/json',
      'application/json; charset=UTF-8',
      'application/json;charset="utf-8"',
      'application/ld+json',
    ])('of type %s are read', async (type) => {
      expect((await post(await start(), { data: hello }, { 'content-type': type })).status).toBe(200);
    });

    it('may nest as deep as allowed, brackets in strings not counted', async () => {
      const url = await start({ anonymous: true, maxDepth: 6 });
      const withText = (text: string) => ({ data: { message: { role: 'user', content: [{ text }] } } });
      expect((await post(url, withText(`${'['.repeat(99)}"\\"{{{`))).status).toBe(200);
      expect((await post(url, { data: { ...hello, x: [[[[]]]] } })).status).toBe(200);
      const deeper = await post(url, { data: { ...hello, x: [[[[[]]]]] } });
      expect(deeper.status).toBe(400);
      expect(deeper.json.error.message).toContain('6 deep');
    });

    it('that are too long are refused, announced or not, and the answer arrives', async () => {
      const url = await start({ anonymous: true, maxBodyBytes: 1000 });
      const long = JSON.stringify({ data: { ...hello, x: 'y'.repeat(3_000_000) } });
      for (let round = 0; round < 5; round++) {
        expect((await post(url, long)).status).toBe(413);
        const pieces = long.match(/.{1,65536}/g)!.map((piece) => new TextEncoder().encode(piece));
        const unannounced = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            const next = pieces.shift();
            return next ? controller.enqueue(next) : controller.close();
          },
        });
        expect((await post(url, unannounced)).status).toBe(413);
      }
      expect((await post(url, { data: hello })).status).toBe(200);
      expect(agent.runs).toHaveLength(1);
    });

    it('that come too slowly are refused with 408', async () => {
      const url = await start({ anonymous: true, bodyTimeoutMs: 30 });
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const request = httpRequest(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
        request.on('response', (response) => {
          resolve(response.statusCode);
          request.destroy();
        });
        request.on('error', reject);
        request.write('{"data":');
      });
      expect(status).toBe(408);
    });

    it('that break off harm nobody', async () => {
      const url = await start();
      await new Promise<void>((resolve) => {
        const request = httpRequest(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': 100 },
        });
        request.on('error', () => resolve());
        request.write('{"data":', () => request.destroy());
      });
      expect((await post(url, { data: hello })).status).toBe(200);
    });
  });

  describe('values', () => {
    it.each([
      [{}, 'data must be object'],
      [{ data: null }, 'data must be object'],
      [{ data: 'hello' }, 'data must be object'],
      [{ data: { message: 'hello' } }, 'data.message must be object'],
      [
        { data: { message: { role: 'pirate', content: [] } } },
        'data.message.role must be equal to one of the allowed values',
      ],
      [{ data: { message: { role: 'user', content: 'hello' } } }, 'data.message.content must be array'],
      [{ data: { message: { role: 'user', content: [{ text: 7 }] } } }, 'data.message.content.0.text must be string'],
      [{ data: { resume: { respond: [{}] } } }, "data.resume.respond.0 must have required property 'toolResponse'"],
      [{ data: { detach: 'yes' } }, 'data.detach must be boolean'],
      [{ data: hello, init: null }, 'init must be object'],
      [{ data: hello, init: [] }, 'init must be object'],
      [{ data: hello, init: { snapshotId: 5 } }, 'init.snapshotId must be string'],
      [{ data: hello, init: { state: { messages: {} } } }, 'init.state.messages must be array'],
      [{ data: hello, init: { sessionId: ' ' } }, 'A sessionId must not be blank'],
      [{ data: hello, init: { snapshotId: 'x'.repeat(2000) } }, 'at most 1024'],
    ])('%j are refused by name', async (body, message) => {
      const answer = await post(await start(), body);
      expect(answer.status).toBe(400);
      expect(answer.json.error.status).toBe('INVALID_ARGUMENT');
      expect(answer.json.error.message).toContain(message);
      expect(agent.runs).toEqual([]);
    });

    it.each([
      ['getSnapshot', {}, 'one of the two'],
      ['getSnapshot', { snapshotId: 's', sessionId: 'S' }, 'one of the two'],
      ['getSnapshot', { snapshotId: '' }, 'must not be blank'],
      ['abort', {}, "data must have required property 'snapshotId'"],
      ['abort', { snapshotId: '' }, 'must not be blank'],
    ])('%s of %j is refused', async (companion, data, message) => {
      const answer = await post(`${await start()}/${companion}`, { data });
      expect(answer.status).toBe(400);
      expect(answer.json.error.message).toContain(message);
    });

    it('an input of nothing goes on with what init names', async () => {
      for (const init of [{ snapshotId: 's' }, { sessionId: 'S' }, { state: {} }]) {
        expect((await post(await start(), { data: {}, init })).status).toBe(200);
      }
      expect(agent.runs.map((run) => run.input)).toEqual([{}, {}, {}]);
    });

    it('an input of nothing that names nothing is refused', async () => {
      const answer = await post(await start(), { data: {} });
      expect(answer.status).toBe(400);
      expect(answer.json.error.message).toBe('data must have a message, a resume or detach, or init name what is to go on.');
      expect(agent.runs).toEqual([]);
    });

    it('a slash at the end of the path does not matter', async () => {
      expect((await post(`${await start()}/`, { data: hello })).status).toBe(200);
    });

    it('a missing init is an empty one', async () => {
      await post(await start(), { data: hello });
      expect(agent.runs[0]).toMatchObject({ input: hello, options: { init: {}, context: {} } });
    });

    it('arrive as they were sent, unknown members and reserved-looking keys too', async () => {
      const url = await start();
      await post(
        url,
        `{"data":{"extra":1,"message":{"role":"user","content":[{"data":{"__proto__":{"x":1},"constructor":2}}]}}}`,
      );
      const sent = JSON.stringify(agent.runs[0]?.input);
      expect(sent).toBe(
        '{"extra":1,"message":{"role":"user","content":[{"data":{"__proto__":{"x":1},"constructor":2}}]}}',
      );
      expect(({} as { x?: number }).x).toBeUndefined();
    });
  });

  describe('answers', () => {
    it('are never cached, sniffed, or anything but JSON and event streams', async () => {
      const url = await start();
      const answers = [
        await post(url, { data: hello }),
        await post(url, { data: hello }, streamed),
        await post(url, '{'),
        await read(await fetch(url)),
      ];
      for (const { headers } of answers) {
        expect(headers.get('cache-control')).toMatch(/^no-store\b/);
        expect(headers.get('x-content-type-options')).toBe('nosniff');
        expect(headers.get('content-type')).toMatch(/^(application\/json|text\/event-stream); charset=utf-8$/);
      }
    });

    it('are one document, or frames in Genkit’s format when asked for by header or query', async () => {
      const chatty = stubAgent('a', (_, { onChunk }) => {
        onChunk?.({ modelChunk: { content: [{ text: 'h' }] } });
        return done;
      });
      const url = await start(undefined, chatty);
      const plain = await post(url, { data: hello });
      expect(plain.json).toEqual({ result: done });
      expect(plain.headers.get('x-genkit-trace-id')).toBe('trace');
      const frames = `data: {"message":{"modelChunk":{"content":[{"text":"h"}]}}}\n\ndata: ${JSON.stringify({ result: done })}\n\n`;
      expect((await post(url, { data: hello }, streamed)).text).toBe(frames);
      expect((await post(`${url}?stream=true`, { data: hello })).text).toBe(frames);
      expect((await post(`${url}?stream=false`, { data: hello })).json).toEqual({ result: done });
    });

    it.each([
      ['NOT_FOUND', 404],
      ['INVALID_ARGUMENT', 400],
      ['FAILED_PRECONDITION', 400],
      ['ABORTED', 409],
      ['RESOURCE_EXHAUSTED', 429],
      ['UNAVAILABLE', 503],
      ['INTERNAL', 500],
      ['DATA_LOSS', 500],
    ] as const)('to a turn that failed with %s have HTTP %i, its output and its error', async (status, httpStatus) => {
      const output = {
        finishReason: 'failed',
        sessionId: 'S',
        snapshotId: 's0',
        error: { status, message: `${status}: So.` },
      };
      const url = await start(
        undefined,
        stubAgent('a', () => output),
      );
      for (const headers of [{}, streamed]) {
        const { status: http, json } = await post(url, { data: hello }, headers);
        expect(http).toBe(httpStatus);
        expect(json.error.status).toBe(status);
        expect(json.result).toEqual({ ...output, error: json.error });
      }
    });

    it('that have begun as a stream stay 200, and end with the failed output or the error', async () => {
      const output = {
        finishReason: 'failed',
        error: addressTo('caller', { status: 'NOT_FOUND', message: 'No tool.' }),
      };
      const failing = stubAgent('a', (_, { onChunk }) => {
        onChunk?.({});
        return output;
      });
      const first = await post(await start(undefined, failing), { data: hello }, streamed);
      expect(first.status).toBe(200);
      expect(first.text).toBe(`data: {"message":{}}\n\ndata: ${JSON.stringify({ result: output })}\n\n`);
      await running?.stop();
      const throwing = stubAgent('a', (_, { onChunk }) => {
        onChunk?.({});
        throw new UserFacingError('ABORTED', 'Late.');
      });
      const second = await post(await start(undefined, throwing), { data: hello }, streamed);
      expect(second.status).toBe(200);
      expect(second.text).toBe('data: {"message":{}}\n\nerror: {"error":{"status":"ABORTED","message":"Late."}}\n\n');
    });
  });

  describe('what goes on inside', () => {
    const secrets = [
      "ENOENT: no such file or directory, open '/srv/app/.env'",
      'Error fetching from https://models.internal/v1?key=AIzaSyD-0123456789abcdefghijklmnopqrs: 403',
      'request had invalid credentials: Bearer ya29.a0AfH6SNotASecret',
      'token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is expired',
      'sk-proj-abcdefghijklmnop rejected',
      'boom\n    at handler (file:///srv/app/dist/index.js:10:5)',
      'C:\\Users\\svc\\secrets.txt is locked',
      'api_key: 12345 unknown',
    ];
    const leaks = /srv|models\.internal|AIza|ya29|eyJ|sk-proj|secrets\.txt|12345|at handler/;

    it.each(secrets)('is not in an answer: thrown, as a failed turn, and in a snapshot: %j', async (secret) => {
      const thrown = [
        new Error(secret),
        new GenkitError({ status: 'INTERNAL', message: secret }),
        new GenkitError({ status: 'INVALID_ARGUMENT', message: secret, detail: { path: secret } }),
        Object.assign(new Error(secret), { status: 'NOT_FOUND', code: 403 }),
      ];
      const record = { status: 'PERMISSION_DENIED', message: secret, details: { secret } };
      const behaviours = [
        ...thrown.map((error) => () => {
          throw error;
        }),
        () => ({ finishReason: 'failed', error: record }),
      ];
      for (const behave of behaviours) {
        const url = await start(undefined, stubAgent('a', behave));
        for (const headers of [{}, streamed]) {
          const answer = await post(url, { data: hello }, headers);
          expect(answer.status).toBeGreaterThanOrEqual(400);
          expect(answer.text).not.toMatch(leaks);
          expect(answer.json.error.details.errorId).toMatch(UUID);
          expect(errorLog()).toContain(answer.json.error.details.errorId);
        }
        await running?.stop();
      }
      const snapshot = { snapshotId: 's', createdAt: '', status: 'failed', error: record };
      const url = await start(
        undefined,
        stubAgent('a', () => done, { getSnapshot: () => snapshot }),
      );
      const answer = await post(`${url}/getSnapshot`, { data: { snapshotId: 's' } });
      expect(answer.status).toBe(200);
      expect(answer.text).not.toMatch(leaks);
      expect(answer.json.result.status).toBe('failed');
    });

    it('stays inside after a stream has begun', async () => {
      const url = await start(
        undefined,
        stubAgent('a', (_, { onChunk }) => {
          onChunk?.({});
          throw new Error(secrets[0]);
        }),
      );
      const answer = await post(url, { data: hello }, streamed);
      expect(answer.status).toBe(200);
      expect(answer.text).not.toMatch(leaks);
      expect(answer.text).toMatch(UUID);
    });

    it.each([
      ['undefined', undefined],
      ['null', null],
      ['a string', 'secret plan'],
      ['a number', 7],
      ['a symbol', Symbol('s')],
      ['a function', () => 'secret plan'],
      ['an empty object', {}],
      ['an array', ['secret plan']],
      ['an error without a message', new Error('')],
      ['an error with a numeric status', Object.assign(new Error('secret plan'), { status: 404 })],
      ['an aggregate', new AggregateError([new Error('secret plan')], 'secret plan')],
      ['a frozen error', Object.freeze(new Error('secret plan'))],
      [
        'an object that throws when read',
        {
          get message() {
            throw new Error('secret plan');
          },
        },
      ],
      [
        'an error with a cyclic detail',
        Object.assign(new Error('x'), { status: 'ABORTED', originalMessage: 'x', detail: globalThis }),
      ],
    ])('may throw %s', async (_, thrown) => {
      const url = await start(
        undefined,
        stubAgent('a', () => {
          throw thrown;
        }),
      );
      for (const headers of [{}, streamed]) {
        const answer = await post(url, { data: hello }, headers);
        expect(answer.json.error.status).toMatch(/^(INTERNAL|ABORTED)$/);
        expect(answer.text).not.toContain('secret plan');
      }
    });

    it('that can not be written as JSON is an error of the server', async () => {
      const url = await start(
        undefined,
        stubAgent('a', () => ({ message: 10n })),
      );
      for (const headers of [{}, streamed]) {
        const answer = await post(url, { data: hello }, headers);
        expect(answer.text).toContain('INTERNAL');
        expect(answer.text).toMatch(UUID);
      }
    });
  });

  describe('the client', () => {
    it.each(['before a stream', 'in a stream', 'without one'])('that goes away %s aborts the run', async (when) => {
      const started = gate();
      const aborted = gate();
      const waiting = stubAgent('a', async (_, { abortSignal, onChunk }) => {
        abortSignal.addEventListener('abort', aborted.open);
        if (when === 'in a stream') {
          onChunk?.({});
        }
        started.open();
        await aborted.opened;
        throw new Error('aborted');
      });
      const url = await start(undefined, waiting);
      const controller = new AbortController();
      const gone = fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(when === 'without one' ? {} : streamed) },
        body: JSON.stringify({ data: hello }),
        signal: controller.signal,
      })
        .then((response) => response.text())
        .catch(() => 'gone');
      await started.opened;
      controller.abort();
      await aborted.opened;
      expect(await gone).toBe('gone');
    });

    it('that leaves after its answer aborts nothing: a detached run goes on', async () => {
      const detached = stubAgent('a', () => ({ finishReason: 'detached', snapshotId: 's' }));
      const url = await start(undefined, detached);
      await post(url, { data: { ...hello, detach: true } });
      await post(url, { data: { ...hello, detach: true } }, streamed);
      await running?.stop();
      expect(detached.runs.map(({ options }) => options.abortSignal.aborted)).toEqual([false, false]);
    });

    it('is told when the agent takes too long, and the run is aborted', async () => {
      const stuck = stubAgent('a', () => new Promise(() => {}));
      const url = await start({ anonymous: true, timeoutMs: 20 }, stuck);
      for (const headers of [{}, streamed]) {
        const answer = await post(url, { data: hello }, headers);
        expect(answer.status).toBe(504);
        expect(answer.json.error.status).toBe('DEADLINE_EXCEEDED');
      }
      expect(stuck.runs.map(({ options }) => options.abortSignal.aborted)).toEqual([true, true]);
    });

    it('gets all of a long stream', async () => {
      const piece = 'x'.repeat(65_536);
      const long = stubAgent('a', async (_, { onChunk }) => {
        for (let n = 0; n < 300; n++) {
          onChunk?.({ n, piece });
        }
        return done;
      });
      const response = await fetch(await start(undefined, long), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...streamed },
        body: JSON.stringify({ data: hello }),
      });
      const frames = (await response.text()).split('\n\n');
      expect(frames.slice(0, 300).map((frame) => JSON.parse(frame.slice(6)).message.n)).toEqual([...Array(300).keys()]);
      expect(frames[300]).toContain('"result"');
    });
  });
});

describe.each(makers)('H1 HTTP with $name', (maker) => {
  it.each(ourServers)(
    '$name: a crashing turn shows nothing of the inside, nor does its snapshot',
    async ({ serve }) => {
      const { agents } = makeAgents(maker);
      const running = await serve(agents, { anonymous: true });
      for (const name of ['chatty', 'counter', 'clientCounter']) {
        const url = `${running.url}/${name}`;
        const data = {
          message: { role: 'user', content: [{ text: 'crash key sk-live-0123456789 in /srv/app/main.ts' }] },
        };
        for (const headers of [{}, streamed]) {
          const answer = await post(
            url,
            { data, init: name === 'clientCounter' ? {} : { sessionId: `s-${name}` } },
            headers,
          );
          expect(answer.text.replaceAll(JSON.stringify(data.message).slice(1, -1), '')).not.toMatch(/sk-live|\/srv/);
          expect(answer.text).toMatch(UUID);
        }
        if (name !== 'clientCounter') {
          const { json } = await post(`${url}/getSnapshot`, { data: { sessionId: `s-${name}` } });
          expect(json.result.status).toBe('failed');
          expect(JSON.stringify(json.result.error)).not.toMatch(/sk-live|\/srv/);
        }
      }
      await running.stop();
    },
  );

  it.each(ourServers)(
    '$name: what is not there is 404, in words of whoever wrote them for callers',
    async ({ serve }) => {
      const { agents } = makeAgents(maker);
      const running = await serve(agents, { anonymous: true });
      const turn = await post(`${running.url}/chatty`, { data: hello, init: { snapshotId: 'nowhere' } });
      expect(turn.status).toBe(404);
      const words = maker.name === 'our agents' ? 'nowhere' : 'does not exist';
      expect(turn.json.result.error.message).toContain(words);
      const read = await post(`${running.url}/chatty/getSnapshot`, { data: { snapshotId: 'nowhere' } });
      expect(read.status).toBe(404);
      expect(read.json.error.message).toContain(words);
      await running.stop();
    },
  );
});

describe('agentHandler by itself', () => {
  const request = ({
    headers,
    ...init
  }: Omit<RequestInit, 'headers'> & { headers?: Record<string, string>; duplex?: 'half' }) =>
    new Request('http://agents.test/a', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ data: hello }),
      ...init,
    });

  it('aborts the run when the answer is cancelled, be there no signal', async () => {
    const agent = stubAgent('a', (_, { onChunk, abortSignal }) => {
      onChunk?.({});
      return new Promise((_resolve, reject) => {
        abortSignal.addEventListener('abort', () => reject(new Error('aborted')));
      });
    });
    const response = await agentHandler([agent], { anonymous: true })(request({ headers: streamed }));
    await response.body?.cancel();
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('does not run what nobody waits for any more', async () => {
    const agent = stubAgent('a', () => done);
    const handler = agentHandler([agent], { anonymous: true });
    const controller = new AbortController();
    const gone = request({ signal: controller.signal });
    const answering = handler(gone);
    controller.abort();
    expect((await answering).status).toBe(499);
    expect(agent.runs).toEqual([]);
  });

  it('reads nothing of a body that says it is too long', async () => {
    let pulls = 0;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulls += 1;
          controller.enqueue(new Uint8Array(1000));
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { 'content-length': '5000000' };
    const handler = agentHandler([stubAgent('a', () => done)], { anonymous: true });
    expect((await handler(request({ headers, body: endless, duplex: 'half' }))).status).toBe(413);
    expect(pulls).toBe(0);
  });
});

describe('building a server', () => {
  const agent = stubAgent('a', () => done);
  const build =
    (options: object, agents: unknown = [agent]) =>
    () =>
      agentHandler(agents as [], options);

  it.each([
    ['nobody says who may ask', build({}), /context.*anonymous: true/s],
    ['anonymous is off', build({ anonymous: false }), /context/],
    ['both are given', build({ anonymous: true, context: () => ({}) }), /not both/],
    ['the provider is none', build({ context: 'key' }), /must be a function/],
    ['an option is unknown', build({ anonymous: true, maxBodySize: 5 }), /Unknown option "maxBodySize".*maxBodyBytes/],
    ['a limit is none', build({ anonymous: true, maxBodyBytes: 0 }), /maxBodyBytes.*whole number above 0/],
    ['a delay overflows', build({ anonymous: true, timeoutMs: 2 ** 31 }), /at most 2147483647 ms/],
    ['a body delay overflows', build({ anonymous: true, bodyTimeoutMs: 2 ** 31 }), /at most 2147483647 ms/],
    ['a limit is a text', build({ anonymous: true, timeoutMs: '5' }), /timeoutMs/],
    ['a stream manager is none', build({ anonymous: true, streamManager: {} }), /streamManager.*InMemoryStreamManager/],
    ['a grace time has no manager', build({ anonymous: true, reconnectWithinMs: 5 }), /need a "streamManager"/],
    [
      'a grace time is none',
      build({ anonymous: true, streamManager: new InMemoryStreamManager(), reconnectWithinMs: -1 }),
      /reconnectWithinMs.*whole number/,
    ],
    [
      'an owner is none',
      build({ anonymous: true, streamManager: new InMemoryStreamManager(), streamOwner: 'uid' }),
      /streamOwner.*function/,
    ],
    ['the base path is none', build({ anonymous: true, basePath: 'api' }), /basePath/],
    ['there is no agent', build({ anonymous: true }, []), /no agent/],
    ['an agent is none', build({ anonymous: true }, { support: {} }), /"support" is not an agent/],
    [
      'an agent called registry is none',
      build({ anonymous: true }, { registry: undefined }),
      /"registry" is not an agent/,
    ],
    ['an agent is missing', build({ anonymous: true }, [undefined]), /not an agent/],
    ['two agents have one name', build({ anonymous: true }, [agent, agent]), /Two agents.*\/a\b/],
  ])('is an error that says so when %s', (_, make, message) => {
    expect(make).toThrow(message);
  });

  it('serves a list by the agents’ own names, a record by its own', async () => {
    const request = (path: string) =>
      new Request(`http://agents.test${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ data: hello }),
      });
    const list = agentHandler([agent], { anonymous: true });
    const record = agentHandler({ 'help desk': agent }, { anonymous: true, basePath: '/v1/' });
    expect((await list(request('/a'))).status).toBe(200);
    expect((await record(request('/v1/help%20desk'))).status).toBe(200);
    expect((await record(request('/v1/a'))).status).toBe(404);
    expect((await record(request('/v1/%'))).status).toBe(404);
  });
});
