/** No server internals are in an answer. */
import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { makeAgents, makers } from '../support/agents.ts';
import { ourServers } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, post, StubServer, streamed, UUID } from '../support/stub-server.ts';

const errorLog = catchErrorLog();

describe.each(ourServers)('HTTP: $name', ({ serve }) => {
  const server = new StubServer(serve);

  describe('server internals', () => {
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

    it.each(secrets)('are in no answer: thrown, as a failed turn, and in a snapshot: %j', async (secret) => {
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
        const url = await server.start(undefined, stubAgent('a', behave));
        for (const headers of [{}, streamed]) {
          const answer = await post(url, { data: hello }, headers);
          expect(answer.status).toBeGreaterThanOrEqual(400);
          expect(answer.text).not.toMatch(leaks);
          expect(answer.json.error.details.errorId).toMatch(UUID);
          expect(errorLog()).toContain(answer.json.error.details.errorId);
        }
        await server.stop();
      }
      const snapshot = { snapshotId: 's', createdAt: '', status: 'failed', error: record };
      const url = await server.start(
        undefined,
        stubAgent('a', () => done, { getSnapshot: () => snapshot }),
      );
      const answer = await post(`${url}/getSnapshot`, { data: { snapshotId: 's' } });
      expect(answer.status).toBe(200);
      expect(answer.text).not.toMatch(leaks);
      expect(answer.json.result.status).toBe('failed');
    });

    it('are in no answer after a stream has begun', async () => {
      const url = await server.start(
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
      const url = await server.start(
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
      const url = await server.start(
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
});

describe.each(makers)('HTTP: with $name', (maker) => {
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
    '$name: a missing item is 404, with the message that was written for callers',
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
