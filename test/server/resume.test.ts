/** Streams that are kept: who gets them again, how long a turn waits for its client, and what is left when it is over. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  InMemoryStreamManager,
  StreamNotFoundError,
  type ActionStreamInput,
  type ActionStreamSubscriber,
  type StreamManager,
} from 'genkit/beta';
import { remoteAgent as remoteAgentOfGenkit, streamFlow } from 'genkit/beta/client';
import { remoteAgent } from 'genkitx-agents/client';
import { agentHandler, type AgentServerOptions } from 'genkitx-agents/server';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Presence } from '../../src/server/presence.ts';
import { describeOwner } from '../../src/server/stream-key.ts';
import { gate, makeAgents, makers, type Gate } from './support/agents.ts';
import { ourServers, type Running } from './support/http.ts';
import { catchErrorLog } from './support/log.ts';
import { stubAgent, type StubAgent } from './support/stub-agent.ts';

const errorLog = catchErrorLog();
const HOUR = 3_600_000;
const STREAM_ID = 'x-genkit-stream-id';
const hello = { message: { role: 'user', content: [{ text: 'hello' }] } };
const done = { finishReason: 'stop', message: { role: 'model', content: [{ text: 'hi' }] } };
const framesOf = (...messages: unknown[]) =>
  messages.map((message) => `data: ${JSON.stringify({ message })}\n\n`).join('');
const resultFrame = (result: unknown) => `data: ${JSON.stringify({ result })}\n\n`;

/** An agent that says 1, 2, waits, and says 3. */
function twoThenThree(): { agent: StubAgent; started: Gate; mayEnd: Gate; stopped: Gate } {
  const [started, mayEnd, stopped] = [gate(), gate(), gate()];
  const agent = stubAgent('a', async (_, { onChunk, abortSignal }) => {
    abortSignal.addEventListener('abort', stopped.open);
    onChunk?.(1);
    onChunk?.(2);
    started.open();
    await Promise.race([mayEnd.opened, stopped.opened]);
    abortSignal.throwIfAborted();
    onChunk?.(3);
    return done;
  });
  return { agent, started, mayEnd, stopped };
}

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

/** Starts a turn, and goes away when its head has come. */
async function startAndLeave(url: string, headers: Record<string, string> = {}): Promise<string> {
  const controller = new AbortController();
  const response = await post(url, { data: hello }, headers, controller.signal);
  controller.abort();
  return response.headers.get(STREAM_ID)!;
}

/** Users by their names, with a token that is new each time they ask. */
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

  it('is read from its beginning to its end by two clients at a time, and by one that comes when it is over', async () => {
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
    const chunks: number[] = [];
    for await (const chunk of third.stream) {
      chunks.push(chunk);
    }
    expect(chunks).toEqual([1, 2, 3]);
    expect(await third.output).toEqual(done);
    expect(await (await resume(url, id)).text()).toBe(whole);
    expect(agent.runs).toHaveLength(1);
  });

  it('is nobody else’s: a foreign id is answered as an unknown one, and can not be aborted', async () => {
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
    // Ada has another token by now, and is still Ada.
    const again = await resume(url, id, { authorization: 'ada' });
    mayEnd.open();
    expect(await again.text()).toBe(await mine.text());
    expect(agent.runs).toHaveLength(1);
  });

  it('asks who it is for before anything else', async () => {
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

  it('has its turn aborted when its last client has been away for the grace time', async () => {
    const { agent, stopped } = twoThenThree();
    const url = await start(agent, { reconnectWithinMs: 20 });
    await startAndLeave(url);
    await stopped.opened;
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('has its turn aborted at once when its caller says so, whoever still reads', async () => {
    const { agent, started, stopped } = twoThenThree();
    const url = await start(agent);
    const ids: (string | null)[] = [];
    const listening: typeof fetch = async (...args) => {
      const response = await fetch(...args);
      ids.push(response.headers.get(STREAM_ID));
      return response;
    };
    const turn = remoteAgent({ url, fetch: listening }).chat().sendStream('go');
    await turn.stream[Symbol.asyncIterator]().next();
    await started.opened;
    const other = await resume(url, ids[0]!);
    turn.abort();
    expect((await turn.response).finishReason).toBe('aborted');
    await stopped.opened;
    expect(await other.text()).toMatch(/^data: .*\n\ndata: .*\n\nerror: /);
  });

  it.each([
    ['ours', remoteAgent],
    ['Genkit’s', remoteAgentOfGenkit],
  ])('is nothing that a client need know of: %s', async (_, remote) => {
    const { agents } = makeAgents(makers[1]!);
    running = await serve(agents, { anonymous: true, streamManager: new InMemoryStreamManager() });
    const chat = remote({ url: `${running.url}/chatty` }).chat();
    expect((await chat.send('hello')).text).toBe('#1 You said: hello');
    expect((await chat.send('again')).text).toBe('#2 You said: again');
  });

  it('is of a session that has nothing of a turn whose client stayed away, and all of one whose client came back', async () => {
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

  it('shows its id though the turn has nothing to say yet; what is refused at once still says so by its status', async () => {
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

  it('is not kept for a client that goes away before it knows the id: its turn is aborted', async () => {
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

  it('is asked for in vain where none are kept, and never runs the turn again', async () => {
    const { agent } = twoThenThree();
    const url = await start(agent, { streamManager: undefined, reconnectWithinMs: undefined });
    expect((await resume(url, globalThis.crypto.randomUUID())).status).toBe(204);
    expect((await post(url, { data: hello }, { [STREAM_ID]: 'x' })).status).toBe(204);
    expect(agent.runs).toEqual([]);
  });

  it('is gone when its time is over', async () => {
    const agent = stubAgent('a', (_, { onChunk }) => {
      onChunk?.(1);
      return done;
    });
    const url = await start(agent, { streamManager: new InMemoryStreamManager({ ttlSeconds: -1 }) });
    const first = await post(url, { data: hello });
    await first.text();
    // The manager looks what is over when it opens the next.
    await (await post(url, { data: hello })).text();
    expect((await resume(url, first.headers.get(STREAM_ID)!)).status).toBe(204);
  });
});

/** A stream manager far away: all it does takes its time, and it remembers who listens. */
class SlowManager implements StreamManager {
  readonly #inner = new InMemoryStreamManager();
  writes: string[] = [];
  subscribers = 0;
  fails: 'open' | 'write' | undefined;

  async open<S, O>(id: string): Promise<ActionStreamInput<S, O>> {
    await this.#delay('open');
    const input = await this.#inner.open<S, O>(id);
    return {
      write: async (chunk: S) => {
        await this.#delay('write');
        this.writes.push(String(chunk));
        await input.write(chunk);
      },
      done: async (output: O) => {
        await this.#delay();
        await input.done(output);
      },
      error: async (error: unknown) => {
        await this.#delay();
        await input.error(error);
      },
    };
  }

  async subscribe<S, O>(id: string, subscriber: ActionStreamSubscriber<S, O>) {
    await this.#delay();
    const { unsubscribe } = await this.#inner.subscribe(id, subscriber);
    this.subscribers += 1;
    let isThere = true;
    return {
      unsubscribe: () => {
        this.subscribers -= isThere ? 1 : 0;
        isThere = false;
        unsubscribe();
      },
    };
  }

  async #delay(what?: string): Promise<void> {
    await new Promise(setImmediate);
    if (what && what === this.fails) {
      throw new Error('The manager at 10.0.0.7 is down.');
    }
  }
}

describe('a stream manager that takes its time', () => {
  const request = (body: unknown, headers: Record<string, string> = {}) =>
    new Request('http://agents.test/a', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
      body: JSON.stringify(body),
    });
  const talker = (count: number) =>
    stubAgent('a', async (_, { onChunk }) => {
      for (let n = 0; n < count; n++) {
        onChunk?.(n);
        if (n % 10 === 9) {
          await new Promise(setImmediate);
        }
      }
      return done;
    });
  const numbers = Array.from({ length: 100 }, (_, n) => n);

  it('gets every frame in order, in fewer writes, and is unsubscribed from when the stream is over', async () => {
    const manager = new SlowManager();
    const handler = agentHandler([talker(100)], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    const whole = framesOf(...numbers) + resultFrame(done);
    expect(await first.text()).toBe(whole);
    expect(await second.text()).toBe(whole);
    expect(manager.writes.join('')).toBe(framesOf(...numbers));
    expect(manager.writes.length).toBeLessThan(40);
    expect(manager.subscribers).toBe(0);
  });

  it('is unsubscribed from when the reader goes away', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    expect(manager.subscribers).toBe(1);
    await second.body?.cancel();
    expect(manager.subscribers).toBe(0);
    mayEnd.open();
    expect(await first.text()).toContain('"result"');
  });

  it('that can not open a stream costs only the coming back: the turn runs, and ends with its connection', async () => {
    const manager = new SlowManager();
    manager.fails = 'open';
    const { agent } = twoThenThree();
    const response = await agentHandler([agent], { anonymous: true, streamManager: manager })(request({ data: hello }));
    expect(response.headers.get(STREAM_ID)).toBeNull();
    await response.body?.cancel();
    expect(agent.runs[0]?.options.abortSignal.aborted).toBe(true);
  });

  it('that loses a write loses the stream for who comes back, and not a chunk of it unseen', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    const first = await handler(request({ data: hello }));
    const second = await handler(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    await vi.waitFor(() => expect(manager.writes.join('')).toBe(framesOf(1, 2)));
    manager.fails = 'write';
    mayEnd.open();
    expect(await first.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    const lost = await second.text();
    expect(lost).toContain(framesOf(1, 2));
    expect(lost).toMatch(/error: .*"UNAVAILABLE"/);
    expect(lost).not.toContain('10.0.0.7');
    expect(lost).not.toContain('"result"');
  });

  it('that knows no such stream is answered with 204, that breaks with 500, and neither shows its inside', async () => {
    const manager: StreamManager = {
      open: () => Promise.reject(new Error('no')),
      subscribe: () => Promise.reject(new StreamNotFoundError('Stream x not found.')),
    };
    const handler = agentHandler([talker(1)], { anonymous: true, streamManager: manager });
    const ask = () => handler(request({}, { [STREAM_ID]: globalThis.crypto.randomUUID() }));
    expect((await ask()).status).toBe(204);
    manager.subscribe = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7'));
    const broken = await ask();
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toContain('10.0.0.7');
    expect(errorLog()).toContain('10.0.0.7');
  });

  it('that several servers share leads a client back on any of them', async () => {
    const manager = new SlowManager();
    const { agent, mayEnd } = twoThenThree();
    const options = { anonymous: true, streamManager: manager, reconnectWithinMs: false } as const;
    const [here, there] = [agentHandler([agent], options), agentHandler([agent], options)];
    const first = await here(request({ data: hello }));
    await first.body?.cancel();
    const second = await there(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    mayEnd.open();
    expect(await second.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    expect(agent.runs).toHaveLength(1);
  });

  it('leaves no timer and no subscriber, whatever its clients did', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const manager = new SlowManager();
    const handler = agentHandler([talker(30)], { anonymous: true, streamManager: manager, reconnectWithinMs: HOUR });
    const before = timers();
    for (let n = 0; n < 50; n++) {
      const first = await handler(request({ data: hello }));
      const id = first.headers.get(STREAM_ID)!;
      await (n % 2 === 0 ? first.body?.cancel() : first.text());
      const second = await handler(request({}, { [STREAM_ID]: id }));
      await (n % 3 === 0 ? second.body?.cancel() : second.text());
    }
    // Those before are others', and may be over by now.
    await vi.waitFor(() => expect(timers()).toBeLessThanOrEqual(before));
    await vi.waitFor(() => expect(manager.subscribers).toBe(0));
  });

  it('holds what was streamed, the server nothing of it when the turn is over', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    // One that forgets, so that what is left is the server's.
    const manager: StreamManager = {
      open: async () => ({ write: async () => {}, done: async () => {}, error: async () => {} }),
      subscribe: () => Promise.reject(new StreamNotFoundError('none')),
    };
    const outputs: WeakRef<object>[] = [];
    const agent = stubAgent('a', (_, { onChunk, abortSignal }) => {
      const output = { ...done, big: Array.from({ length: 1000 }, (_, n) => ({ n })) };
      outputs.push(new WeakRef(output), new WeakRef(output.big), new WeakRef(abortSignal));
      onChunk?.(output.big);
      return output;
    });
    const handler = agentHandler([agent], { anonymous: true, streamManager: manager });
    for (let n = 0; n < 20; n++) {
      await (await handler(request({ data: hello }))).text();
    }
    agent.runs.length = 0;
    await vi.waitFor(() => {
      collect();
      expect(outputs.filter((output) => output.deref() !== undefined)).toEqual([]);
    });
  });
});

describe('presence', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('gives up when nobody has been there for the grace time, counted from the last who left', () => {
    const giveUp = vi.fn();
    const presence = new Presence(1000, giveUp);
    const [leaveFirst, leaveSecond] = [presence.join(), presence.join()];
    leaveFirst();
    leaveFirst();
    vi.advanceTimersByTime(5000);
    expect(giveUp).not.toHaveBeenCalled();
    leaveSecond();
    vi.advanceTimersByTime(999);
    const leaveThird = presence.join();
    vi.advanceTimersByTime(5000);
    expect(giveUp).not.toHaveBeenCalled();
    leaveThird();
    vi.advanceTimersByTime(1000);
    expect(giveUp).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves no timer when the turn ends, whoever leaves before or after, nor one without a grace time', () => {
    const giveUp = vi.fn();
    const before = new Presence(1000, giveUp);
    before.join()();
    before.end();
    const after = new Presence(1000, giveUp);
    const leave = after.join();
    after.end();
    leave();
    after.abort();
    new Presence(Infinity, giveUp).join()();
    expect(vi.getTimerCount()).toBe(0);
    expect(giveUp).not.toHaveBeenCalled();
  });
});

describe('the owner of a stream', () => {
  it('is the same whatever the order of the context’s members, and through a refreshed token', () => {
    const token = (iat: number) => ({ sub: 'ada', iat, exp: iat + 1, firebase: { tenant: 't' } });
    const first = describeOwner({ auth: { uid: 'ada', rawToken: '1', token: token(1) }, app: undefined });
    expect(describeOwner({ auth: { token: token(2), rawToken: '2', uid: 'ada' } })).toBe(first);
  });

  it('is another for each other user, tenant and shape', () => {
    const contexts = [
      {},
      { auth: {} },
      { auth: { uid: 'ada' } },
      { auth: { uid: 'ADA' } },
      { auth: { uid: 'ada' }, tenant: 't' },
      { auth: { uid: 'ada', tenant: 't' } },
      { auth: { uid: ['ada'] } },
      { auth: [['uid', 'ada']] },
      { auth: { 'uid":"ada': 1 } },
      { auth: { apiKey: 'k' } },
      { auth: JSON.parse('{"__proto__": {"uid": "ada"}}') as object },
    ];
    expect(new Set(contexts.map((context) => describeOwner(context as never))).size).toBe(contexts.length);
  });

  it('is not made up of what JSON does not show', () => {
    class User {
      readonly #uid = 'ada';
      get uid() {
        return this.#uid;
      }
    }
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    for (const hidden of [new User(), new Map([['uid', 1]]), () => 1, Symbol('u'), 10n, cyclic]) {
      expect(() => describeOwner({ hidden })).toThrow();
    }
    expect(describeOwner({ db: new User(), auth: { uid: 'ada' } }, ({ auth }) => auth?.uid)).toBe('"ada"');
    expect(() => describeOwner({}, ({ auth }) => auth?.uid)).toThrow('nobody');
  });
});
