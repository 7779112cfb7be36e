/** `agentRouter` among other things in an Express app, and without Express. */
import type { RequestListener } from 'node:http';
import express, { type ErrorRequestHandler } from 'express';
import { agentRouter } from 'genkitx-agents/server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { listen, type Running } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent } from '../support/stub-agent.ts';

catchErrorLog();

const hello = { message: { role: 'user', content: [{ text: 'hello' }] } };
const done = { finishReason: 'stop' };

let running: Running | undefined;

afterEach(async () => {
  await running?.stop();
  running = undefined;
});

async function start(app: RequestListener): Promise<string> {
  running = await listen(app);
  return running.url;
}

const post = (url: string, body: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });

describe('agentRouter', () => {
  it('accepts a body that express.json() has parsed', async () => {
    const agent = stubAgent('a', () => done);
    const app = express();
    app.use(express.json());
    app.use('/api', agentRouter([agent], { anonymous: true }));
    const url = await start(app as RequestListener);
    const answer = await post(`${url}/api/a?stream=true`, JSON.stringify({ data: hello, init: { sessionId: 'S' } }));
    expect(await answer.text()).toBe(`data: ${JSON.stringify({ result: done })}\n\n`);
    expect(agent.runs[0]).toMatchObject({ input: hello, options: { init: { sessionId: 'S' } } });
    expect((await post(`${url}/api/a`, '[]')).status).toBe(400);
    expect((await post(`${url}/api/a`, JSON.stringify({ data: { x: deep(200) } }))).status).toBe(400);
  });

  it.each([
    ['text', express.text({ type: '*/*' })],
    ['bytes', express.raw({ type: '*/*' })],
  ])('takes a body that was read as %s', async (_, parser) => {
    const agent = stubAgent('a', () => done);
    const app = express();
    app.use(parser);
    app.use(agentRouter([agent], { anonymous: true }));
    const url = await start(app as RequestListener);
    expect((await post(`${url}/a`, JSON.stringify({ data: hello }))).status).toBe(200);
    expect(agent.runs[0]?.input).toEqual(hello);
    expect((await post(`${url}/a`, '{"data"')).status).toBe(400);
  });

  it('passes on requests of other paths, and no others', async () => {
    const app = express();
    app.use('/api', agentRouter([stubAgent('a', () => done)], { anonymous: true }));
    app.get('/api/health', (_, response) => {
      response.send('fine');
    });
    app.use('/api', (_, response) => {
      response.status(410).send('after');
    });
    const url = await start(app as RequestListener);
    expect(await (await fetch(`${url}/api/health`)).text()).toBe('fine');
    expect((await post(`${url}/api/b`, '{}')).status).toBe(410);
    expect((await post(`${url}/api/a/other`, '{}')).status).toBe(410);
    expect((await fetch(`${url}/api/a`)).status).toBe(405);
  });

  it('keeps its errors from the error handlers of the app', async () => {
    const app = express();
    const onError = vi.fn<ErrorRequestHandler>((_error, _request, response, _next) => {
      response.sendStatus(599);
    });
    app.use(agentRouter([stubAgent('a', () => done)], { context: () => Promise.reject(new Error('no')) }));
    app.use(onError);
    const url = await start(app as RequestListener);
    expect((await post(`${url}/a`, JSON.stringify({ data: hello }))).status).toBe(500);
    expect(onError).not.toHaveBeenCalled();
  });

  it('is the listener of a node:http server as it is, and answers 404 in JSON there', async () => {
    const router = agentRouter([stubAgent('a', () => done)], { anonymous: true, basePath: '/api' });
    const url = await start((request, response) => router(request, response));
    expect((await post(`${url}/api/a`, JSON.stringify({ data: hello }))).status).toBe(200);
    const answer = await post(`${url}/other`, '{}');
    expect(answer.status).toBe(404);
    expect(await answer.json()).toEqual({
      error: { status: 'NOT_FOUND', message: 'There is no agent at this path.', details: { reason: 'NO_SUCH_PATH' } },
    });
  });

  it('needs no express: the entry point loads without it', async () => {
    vi.resetModules();
    vi.doMock('express', () => {
      throw new Error('express is not installed');
    });
    const entry = (await import('genkitx-agents/server')) as { agentRouter: typeof agentRouter };
    expect(entry.agentRouter([stubAgent('a', () => done)], { anonymous: true })).toBeTypeOf('function');
    vi.doUnmock('express');
  });

  it('writes no faster than the client reads', async () => {
    const piece = 'x'.repeat(65_536);
    const agent = stubAgent('a', (_, { onChunk }) => {
      for (let n = 0; n < 200; n++) {
        onChunk?.({ piece });
      }
      return done;
    });
    const router = agentRouter([agent], { anonymous: true });
    let pressedOn = 0;
    const url = await start((request, response) => {
      const write = response.write.bind(response) as (chunk: unknown) => boolean;
      let full = false;
      response.on('drain', () => {
        full = false;
      });
      response.write = (chunk: unknown) => {
        pressedOn += Number(full);
        full = !write(chunk);
        return !full;
      };
      router(request, response);
    });
    const answer = await post(`${url}/a?stream=true`, JSON.stringify({ data: hello }));
    expect((await answer.text()).length).toBeGreaterThan(200 * 65_536);
    expect(pressedOn).toBe(0);
  });
});

function deep(depth: number): unknown {
  return depth === 0 ? 0 : [deep(depth - 1)];
}
