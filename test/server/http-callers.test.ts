/** Whom the server lets in, and where. */
import { GenkitError, UserFacingError, type ActionContext } from 'genkit';
import { apiKey, type ContextProvider } from 'genkit/context';
import { describe, expect, it, vi } from 'vitest';
import { ourServers } from './support/http.ts';
import { catchErrorLog } from './support/log.ts';
import { stubAgent } from './support/stub-agent.ts';
import { done, hello, post, read, StubServer, UUID, type Answer } from './support/stub-server.ts';

const errorLog = catchErrorLog();

describe.each(ourServers)('H1 HTTP: $name', ({ serve }) => {
  const server = new StubServer(serve);

  describe('identity', () => {
    it('nobody is let in without the key, and none but the right one', async () => {
      // Genkit's provider says what it does on the console.
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

    it('the provider is asked with the request and comes before any look at the data', async () => {
      const asked: unknown[] = [];
      const context: ContextProvider = ({ method, headers, input }) => {
        asked.push({ method, token: headers['x-token'], input });
        throw new UserFacingError('PERMISSION_DENIED', 'Not you.', { why: 'closed' });
      };
      const answer = await post(await server.start({ context }), { data: 7 }, { 'X-Token': 'T' });
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
      const answer = await post(await server.start({ context }), { data: hello });
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

    it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is 405 and told what is allowed', async (method) => {
      const answer = await read(await fetch(await server.start(), { method }));
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('POST');
      expect(answer.json.error.status).toBe('UNIMPLEMENTED');
    });
  });
});
