/** Authentication, paths and methods. */
import { request as httpRequest } from 'node:http';
import { GenkitError, UserFacingError, type ActionContext } from 'genkit';
import { InMemoryStreamManager } from 'genkit/beta';
import { apiKey, type ContextProvider } from 'genkit/context';
import { describe, expect, it, vi } from 'vitest';
import { ourServers } from '../support/http.ts';
import { STREAM_ID } from '../support/kept-turns.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, post, read, StubServer, UUID, type Answer } from '../support/stub-server.ts';

const errorLog = catchErrorLog();

describe.each(ourServers)('HTTP: $name', ({ serve }) => {
  const server = new StubServer(serve);

  describe('identity', () => {
    it('a caller without the right key is refused', async () => {
      // Genkit's provider writes to the console.
      vi.spyOn(console, 'error').mockImplementation(() => {});
      const url = await server.start({ context: apiKey('right') });
      const bare = await post(url, { data: hello });
      expect(bare.status).toBe(401);
      expect(bare.json.error).toEqual({ status: 'UNAUTHENTICATED', message: 'Unauthenticated' });
      expect((await post(url, { data: hello }, { authorization: 'wrong' })).status).toBe(403);
      expect((await post(`${url}/getSnapshot`, { data: { snapshotId: 's' } })).status).toBe(401);
      expect((await post(`${url}/abort`, { data: { snapshotId: 's' } })).status).toBe(401);
      expect(server.agent.runs).toEqual([]);
      expect((await post(url, { data: hello }, { authorization: 'right' })).status).toBe(200);
      expect(server.agent.runs[0]?.options.context).toEqual({ auth: { apiKey: 'right' } });
    });

    it('the provider gets the head of the request before the body is read', async () => {
      const asked: unknown[] = [];
      const context: ContextProvider = (request) => {
        asked.push({ ...request, headers: request.headers['x-token'] });
        throw new UserFacingError('PERMISSION_DENIED', 'Not you.', { why: 'closed' });
      };
      const answer = await post(await server.start({ context }), '{"data":', { 'X-Token': 'T' });
      expect(asked).toEqual([{ method: 'POST', headers: 'T' }]);
      expect(answer.status).toBe(403);
      expect(answer.json.error).toEqual({
        status: 'PERMISSION_DENIED',
        message: 'Not you.',
        details: { why: 'closed' },
      });
    });

    it('the answer to a refused caller does not wait for the body', async () => {
      const url = await server.start({ context: () => Promise.reject(new UserFacingError('UNAUTHENTICATED', 'No.')) });
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': 4_000_000 };
        const request = httpRequest(url, { method: 'POST', headers });
        request.on('response', (response) => {
          resolve(response.statusCode);
          request.destroy();
        });
        request.on('error', reject);
        request.flushHeaders();
      });
      expect(status).toBe(401);
    });

    it('a provider that reads the input is an error without contextReadsInput', async () => {
      const context: ContextProvider = ({ input }) => ({ auth: { uid: (input as { as?: string }).as } });
      const refused = await post(await server.start({ context }), { data: { ...hello, as: 'ada' } });
      expect(refused.status).toBe(500);
      expect(refused.text).not.toContain('contextReadsInput');
      expect(errorLog()).toContain('set "contextReadsInput: true"');
      expect(server.agent.runs).toEqual([]);
      await server.stop();
      const url = await server.start({ context, contextReadsInput: true });
      expect((await post(url, { data: { ...hello, as: 'ada' } })).status).toBe(200);
      expect(server.agent.runs[0]?.options.context).toEqual({ auth: { uid: 'ada' } });
      expect((await post(url, '{"data":')).status).toBe(400);
    });

    class Caller {
      uid = 'ada';
    }

    it.each([
      [undefined, 'undefined'],
      [null, 'null'],
      [false, 'false'],
      [true, 'true'],
      ['hunter2', 'a string'],
      [7, 'a number'],
      [() => ({}), 'a function'],
      [['hunter2'], 'an array'],
      [new Caller(), 'an object that is not plain'],
      [new Map([['uid', 'hunter2']]), 'an object that is not plain'],
    ])(
      'context or nothing: a provider that answers %o is 500 on every route, and the log says why',
      async (answer, name) => {
        const context = (async () => answer) as unknown as ContextProvider;
        const streamManager = new InMemoryStreamManager();
        const url = await server.start({ context, streamManager });
        const streamId = globalThis.crypto.randomUUID();
        const asked = await Promise.all([
          post(url, { data: hello }),
          post(url, { data: hello }, { accept: 'text/event-stream' }),
          post(url, {}, { accept: 'text/event-stream', [STREAM_ID]: streamId }),
          post(`${url}/getSnapshot`, { data: { snapshotId: 's' } }),
          post(`${url}/abort`, { data: { snapshotId: 's' } }),
          post(`${url}/abort`, { data: { streamId } }),
        ]);
        for (const { status, json } of asked) {
          expect(status).toBe(500);
          expect(json.error).toMatchObject({ status: 'INTERNAL', message: 'Something went wrong inside the agent.' });
          expect(errorLog()).toContain(json.error.details.errorId);
        }
        expect(errorLog()).toContain(`The option "context" returned ${name}, so the request was refused.`);
        expect(errorLog()).toContain('to refuse a request, throw');
        expect(errorLog()).not.toContain('hunter2');
        expect(server.agent.runs).toEqual([]);
      },
    );

    it('a provider that never answers is 504 within timeoutMs', async () => {
      const url = await server.start({ context: () => new Promise(() => {}), timeoutMs: 20 });
      const answer = await post(url, { data: hello });
      expect(answer.status).toBe(504);
      expect(answer.json.error.status).toBe('DEADLINE_EXCEEDED');
      expect(server.agent.runs).toEqual([]);
    });

    it('a provider that throws reveals nothing', async () => {
      const context = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432 password=hunter2'));
      const answer = await post(await server.start({ context }), { data: hello });
      expect(answer.status).toBe(500);
      expect(answer.text).not.toMatch(/10\.0\.0\.7|hunter2/);
      expect(errorLog()).toContain(answer.json.error.details.errorId);
      expect(errorLog()).toContain('hunter2');
    });

    it('another caller’s snapshot is not found', async () => {
      const mine = 'f0b0c4f4-0000-4000-8000-000000000001';
      const getSnapshot = (input: unknown, { context }: { context: ActionContext }) => {
        const { snapshotId } = input as { snapshotId: string };
        if (snapshotId === mine && context.auth?.uid === 'ada') {
          return { snapshotId, createdAt: '', state: {} };
        }
        throw new GenkitError({ status: 'NOT_FOUND', message: `Snapshot '${snapshotId}' not found for agent 'a'.` });
      };
      const context = ({ headers }: { headers: Record<string, string> }) => ({ auth: { uid: headers.authorization } });
      const url = `${await server.start(
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
      const url = await server.start();
      const answer = await post(`${url}/nothing`, { data: hello });
      expect(answer.status).toBe(404);
      expect(server.agent.runs).toEqual([]);
    });

    it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is 405 with the allowed methods', async (method) => {
      const answer = await read(await fetch(await server.start(), { method }));
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('POST');
      expect(answer.json.error.status).toBe('UNIMPLEMENTED');
    });
  });
});
