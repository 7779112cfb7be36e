/** The errors of the client's functions for invalid options. */
import { remoteAgent, runFlow, streamFlow, type RemoteAgentOptions, type RunFlowOptions } from 'genkitx-agents/client';
import { describe, expect, it } from 'vitest';

const url = 'http://agents.test/a';

const REFUSED: [what: string, options: unknown, sentence: string][] = [
  ['no options', undefined, 'not null'],
  ['no url', {}, "'url'"],
  ['an unknown option', { url, heders: {} }, "did you mean 'headers'?"],
  ['a URL of ftp', { url: 'ftp://x/' }, "'ftp://x/'"],
  ['a URL of a file', { url: 'file:///etc/passwd' }, "'file:///etc/passwd'"],
  ['a number as headers', { url, headers: 5 }, "'headers'"],
  ['Headers, whose spread is empty', { url, headers: new Headers({ a: 'b' }) }, "'headers'"],
];

describe.each([
  ['remoteAgent', async (options: unknown) => remoteAgent(options as RemoteAgentOptions)],
  ['runFlow', async (options: unknown) => runFlow(options as RunFlowOptions)],
  ['streamFlow', async (options: unknown) => streamFlow(options as RunFlowOptions)],
])('%s', (name, call) => {
  it.each(REFUSED)('refuses %s', async (_, options, sentence) => {
    const message = expect.stringMatching(new RegExp(`^${name} `)) as string;
    await expect(call(options)).rejects.toMatchObject({ name: 'AgentError', status: 'INVALID_ARGUMENT', message });
    await expect(call(options)).rejects.toThrow(sentence);
  });
});

it('remoteAgent refuses a fetch that is not a function', () => {
  expect(() => remoteAgent({ url, fetch: 5 } as unknown as RemoteAgentOptions)).toThrow("'fetch'");
});

it.each(['getSnapshotUrl', 'abortUrl'])('remoteAgent checks %s as it does url', (name) => {
  for (const given of ['file:///etc/passwd', 'ftp://x/', '', 5]) {
    expect(() => remoteAgent({ url, [name]: given })).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT', message: expect.stringContaining(name) }),
    );
  }
  remoteAgent({ url, [name]: '/relative/to/the/page' });
});

it('remoteAgent accepts a URL object, and any scheme with a custom fetch', async () => {
  const asked: unknown[] = [];
  const send = async (address: unknown) => {
    asked.push(address);
    return Response.json({ result: { finishReason: 'stop' } });
  };
  await remoteAgent({ url: new URL(url), fetch: send })
    .chat()
    .send('x');
  await remoteAgent({ url: 'app://agents/a', fetch: send }).chat().send('x');
  expect(asked).toEqual([url, 'app://agents/a']);
});
