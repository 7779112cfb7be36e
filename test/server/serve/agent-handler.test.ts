/** The web-standard handler without a server around it, and the arguments of a server. */
import { UserFacingError } from 'genkit';
import { InMemoryStreamManager } from 'genkit/beta';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it } from 'vitest';
import { stubAgent } from '../support/stub-agent.ts';
import { done, hello, streamed } from '../support/stub-server.ts';

describe('agentHandler by itself', () => {
  const request = ({
    headers,
    ...init
  }: Omit<RequestInit, 'headers'> & { headers?: Record<string, string>; duplex?: 'half' }) =>
    new Request('http://agents.test/a', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ data: hello }),
      ...init,
    });

  it('aborts the run when the answer is cancelled, even without a signal', async () => {
    const agent = stubAgent('a', (_, { onChunk, abortSignal }) => {
      onChunk?.({});
      return new Promise((_resolve, reject) => {
        abortSignal.addEventListener('abort', () => reject(new Error('aborted')));
      });
    });
    const response = await agentHandler([agent], { anonymous: true })(request({ headers: streamed }));
    await response.body?.cancel();
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('does not run a request whose client has disconnected', async () => {
    const agent = stubAgent('a', () => done);
    const handler = agentHandler([agent], { anonymous: true });
    const controller = new AbortController();
    const gone = request({ signal: controller.signal });
    const answering = handler(gone);
    controller.abort();
    expect((await answering).status).toBe(499);
    expect(agent.runs).toEqual([]);
  });

  it.each([
    ['says it is too long', { 'content-length': '5000000' }, {}, 413],
    [
      'comes from an unknown caller',
      {},
      { context: () => Promise.reject(new UserFacingError('UNAUTHENTICATED', 'No.')) },
      401,
    ],
  ])('reads nothing of a body that %s', async (_, headers, options, status) => {
    let pulls = 0;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          pulls += 1;
          controller.enqueue(new Uint8Array(1000));
        },
      },
      { highWaterMark: 0 },
    );
    const identity = 'context' in options ? options : { anonymous: true };
    const handler = agentHandler([stubAgent('a', () => done)], identity);
    expect((await handler(request({ headers, body: endless, duplex: 'half' }))).status).toBe(status);
    expect(pulls).toBe(0);
  });
});

describe('building a server', () => {
  const agent = stubAgent('a', () => done);
  const build =
    (options: object, agents: unknown = [agent]) =>
    () =>
      agentHandler(agents as [], options);

  it.each([
    ['has neither context nor anonymous', build({}), /context.*anonymous: true/s],
    ['anonymous is off', build({ anonymous: false }), /context/],
    ['the input has no reader', build({ anonymous: true, contextReadsInput: true }), /contextReadsInput needs a/],
    ['a switch is none', build({ context: () => ({}), contextReadsInput: 1 }), /contextReadsInput.*true or false/],
    ['both are given', build({ anonymous: true, context: () => ({}) }), /not both/],
    ['the provider is none', build({ context: 'key' }), /must be a function/],
    ['an option is unknown', build({ anonymous: true, maxBodySize: 5 }), /no option 'maxBodySize'.*maxBodyBytes/],
    ['a limit is none', build({ anonymous: true, maxBodyBytes: 0 }), /maxBodyBytes.*whole number of at least 1/],
    ['a delay overflows', build({ anonymous: true, timeoutMs: 2 ** 31 }), /from 1 to 2147483647/],
    ['a body delay overflows', build({ anonymous: true, bodyTimeoutMs: 2 ** 31 }), /from 1 to 2147483647/],
    ['a limit is a text', build({ anonymous: true, timeoutMs: '5' }), /timeoutMs/],
    ['a stream manager is none', build({ anonymous: true, streamManager: {} }), /streamManager.*InMemoryStreamManager/],
    ['a grace time has no manager', build({ anonymous: true, reconnectWithinMs: 5 }), /need a streamManager/],
    [
      'a grace time is none',
      build({ anonymous: true, streamManager: new InMemoryStreamManager(), reconnectWithinMs: -1 }),
      /reconnectWithinMs.*whole number/,
    ],
    [
      'an owner is none',
      build({ anonymous: true, streamManager: new InMemoryStreamManager(), streamOwner: 'uid' }),
      /streamOwner.*function/,
    ],
    ['the base path is none', build({ anonymous: true, basePath: 'api' }), /basePath/],
    ['there is no agent', build({ anonymous: true }, []), /no agent/],
    ['an agent is none', build({ anonymous: true }, { support: {} }), /"support" is not an agent/],
    [
      'an agent called registry is none',
      build({ anonymous: true }, { registry: undefined }),
      /"registry" is not an agent/,
    ],
    ['an agent is missing', build({ anonymous: true }, [undefined]), /not an agent/],
    ['two agents have one name', build({ anonymous: true }, [agent, agent]), /Two agents.*\/a\b/],
  ])('is an error that says so when %s', (_, make, message) => {
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }));
  });

  it('serves a list by the agents’ own names, a record by its own', async () => {
    const request = (path: string) =>
      new Request(`http://agents.test${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ data: hello }),
      });
    const list = agentHandler([agent], { anonymous: true });
    const record = agentHandler({ 'help desk': agent }, { anonymous: true, basePath: '/v1/' });
    expect((await list(request('/a'))).status).toBe(200);
    expect((await record(request('/v1/help%20desk'))).status).toBe(200);
    expect((await record(request('/v1/a'))).status).toBe(404);
    expect((await record(request('/v1/%'))).status).toBe(404);
  });
});
