import { genkit, InMemoryStreamManager } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { AgentError, remoteAgent } from 'genkitx-agents/client';
import { agentRouter } from 'genkitx-agents/server';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../agent/support/helpers.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { ourServers } from '../support/http.ts';

/** An agent whose model streams two words, then waits until it is stopped. */
function halting() {
  const ai = genkit({});
  const store = new InMemorySessionStore();
  const halted = deferred();
  const { name } = scriptedModel(ai, {
    otherwise: ({ abortSignal, sendChunk }) => {
      sendChunk({ content: [{ text: 'Once upon' }] });
      return new Promise((_, reject) => {
        abortSignal.addEventListener('abort', () => reject(abortSignal.reason as Error), { once: true });
        halted.resolve();
      });
    },
  });
  return { store, halted, agent: defineAgent(ai, { name: 'teller', model: name, store, onAbort: 'keep' }) };
}

describe.each(ourServers)('a server that is shut down ($name)', ({ serve }) => {
  test.each([
    { kind: 'JSON', accept: 'application/json', more: {} },
    { kind: 'a stream', accept: 'text/event-stream', more: {} },
    {
      kind: 'a stream that is kept',
      accept: 'text/event-stream',
      more: { streamManager: new InMemoryStreamManager() },
    },
  ])('stops the turns that run, and answers what became of them: $kind', async ({ accept, more }) => {
    const { agent, store, halted } = halting();
    const closing = new AbortController();
    const running = await serve([agent], { anonymous: true, stopSignal: closing.signal, ...more });
    onTestFinished(running.stop);

    const answering = fetch(`${running.url}/teller`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept },
      body: JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'Tell me.' }] } } }),
    });
    await halted.promise;
    closing.abort();
    const text = await (await answering).text();
    const { result } = JSON.parse(text.slice(text.lastIndexOf('{"result"'))) as {
      result: { snapshotId: string; finishReason: string };
    };
    expect(result.finishReason).toBe('aborted');
    const kept = await store.getSnapshot({ snapshotId: result.snapshotId });
    expect(kept).toMatchObject({ status: 'aborted' });
    expect(kept?.state?.messages?.map(({ content }) => content[0]?.text)).toEqual(['Tell me.', 'Once upon']);
  });

  test('refuses later requests with UNAVAILABLE', async () => {
    const { agent } = halting();
    const running = await serve([agent], { anonymous: true, stopSignal: AbortSignal.abort() });
    onTestFinished(running.stop);
    const refused = await remoteAgent({ url: `${running.url}/teller` })
      .chat()
      .send('Tell me.')
      .catch((error: unknown) => error);
    expect(AgentError.isInstance(refused) && refused.status).toBe('UNAVAILABLE');
  });
});

test('a stopSignal that is not a signal is refused', () => {
  const { agent } = halting();
  const options = { anonymous: true, stopSignal: 'soon' as unknown as AbortSignal };
  expect(() => agentRouter([agent], options)).toThrow('stopSignal must be an AbortSignal');
});
