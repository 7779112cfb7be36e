/** `runFlow` and `streamFlow` of our client beside Genkit's own, against flows that Genkit's `expressHandler` serves. */
import { expressHandler } from '@genkit-ai/express';
import express from 'express';
import { genkit, InMemoryStreamManager, z } from 'genkit/beta';
import * as genkits from 'genkit/beta/client';
import * as ours from 'genkitx-agents/client';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { collect } from '../../support/collect.ts';

let server: Server;
let base: string;
const received: unknown[] = [];

beforeAll(async () => {
  const ai = genkit({});
  const count = ai.defineFlow(
    { name: 'count', inputSchema: z.number(), streamSchema: z.number().nullable(), outputSchema: z.string() },
    async (upTo, { sendChunk }) => {
      if (upTo < 0) throw new Error('Count upwards.');
      for (let n = 1; n <= upTo; n++) sendChunk(n === 2 ? null : n);
      return `counted to ${upTo}`;
    },
  );
  const nothing = ai.defineFlow('nothing', async (input: unknown) => {
    received.push(input);
  });
  const app = express();
  app.use(express.json());
  app.post('/count', expressHandler(count, { streamManager: new InMemoryStreamManager() }));
  app.post('/nothing', expressHandler(nothing));
  app.post('/gone', (_request, response) => void response.status(204).end());
  server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

describe.each([
  { name: 'ours', client: ours },
  { name: 'Genkit’s', client: genkits },
])('$name', ({ client }) => {
  it('runs a flow', async () => {
    expect(await client.runFlow({ url: `${base}/count`, input: 3 })).toBe('counted to 3');
  });

  it('runs a flow that returns undefined, with the given headers', async () => {
    expect(await client.runFlow({ url: `${base}/nothing`, input: { a: 1 }, headers: { 'x-a': 'b' } })).toBeUndefined();
    expect(received.at(-1)).toEqual({ a: 1 });
  });

  it('streams a flow, null among its chunks', async () => {
    const { stream, output } = client.streamFlow<string, number | null>({ url: `${base}/count`, input: 3 });
    expect(await collect(stream)).toEqual([1, null, 3]);
    expect(await output).toBe('counted to 3');
  });

  it('reads a stream that the server kept', async () => {
    const url = `${base}/count`;
    const first = client.streamFlow({ url, input: 2 });
    await first.output;
    const streamId = (await first.streamId)!;
    const again = client.streamFlow({ url, streamId });
    expect(await collect(again.stream)).toEqual([1, null]);
    expect(await again.output).toBe('counted to 2');
  });
});

describe('an error', () => {
  const url = () => `${base}/count`;

  it('is an AgentError', async () => {
    await expect(ours.runFlow({ url: url(), input: -1 })).rejects.toMatchObject({ status: 'INTERNAL' });
    await expect(ours.runFlow({ url: `${base}/none` })).rejects.toMatchObject({ status: 'NOT_FOUND' });
    const abortSignal = AbortSignal.abort();
    await expect(ours.runFlow({ url: url(), abortSignal })).rejects.toMatchObject({ status: 'CANCELLED' });
    await expect(ours.runFlow({ url: 'http://127.0.0.1:9/' })).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });

  it('is thrown by the output and by the stream', async () => {
    const failed = ours.streamFlow({ url: url(), input: -1 });
    await expect(failed.output).rejects.toMatchObject({ status: 'INTERNAL' });
    await expect(collect(failed.stream)).rejects.toMatchObject({ status: 'INTERNAL' });
    const aborted = ours.streamFlow({ url: url(), input: 1, abortSignal: AbortSignal.abort() });
    await expect(collect(aborted.stream)).rejects.toMatchObject({ status: 'CANCELLED' });
    await expect(aborted.output).rejects.toMatchObject({ status: 'CANCELLED' });
  });

  it('is NOT_FOUND of a stream that the server does not have', async () => {
    const unknown = ours.streamFlow({ url: `${base}/gone`, streamId: 'unknown' });
    await expect(unknown.output).rejects.toMatchObject({ status: 'NOT_FOUND' });
    expect(await unknown.streamId).toBeNull();
  });
});

it('has types that can replace Genkit’s', () => {
  expectTypeOf<typeof ours.runFlow<string>>().toExtend<typeof genkits.runFlow<string>>();
  expectTypeOf<typeof ours.streamFlow<string, number>>().toExtend<typeof genkits.streamFlow<string, number>>();
});
