/** The server's answers, and turns whose clients disconnect. */
import { UserFacingError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { addressTo } from '../../../src/errors.ts';
import { gate } from '../support/agents.ts';
import { ourServers } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, post, read, StubServer, streamed } from '../support/stub-server.ts';

catchErrorLog();

describe.each(ourServers)('HTTP: $name', ({ serve }) => {
  const server = new StubServer(serve);

  describe('answers', () => {
    it('are never cached, sniffed, or anything but JSON and event streams', async () => {
      const url = await server.start();
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
      const url = await server.start(undefined, chatty);
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
      const url = await server.start(
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
      const first = await post(await server.start(undefined, failing), { data: hello }, streamed);
      expect(first.status).toBe(200);
      expect(first.text).toBe(`data: {"message":{}}\n\ndata: ${JSON.stringify({ result: output })}\n\n`);
      await server.stop();
      const throwing = stubAgent('a', (_, { onChunk }) => {
        onChunk?.({});
        throw new UserFacingError('ABORTED', 'Late.');
      });
      const second = await post(await server.start(undefined, throwing), { data: hello }, streamed);
      expect(second.status).toBe(200);
      expect(second.text).toBe('data: {"message":{}}\n\nerror: {"error":{"status":"ABORTED","message":"Late."}}\n\n');
    });
  });

  describe('the client', () => {
    it.each(['before a stream', 'in a stream', 'without one'])('that disconnects %s aborts the run', async (when) => {
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
      const url = await server.start(undefined, waiting);
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

    it('that leaves after its answer aborts nothing: a detached run continues', async () => {
      const detached = stubAgent('a', () => ({ finishReason: 'detached', snapshotId: 's' }));
      const url = await server.start(undefined, detached);
      await post(url, { data: { ...hello, detach: true } });
      await post(url, { data: { ...hello, detach: true } }, streamed);
      await server.stop();
      expect(detached.runs.map(({ options }) => options.abortSignal.aborted)).toEqual([false, false]);
    });

    it('gets an error when the agent takes too long, and the run is aborted', async () => {
      const stuck = stubAgent('a', () => new Promise(() => {}));
      const url = await server.start({ anonymous: true, timeoutMs: 20 }, stuck);
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
        for (let n = 0; n < 200; n++) {
          onChunk?.({ n, piece });
        }
        return done;
      });
      const response = await fetch(await server.start(undefined, long), {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...streamed },
        body: JSON.stringify({ data: hello }),
      });
      const frames = (await response.text()).split('\n\n');
      expect(frames.slice(0, 200).map((frame) => JSON.parse(frame.slice(6)).message.n)).toEqual([...Array(200).keys()]);
      expect(frames[200]).toContain('"result"');
    });
  });
});
