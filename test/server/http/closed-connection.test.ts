import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { genkit, InMemoryStreamManager, type SessionStore } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { agentRouter } from 'genkitx-agents/server';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred, recordingStore } from '../../agent/support/helpers.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { serveByHandler, serveByRouter } from '../support/http.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, streamed } from '../support/stub-server.ts';

const servers = { agentRouter: serveByRouter, agentHandler: serveByHandler };
const answers = { 'a stream': 'text/event-stream', JSON: 'application/json' };
const cases = Object.entries(servers).flatMap(([server, serve]) =>
  Object.entries(answers).map(([answer, accept]) => ({ server, serve, answer, accept })),
);

describe('abort: a connection that closes', () => {
  test.each(cases)(
    'stops the model call by its signal, and nothing is committed ($server, asked for $answer)',
    async ({ serve, accept }) => {
      const ai = genkit({});
      const { store, calls } = recordingStore(new InMemorySessionStore());
      const called = deferred();
      const stopped = deferred();
      // Only its signal ends the call; if it is ignored, the test times out.
      const { name } = scriptedModel(ai, {
        otherwise: ({ abortSignal }) => {
          called.resolve();
          return new Promise((resolve) => {
            const stop = () => {
              stopped.resolve();
              resolve('too late');
            };
            abortSignal.addEventListener('abort', stop, { once: true });
          });
        },
      });
      const running = await serve([defineAgent(ai, { name: 'teller', model: name, store })], { anonymous: true });
      onTestFinished(running.stop);
      const request = httpRequest(`${running.url}/teller`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept },
      });
      request.on('error', () => {});
      request.end(JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'Tell me.' }] } } }));
      await called.promise;
      request.destroy();
      await stopped.promise;
      await new Promise((resolve) => setImmediate(resolve));
      expect(calls.filter(({ method }) => method === 'saveSnapshot')).toEqual([]);
    },
  );
});

test('leaves no timer behind that keeps the process alive, whether its stream is kept or not', async () => {
  const READ_TIMEOUT_MS = 54_321;
  const setting = vi.spyOn(globalThis, 'setTimeout');
  const clearing = vi.spyOn(globalThis, 'clearTimeout');
  onTestFinished(() => void vi.restoreAllMocks());
  for (const kept of [{}, { streamManager: new InMemoryStreamManager() }]) {
    const closed = deferred();
    const ended = deferred();
    const agent = stubAgent('a', async (_, { onChunk }) => {
      onChunk?.('one');
      await closed.promise;
      onChunk?.('two');
      setImmediate(ended.resolve);
      return done;
    });
    const router = agentRouter([agent], { anonymous: true, readTimeoutMs: READ_TIMEOUT_MS, ...kept });
    const server = createServer((request, response) => {
      response.once('close', closed.resolve);
      router(request, response);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const headers = { 'content-type': 'application/json', ...streamed };
    const request = httpRequest({ port, path: '/a', method: 'POST', headers }, (response) => {
      response.once('data', () => request.destroy()).on('error', () => {});
    });
    request.on('error', () => {}).end(JSON.stringify({ data: hello }));
    await ended.promise;
    await new Promise((resolve) => setImmediate(resolve));
  }
  const timers = setting.mock.results.filter((_, i) => setting.mock.calls[i]![1] === READ_TIMEOUT_MS);
  const left = timers.filter(({ value }) => !clearing.mock.calls.some(([cleared]) => cleared === value));
  expect(left).toEqual([]);
});

test('a turn that is being saved at its time limit is answered, because it is stored', async () => {
  const ai = genkit({});
  const inner = new InMemorySessionStore();
  let signal: AbortSignal | undefined;
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: async (snapshotId, mutator, options) => {
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }));
      return inner.saveSnapshot(snapshotId, mutator, options);
    },
  };
  const { name } = scriptedModel(ai, {
    otherwise: ({ abortSignal }) => {
      signal = abortSignal;
      return 'Once upon a time.';
    },
  });
  const agent = defineAgent(ai, { name: 'teller', model: name, store });
  const running = await serveByRouter([agent], { anonymous: true, timeoutMs: 2000 });
  onTestFinished(running.stop);
  const answer = await fetch(`${running.url}/teller`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'Tell me.' }] } } }),
  });
  const { result } = (await answer.json()) as { result: { finishReason: string; snapshotId: string } };
  expect(answer.status).toBe(200);
  expect(result.finishReason).toBe('stop');
  expect((await inner.getSnapshot({ snapshotId: result.snapshotId }))?.status).toBe('completed');
});
