import { request as httpRequest } from 'node:http';
import { genkit, type SessionStore } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deferred, recordingStore } from '../agent/helpers.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { serveByHandler, serveByRouter } from './support/http.ts';

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
      // Only its signal ends the call: one that is not heeded leaves the test waiting.
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

test('a turn that is being saved when its time is up is answered, since it is there', async () => {
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
