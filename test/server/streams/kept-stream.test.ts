/** Kept streams: which callers can read them again, and how long a turn waits for its client. */
import { InMemoryStreamManager } from 'genkit/beta';
import { remoteAgent as remoteAgentOfGenkit, streamFlow } from 'genkit/beta/client';
import { remoteAgent } from 'genkitx-agents/client';
import type { AgentServerOptions } from 'genkitx-agents/server';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { gate, makeAgents, makers } from '../support/agents.ts';
import { ourServers, type Running } from '../support/http.ts';
import { framesOf, HOUR, resultFrame, STREAM_ID, twoThenThree } from '../support/kept-turns.ts';
import { catchErrorLog } from '../support/log.ts';
import { stubAgent, type StubAgent } from '../support/stub-agent.ts';
import { done, hello } from '../support/stub-server.ts';
import { collect } from '../../support/collect.ts';

catchErrorLog();

function post(url: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
    signal,
  });
}

const resume = (url: string, id: string, headers: Record<string, string> = {}) =>
  post(url, {}, { [STREAM_ID]: id, ...headers });

/** Starts a turn, and disconnects when its head has arrived. */
async function startAndLeave(url: string, headers: Record<string, string> = {}): Promise<string> {
  const controller = new AbortController();
  const response = await post(url, { data: hello }, headers, controller.signal);
  controller.abort();
  return response.headers.get(STREAM_ID)!;
}

/** Users by their names, with a new token for each request. */
let issued = 0;
const users: AgentServerOptions['context'] = ({ headers }) => {
  issued += 1;
  const uid = headers.authorization;
  return { auth: { uid, rawToken: `t${issued}`, token: { sub: uid, iat: issued, exp: issued + 1 } } };
};

describe.each(ourServers)('a kept stream over $name', ({ serve }) => {
  let running: Running | undefined;

  const start = async (agents: StubAgent | StubAgent[], options: Partial<AgentServerOptions> = {}) => {
    const identity = options.context ? {} : { anonymous: true };
    running = await serve([agents].flat(), {
      ...identity,
      streamManager: new InMemoryStreamManager(),
      reconnectWithinMs: HOUR,
      ...options,
    });
    return `${running.url}/a`;
  };

  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  it('is read from its beginning to its end by two clients at a time, and by one that connects after its end', async () => {
    const { agent, mayEnd } = twoThenThree();
    const url = await start(agent);
    const first = await post(url, { data: hello });
    const id = first.headers.get(STREAM_ID)!;
    const second = await resume(url, id);
    const third = streamFlow<unknown, number>({ url, streamId: id });
    expect(second.status).toBe(200);
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    mayEnd.open();
    const whole = framesOf(1, 2, 3) + resultFrame(done);
    expect([await first.text(), await second.text()]).toEqual([whole, whole]);
    expect(await collect(third.stream)).toEqual([1, 2, 3]);
    expect(await third.output).toEqual(done);
    expect(await (await resume(url, id)).text()).toBe(whole);
    expect(agent.runs).toHaveLength(1);
  });

  it('belongs to its owner: for other callers its id is unknown, and cannot be aborted', async () => {
    const { agent, mayEnd } = twoThenThree();
    const url = await start([agent, stubAgent('b', () => done)], { context: users });
    const mine = await post(url, { data: hello }, { authorization: 'ada' });
    const id = mine.headers.get(STREAM_ID)!;
    const answers = await Promise.all([
      resume(url, id, { authorization: 'eve' }),
      resume(url, globalThis.crypto.randomUUID(), { authorization: 'eve' }),
      resume(url, `${id}, ${id}`, { authorization: 'ada' }),
      resume(url, '../../x', { authorization: 'ada' }),
      resume(`${running!.url}/b`, id, { authorization: 'ada' }),
    ]);
    const shown = answers.map(({ status, headers }) => [status, [...headers].filter(([name]) => name !== 'date')]);
    expect(new Set(shown.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0].status).toBe(204);
    const aborts = await Promise.all(
      [id, globalThis.crypto.randomUUID(), 'x'].map(async (streamId) => {
        const answer = await post(`${url}/abort`, { data: { streamId } }, { authorization: 'eve' });
        return [answer.status, await answer.text()];
      }),
    );
    expect(new Set(aborts.map(String)).size).toBe(1);
    expect(aborts[0]![0]).toBe(404);
    // Ada has another token, and is still the owner.
    const again = await resume(url, id, { authorization: 'ada' });
    mayEnd.open();
    expect(await again.text()).toBe(await mine.text());
    expect(agent.runs).toHaveLength(1);
  });

  it('authenticates the caller before anything else', async () => {
    const { agent, mayEnd } = twoThenThree();
    const url = await start(agent, {
      context: ({ headers }) => {
        if (!headers.authorization) {
          throw Object.assign(new Error('no'), { status: 'UNAUTHENTICATED' });
        }
        return {};
      },
    });
    const id = await startAndLeave(url, { authorization: 'x' });
    expect((await resume(url, id)).status).toBeGreaterThanOrEqual(400);
    expect((await post(`${url}/abort`, { data: { streamId: id } })).status).toBeGreaterThanOrEqual(400);
    mayEnd.open();
    expect(await (await resume(url, id, { authorization: 'x' })).text()).toContain('"result"');
  });

  it('has its turn aborted when its last client was disconnected for the grace time', async () => {
    const { agent, stopped } = twoThenThree();
    const url = await start(agent, { reconnectWithinMs: 20 });
    await startAndLeave(url);
    await stopped.opened;
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('has its turn aborted at once when its caller aborts it, even with other readers', async () => {
    const { agent, started, stopped } = twoThenThree();
    const url = await start(agent);
    const ids: (string | null)[] = [];
    const listening: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      ids.push(response.headers.get(STREAM_ID));
      return response;
    };
    const turn = remoteAgent({ url, fetch: listening }).chat().sendStream('go');
    await started.opened;
    await expect.poll(() => ids.length).toBe(1);
    const other = await resume(url, ids[0]!);
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    await stopped.opened;
    expect(await other.text()).toMatch(/^data: .*\n\ndata: .*\n\nerror: /);
  });

  it.each<[string, typeof remoteAgentOfGenkit]>([
    ['ours', remoteAgent],
    ['Genkit’s', remoteAgentOfGenkit],
  ])('is nothing that a client need know of: %s', async (_, remote) => {
    const { agents } = makeAgents(makers[1]!);
    running = await serve(agents, { anonymous: true, streamManager: new InMemoryStreamManager() });
    const chat = remote({ url: `${running.url}/chatty` }).chat();
    expect((await chat.send('hello')).text).toBe('#1 You said: hello');
    expect((await chat.send('again')).text).toBe('#2 You said: again');
  });

  it('has its turn saved if its client reconnected in time, and not otherwise', async () => {
    const { agents, controls } = makeAgents(makers[1]!);
    const options = { anonymous: true, streamManager: new InMemoryStreamManager(), reconnectWithinMs: 20 };
    running = await serve(agents, options);
    const url = `${running.url}/slow`;
    const controller = new AbortController();
    await post(url, { data: hello, init: { sessionId: 'left' } }, {}, controller.signal);
    controller.abort();
    await controls.slowStopped.opened;
    controls.slowMayEnd.open();
    const agent = remoteAgent({ url });
    await vi.waitFor(async () => {
      const snapshot = await agent.getSnapshot({ sessionId: 'left' });
      expect(snapshot?.status === undefined || snapshot.status === 'aborted').toBe(true);
    });
    expect((await agent.getSnapshot({ sessionId: 'left' }))?.status).not.toBe('completed');
    const back = await post(url, { data: hello, init: { sessionId: 'back' } });
    await (await resume(url, back.headers.get(STREAM_ID)!)).text();
    expect((await agent.getSnapshot({ sessionId: 'back' }))?.status).toBe('completed');
  });

  it('sends its id before the first chunk; a request that is refused at once still has its HTTP status', async () => {
    const mayEnd = gate();
    const silent = stubAgent('a', () => mayEnd.opened.then(() => done));
    const url = await start(silent);
    const response = await post(url, { data: hello });
    const id = response.headers.get(STREAM_ID)!;
    mayEnd.open();
    expect(await response.text()).toBe(resultFrame(done));
    expect(await (await resume(url, id)).text()).toBe(resultFrame(done));
    await running?.stop();
    const error = { status: 'RESOURCE_EXHAUSTED', message: 'Enough.' };
    const refusing = await start(stubAgent('a', () => ({ finishReason: 'failed', error })));
    expect((await post(refusing, { data: hello })).status).toBe(429);
  });

  it('is not kept for a client that disconnects before it has the id: its turn is aborted', async () => {
    const [started, stopped] = [gate(), gate()];
    const agent = stubAgent('a', async (_, { abortSignal }) => {
      abortSignal.addEventListener('abort', stopped.open);
      started.open();
      await stopped.opened;
      return done;
    });
    const url = await start(agent);
    const controller = new AbortController();
    const gone = post(url, { data: hello }, {}, controller.signal).catch(() => 'gone');
    await started.opened;
    controller.abort();
    await stopped.opened;
    expect(await gone).toBe('gone');
  });

  it('is requested without success where none are kept, and never runs the turn again', async () => {
    const { agent } = twoThenThree();
    const url = await start(agent, { streamManager: undefined, reconnectWithinMs: undefined });
    expect((await resume(url, globalThis.crypto.randomUUID())).status).toBe(204);
    expect((await post(url, { data: hello }, { [STREAM_ID]: 'x' })).status).toBe(204);
    expect(agent.runs).toEqual([]);
  });

  it('is removed when it has expired', async () => {
    const agent = stubAgent('a', (_, { onChunk }) => {
      onChunk?.(1);
      return done;
    });
    const url = await start(agent, { streamManager: new InMemoryStreamManager({ ttlSeconds: -1 }) });
    const first = await post(url, { data: hello });
    await first.text();
    // The manager removes expired streams when it opens the next.
    await (await post(url, { data: hello })).text();
    expect((await resume(url, first.headers.get(STREAM_ID)!)).status).toBe(204);
  });
});
