/**
 * Streams and answers that a client must handle. Each shows a fault of Genkit's 1.42 client, with the same bytes, that ours does not have.
 */
import { remoteAgent as remoteAgentOfGenkit } from 'genkit/beta/client';
import { AgentError, remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeAgents, makers } from '../support/agents.ts';
import { serveByRouter } from '../support/http.ts';
import { catchErrorLog } from '../support/log.ts';

catchErrorLog();

const encoder = new TextEncoder();
const url = 'http://agents.test/a';
const frame = (text: string) => `data: ${JSON.stringify({ message: { modelChunk: { content: [{ text }] } } })}\n\n`;
const end = `data: ${JSON.stringify({ result: { finishReason: 'stop', message: { role: 'model', content: [] } } })}\n\n`;

/** Answers every request with these parts of a body, and then reports the end on every read. */
function answerWith(...pieces: Uint8Array[]): { asked: () => number } {
  let asked = 0;
  const read = async () => {
    const value = pieces[asked];
    asked += 1;
    if (asked > 1000) {
      throw new Error('It asks for ever.');
    }
    return { done: value === undefined, value };
  };
  const body = { getReader: () => ({ read, cancel: async () => {} }) };
  vi.stubGlobal('fetch', async () => ({ status: 200, ok: true, headers: new Headers(), body }));
  return { asked: () => asked };
}

async function textsOf(remote: typeof remoteAgentOfGenkit): Promise<string[]> {
  const turn = remote({ url }).chat().sendStream('go');
  turn.response.catch(() => {});
  const texts: string[] = [];
  for await (const { text } of turn.stream) {
    texts.push(text);
  }
  return texts;
}

describe('the client', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each([
    ['a message without content', { message: { role: 'model' } }],
    ['a message with a content of no parts', { message: { role: 'model', content: [null, 5] } }],
    ['a message that is a text', { message: 'hello' }],
    ['artifacts that are no list', { artifacts: 5 }],
    ['an artifact that is nothing', { artifacts: [null] }],
    ['a state with messages that are none', { state: { messages: [5] } }],
    ['a state with messages that are no list', { state: { messages: 5 } }],
    ['a state that is a text', { state: 'hello' }],
  ])('ends a turn whose result has %s as the answer of no agent', async (_, members) => {
    answerWith(
      encoder.encode(`${frame('a')}data: ${JSON.stringify({ result: { ...members, finishReason: 'stop' } })}\n\n`),
    );
    const chat = remoteAgent({ url }).chat();
    const error = await chat.send('go').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'AgentError', status: 'UNKNOWN', message: expect.stringContaining('agent') });
    expect((error as AgentError).response.text).toBe('');
    expect(chat.messages).toEqual([]);
  });

  it('treats null as a missing member', async () => {
    const result = { message: null, artifacts: null, state: null, finishReason: 'stop' };
    answerWith(encoder.encode(`data: ${JSON.stringify({ result })}\n\n`));
    expect(await remoteAgent({ url }).chat().send('go')).toMatchObject({ text: '', artifacts: [] });
  });

  it('ends with a stream that was cut off (Genkit’s reads without end)', async () => {
    const ours = answerWith(encoder.encode(frame('a').slice(0, 20)));
    await expect(textsOf(remoteAgent)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect(ours.asked()).toBe(2);
    const genkits = answerWith(encoder.encode(frame('a').slice(0, 20)));
    await expect(textsOf(remoteAgentOfGenkit)).rejects.toThrow('It asks for ever.');
    expect(genkits.asked()).toBeGreaterThan(1000);
  });

  it('skips a null message (Genkit’s fails on it)', async () => {
    answerWith(encoder.encode(`data: {"message": null}\n\n${frame('a')}data: {"message": 7}\n\n${end}`));
    expect(await textsOf(remoteAgent)).toEqual(['a']);
    answerWith(encoder.encode(`data: {"message": null}\n\n${frame('a')}${end}`));
    await expect(textsOf(remoteAgentOfGenkit)).rejects.toThrow();
  });

  it('joins characters that were divided between parts (Genkit’s breaks them)', async () => {
    const bytes = encoder.encode(frame('日本') + end);
    const cut = encoder.encode(frame('日本').split('本')[0]).length + 1;
    answerWith(bytes.slice(0, cut), bytes.slice(cut));
    expect(await textsOf(remoteAgent)).toEqual(['日本']);
    answerWith(bytes.slice(0, cut), bytes.slice(cut));
    expect(await textsOf(remoteAgentOfGenkit)).toEqual([expect.stringContaining('\uFFFD')]);
  });

  it('returns undefined for a snapshot that does not exist, like an agent in process (Genkit’s throws)', async () => {
    const { agents } = makeAgents(makers[1]!);
    const running = await serveByRouter(agents, { anonymous: true });
    const at = { url: `${running.url}/chatty` };
    expect(await agents.chatty!.getSnapshot('nowhere')).toBeUndefined();
    expect(await remoteAgent(at).getSnapshot('nowhere')).toBeUndefined();
    await expect(remoteAgentOfGenkit(at).getSnapshot('nowhere')).rejects.toThrow('NOT_FOUND');
    const error: unknown = await remoteAgent({ url: `${running.url}/unknown` })
      .getSnapshot('nowhere')
      .catch((thrown: unknown) => thrown);
    expect(AgentError.isInstance(error) && error.status).toBe('NOT_FOUND');
    await running.stop();
  });
});
