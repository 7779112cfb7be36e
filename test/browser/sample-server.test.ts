import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { FileSessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ollamaModel } from '../../samples/support/models/choose-model.ts';
import { findOllamaModel } from '../../samples/support/models/ollama.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import type { SnapshotList } from '../../samples/support/server/api-types.ts';
import { brittleModel, serve } from './support/sample-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** What stands in for an Ollama: its answers by path, called with the parsed body. */
type Answers = Record<string, (body: { model?: string; messages?: { role: string }[]; stream?: boolean }) => unknown>;

async function fakeOllama(answers: Answers): Promise<string> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await json(request).catch(() => ({}))) as object;
    const found = await answers[request.url ?? '']?.(body);
    response.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  closing.push(() => server.close().closeAllConnections());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listSessions(folder: string) {
  const store = new FileSessionStore(join(folder, 'sessions'));
  const { items } = await store.listSessions({});
  await store.close();
  return items;
}

describe('stopping the server', () => {
  it('stops a turn that goes on for too long, and keeps it', async () => {
    const folder = temporaryFolder();
    let asked = () => {};
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const never = () => new Promise(() => asked());
    const serverAddress = await fakeOllama({ '/api/chat': never });
    const server = await serve(folder, await ollamaModel({ name: 'slow', serverAddress }), { graceMs: 50 });

    const reply = remoteAgent({ url: `${server.url}/api/support` })
      .chat()
      .send('Hello');
    await isAsked;
    await server.stop();
    expect((await reply).finishReason).toBe('aborted');
    expect(await listSessions(folder)).toMatchObject([{ status: 'aborted' }]);
  });
});

describe('a turn that fails', () => {
  it('is in the list, and the list does not tell what broke', async () => {
    const folder = temporaryFolder();
    const server = await serve(folder, brittleModel());
    closing.push(() => server.stop());
    const chat = remoteAgent({ url: `${server.url}/api/support` }).chat({ sessionId: 's' });
    await chat.send('Hello');
    await expect(chat.send('Break')).rejects.toThrow();
    await chat.send('Again');

    const answer = await (await fetch(`${server.url}/api/snapshots?sessionId=s`)).text();
    expect(answer).not.toContain('secret');
    const { items } = JSON.parse(answer) as SnapshotList;
    expect(items.map(({ status, preview }) => [status, preview.asked])).toEqual([
      ['completed', 'Hello'],
      ['failed', 'Break'],
      ['completed', 'Again'],
    ]);
  });
});

describe('what the page is told first', () => {
  it('has of the model what is shown, and nothing of its plugins', async () => {
    const folder = temporaryFolder();
    const server = await serve(folder, brittleModel());
    closing.push(() => server.stop());
    const events = await fetch(`${server.url}/api/events`);
    const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
    const { value } = await reader.read();
    await reader.cancel();
    expect(JSON.parse(value!.replace(/^data: /, ''))).toMatchObject({
      type: 'hello',
      model: { kind: 'ollama', label: 'a made-up model' },
    });
    expect(value).not.toContain('plugins');
  });
});

describe("a caller's mistake", () => {
  it.each([
    ['GET', '/api/sessions?cursor=zzz'],
    ['GET', '/api/sessions?cursor=a&cursor=b'],
    ['GET', '/api/snapshots'],
    ['GET', '/api/snapshots?sessionId='],
    ['GET', '/api/snapshots?sessionId=%20'],
    ['GET', `/api/snapshots?sessionId=${'x'.repeat(2_000)}`],
    ['POST', '/api/sessions'],
    ['PATCH', '/api/sessions?sessionId=none'],
    ['DELETE', '/api/sessions'],
    ['DELETE', '/api/sessions?sessionId=%20'],
  ])('is told to the caller, not to the log: %s %s', async (method, path) => {
    const folder = temporaryFolder();
    const log = vi.spyOn(console, 'error').mockReturnValue();
    closing.push(() => log.mockRestore());
    const server = await serve(folder, brittleModel());
    closing.push(() => server.stop());
    const response = await fetch(server.url + path, { method });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ status: 'INVALID_ARGUMENT', message: expect.stringMatching(/\.$/) });
    expect(log).not.toHaveBeenCalled();
  });
});

describe('Ollama', () => {
  it('is used with the first installed model that can use tools', async () => {
    const capabilities: Record<string, string[]> = {
      embedder: ['embedding'],
      old: ['completion'],
      good: ['completion', 'tools'],
    };
    const serverAddress = await fakeOllama({
      '/api/tags': () => ({ models: Object.keys(capabilities).map((name) => ({ name })) }),
      '/api/show': ({ model = '' }) => ({ capabilities: capabilities[model] }),
    });
    expect(await findOllamaModel(serverAddress)).toEqual({ name: 'good', serverAddress });
  });

  it('is not used when none can, when something else answers, or when nothing does', async () => {
    const none = await fakeOllama({ '/api/tags': () => ({ models: [] }) });
    const other = await fakeOllama({ '/api/tags': () => 'hello' });
    expect(await findOllamaModel(none)).toBeUndefined();
    expect(await findOllamaModel(other)).toBeUndefined();
    expect(await findOllamaModel('http://127.0.0.1:1')).toBeUndefined();
  });

  it('drives the tools, and its reply reaches a streaming client', async () => {
    const folder = temporaryFolder();
    const call = { function: { name: 'findOrder', arguments: { orderId: '1042' } } };
    const serverAddress = await fakeOllama({
      '/api/chat': ({ messages }) =>
        messages?.at(-1)?.role === 'tool'
          ? { message: { role: 'assistant', content: 'It is on its way.' } }
          : { message: { role: 'assistant', content: '', tool_calls: [call] } },
    });
    const server = await serve(folder, await ollamaModel({ name: 'good', serverAddress }));
    closing.push(() => server.stop());

    const turn = remoteAgent<SupportState>({ url: `${server.url}/api/support` })
      .chat()
      .sendStream('Where is 1042?');
    let streamed = '';
    for await (const { text } of turn.stream) streamed += text;
    const reply = await turn.response;
    expect(streamed).toBe('It is on its way.');
    expect(reply.state).toMatchObject({ orderId: '1042', customer: { name: 'Ana Silva' } });
  });
});
