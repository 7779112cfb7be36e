import { z } from 'genkit';
import { describe, expect, it } from 'vitest';
import {
  defineAgent,
  defineCustomAgent,
  genkit,
  InMemorySessionStore,
  SessionService,
  type Agent,
  type AgentInit,
  type AgentInput,
  type SnapshotStore,
} from 'genkitx-agents';
import { call, deferred, model, user } from '../agent/support/helpers.ts';
import { scriptedModel } from '../support/scripted-model.ts';

const ADA = { appName: 'shop', userId: 'ada' };
const NOTE = { author: 'system', actions: { stateDelta: { note: 1 } } };

/** An agent whose tool asks before it pays. */
function payingAgent(store: SnapshotStore): { agent: Agent; payments: () => number } {
  const ai = genkit({});
  let paid = 0;
  const pay = ai.defineTool(
    { name: 'pay', description: 'Pays.', inputSchema: z.object({}) },
    async (_input, { interrupt, resumed }) => {
      if (!resumed) interrupt();
      paid++;
      return 'paid';
    },
  );
  const { name } = scriptedModel(ai, {
    otherwise: ({ request }) =>
      request.messages.at(-1)?.role === 'tool' ? 'done' : [{ toolRequest: { name: 'pay', ref: '1', input: {} } }],
  });
  const agent = defineAgent(ai, { name: 'clerk', model: name, store, tools: [pay] });
  return { agent, payments: () => paid };
}

/** The session service's user, as agents know them. */
const AS_ADA = { context: { auth: { uid: ADA.userId } } };

const APPROVAL = {
  resume: { restart: [{ toolRequest: { name: 'pay', ref: '1', input: {} }, metadata: { resumed: true } }] },
} as AgentInput;

describe('an event on a session that waits for an approval', () => {
  const setUp = async () => {
    const store = new InMemorySessionStore();
    const sessions = new SessionService(store);
    const { agent, payments } = payingAgent(store);
    await sessions.createSession({ ...ADA, sessionId: 'chat' });
    const { snapshotId, finishReason } = (await call(agent, ['pay'], { sessionId: 'chat' }, AS_ADA)).output;
    expect(finishReason).toBe('interrupted');
    const session = (await sessions.getSession({ ...ADA, sessionId: 'chat' }))!;
    const approve = async (init: AgentInit) => (await call(agent, [APPROVAL], init, AS_ADA)).output.error?.status;
    return { store, sessions, session, payments, snapshotId: snapshotId!, approve };
  };

  it('may only change the state: the request is approved once, before the event or after it', async () => {
    const { store, sessions, session, payments, snapshotId, approve } = await setUp();
    await sessions.appendEvent(session, NOTE);
    expect(session.state).toEqual({ note: 1 });
    expect((await store.getSnapshot({ sessionId: 'chat' }))?.finishReason).toBe('interrupted');
    expect(await approve({ sessionId: 'chat' })).toBeUndefined();
    expect(await approve({ snapshotId })).toBe('FAILED_PRECONDITION');
    expect(payments()).toBe(1);
  });

  it('is accepted with a message: the waiting request can be approved where it waits, once', async () => {
    const { sessions, session, payments, snapshotId, approve } = await setUp();
    await sessions.appendEvent(session, { ...NOTE, author: 'user', content: user('Never mind.') });
    expect(await approve({ sessionId: 'chat' })).toBe('INVALID_ARGUMENT');
    expect(await approve({ snapshotId })).toBeUndefined();
    expect(await approve({ snapshotId })).toBe('FAILED_PRECONDITION');
    expect(payments()).toBe(1);
  });

  it('is answered when it was appended before the request, though it is appended again', async () => {
    const store = new InMemorySessionStore();
    const sessions = new SessionService(store);
    const { agent } = payingAgent(store);
    const session = await sessions.createSession({ ...ADA, sessionId: 'chat' });
    const first = await sessions.appendEvent(session, { ...NOTE, id: 'note' });
    await call(agent, ['pay'], { sessionId: 'chat' }, AS_ADA);
    const fresh = (await sessions.getSession({ ...ADA, sessionId: 'chat' }))!;
    expect(await sessions.appendEvent(fresh, { ...NOTE, id: 'note' })).toEqual(first);
  });

  it('may be the answer itself, where tools are called without an agent', async () => {
    const sessions = new SessionService(new InMemorySessionStore());
    const session = await sessions.createSession(ADA);
    const toolRequest = { name: 'pay', ref: '1', input: {} };
    const toolResponse = { name: 'pay', ref: '1', output: 'paid' };
    await sessions.appendEvent(session, { author: 'clerk', content: { role: 'model', content: [{ toolRequest }] } });
    await sessions.appendEvent(session, {
      ...NOTE,
      author: 'clerk',
      content: { role: 'tool', content: [{ toolResponse }] },
    });
    expect([session.events.length, session.state]).toEqual([2, { note: 1 }]);
  });
});

it('a session of an agent with shareSessions: false stays hidden after an event', async () => {
  const store = new InMemorySessionStore();
  const sessions = new SessionService(store);
  const ai = genkit({});
  const { name } = scriptedModel(ai, { otherwise: 'ok' });
  const [hiding, other] = [
    defineAgent(ai, { name: 'hiding', model: name, store, shareSessions: false }),
    defineAgent(ai, { name: 'other', model: name, store }),
  ];
  await call(hiding, ['a secret'], { sessionId: 'chat' }, AS_ADA);
  const session = (await sessions.getSession({ appName: 'hiding', userId: 'ada', sessionId: 'chat' }))!;
  for (const event of [NOTE, { author: 'user', content: user('another secret') }]) {
    await sessions.appendEvent(session, event);
    expect(await other.getSnapshot({ sessionId: 'chat' }, AS_ADA)).toBeUndefined();
    expect((await call(other, ['tell me'], { sessionId: 'chat' }, AS_ADA)).output.error?.status).toBe('NOT_FOUND');
  }
  const seen = (await hiding.getSnapshot({ sessionId: 'chat' }, AS_ADA))!;
  expect(seen.state?.messages?.at(-1)?.content).toEqual([{ text: 'another secret' }]);
  expect((await call(hiding, ['go on'], { sessionId: 'chat' }, AS_ADA)).output.finishReason).toBe('stop');
});

describe('an event on a session with a turn running in the background', () => {
  const LEASE_MS = 900_000;

  const setUp = async () => {
    const store = new InMemorySessionStore();
    const sessions = new SessionService(store);
    const gate = deferred();
    const background = { heartbeatIntervalMs: 600_000, leaseMs: LEASE_MS };
    const agent = defineCustomAgent(genkit({}), { name: 'slow', store, background }, async (sess) => {
      await sess.run(async () => {
        await gate.promise;
        sess.addMessages([model('done')]);
      });
      return {};
    });
    await sessions.createSession({ ...ADA, sessionId: 'chat' });
    const { output } = await call(agent, [{ message: user('work'), detach: true }], { sessionId: 'chat' }, AS_ADA);
    const age = (ms: number, change: object = {}) =>
      store.saveSnapshot(output.snapshotId, (current) => ({
        ...current!,
        ...change,
        heartbeatAt: new Date(Date.now() - ms).toISOString(),
      }));
    const append = async (): Promise<string | undefined> => {
      const session = (await sessions.getSession({ ...ADA, sessionId: 'chat' }))!;
      return sessions.appendEvent(session, NOTE).then(
        () => undefined,
        (error: { status: string }) => error.status,
      );
    };
    const finish = () =>
      new Promise<void>((resolve) => {
        store.onSnapshotStateChange(output.snapshotId!, ({ status }) => status !== 'pending' && resolve());
        gate.resolve();
      });
    return { store, age, append, finish };
  };

  it('is refused for as long as the lease of the run', async () => {
    const { store, age, append, finish } = await setUp();
    await age(61_000);
    expect(await append()).toBe('ABORTED');
    await age(LEASE_MS - 60_000);
    expect(await append()).toBe('ABORTED');
    await finish();
    expect(await append()).toBeUndefined();
    expect((await store.listSessions()).items[0]?.leafCount).toBe(1);
  });

  it('is accepted when the run has had no heartbeat for longer', async () => {
    const { age, append, finish } = await setUp();
    await age(LEASE_MS + 1000);
    expect(await append()).toBeUndefined();
    await finish();
  });

  it('is refused until the end of a run without a stored lease', async () => {
    const { store, age, append, finish } = await setUp();
    const leaf = (await store.getSnapshot({ sessionId: 'chat' })) as { backgroundRun?: { leaseMs?: number } };
    const { leaseMs: _leaseMs, ...backgroundRun } = leaf.backgroundRun!;
    await age(LEASE_MS * 100, { backgroundRun });
    expect(await append()).toBe('ABORTED');
    await finish();
    expect(await append()).toBeUndefined();
  });
});
