import type { ActionContext } from 'genkit';
import {
  agentRuntime,
  defineAgent,
  genkit,
  InMemorySessionStore,
  type AgentConfig,
  type SaveSnapshotOptions,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, test } from 'vitest';
import { serveByRouter } from '../../server/support/http.ts';
import { storeAround } from '../../session/store-around.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, recordingStore } from '../support/helpers.ts';

const as = (uid?: string): { context: ActionContext } => ({ context: uid === undefined ? {} : { auth: { uid } } });

function setUp(options: Partial<AgentConfig> = {}) {
  const store = new InMemorySessionStore();
  const saves: (SaveSnapshotOptions | undefined)[] = [];
  const watched = storeAround(store, (name, args, make) => {
    if (name === 'saveSnapshot') saves.push(args[2] as SaveSnapshotOptions | undefined);
    return make();
  });
  const ai = genkit({ plugins: [agentRuntime({ store: watched })] });
  const usage = { inputTokens: 3, outputTokens: 4 };
  const message = { role: 'model' as const, content: [{ text: 'ok' }] };
  const scripted = scriptedModel(ai, { otherwise: { message, finishReason: 'stop', usage } });
  const agent = defineAgent(ai, { name: 'support', model: scripted.name, ...options });
  return { ai, agent, scripted, store, saves };
}

test.each([42, '', ' ', {}, true, null])('a user id that is %j names no other user', async (uid) => {
  const { agent, store } = setUp();
  const context = { auth: { uid } } as ActionContext;
  const sent = agent.chat({ sessionId: 's' }, { context }).send('mine');
  // Genkit's providers may leave out the id of a caller without a user.
  if (uid === null) await sent;
  else await expect(sent).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  const { items } = await store.listSessions();
  expect(items.map(({ ownerId }) => ownerId)).toEqual(uid === null ? [undefined] : []);
});

describe('the session of a user', () => {
  test.each(['bob', undefined])('does not exist for another user (%s), in process and over HTTP', async (otherUser) => {
    const { agent, scripted } = setUp();
    const { snapshotId } = (await call(agent, ['mine'], { sessionId: 's' }, as('ada'))).output;
    const { url, stop } = await serveByRouter([agent], {
      context: async (request) => {
        const uid = new Headers(request.headers).get('x-user');
        return as(uid || undefined).context;
      },
    });
    const reach = (uid: string | undefined) => remoteAgent({ url: `${url}/support`, headers: { 'x-user': uid ?? '' } });
    const otherApis = [
      reach(otherUser),
      { ...agent, getSnapshot: read(agent, otherUser), chat: chatAs(agent, otherUser) },
    ];
    for (const api of otherApis) {
      expect(await api.getSnapshot(snapshotId!)).toBeUndefined();
      expect(await api.getSnapshot({ sessionId: 's' })).toBeUndefined();
      for (const init of [{ snapshotId: snapshotId! }, { sessionId: 's' }]) {
        await expect(api.chat(init).send('show me')).rejects.toMatchObject({ status: 'NOT_FOUND' });
      }
    }
    expect(scripted.requests).toHaveLength(1);
    const own = reach('ada');
    expect((await own.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(snapshotId);
    expect((await own.chat({ sessionId: 's' }).send('go on')).text).toBe('ok');
    await stop();
  });

  test('can’t be aborted by another', async () => {
    const { agent, scripted } = setUp();
    scripted.reply(() => new Promise<never>(() => {}));
    const { snapshotId } = await agent.chat({ sessionId: 's' }, as('ada')).detach('work');
    expect(await agent.abort(snapshotId, as('bob'))).toBeUndefined();
    expect((await agent.getSnapshot(snapshotId, as('ada')))?.status).toBe('pending');
    expect(await agent.abort(snapshotId, as('ada'))).toBe('pending');
  });

  test('is not looked for by a caller whose context is passed as the options', async () => {
    const { agent } = setUp();
    const { snapshotId } = await agent.chat({ sessionId: 's' }, as('ada')).send('hi');
    const { context } = as('ada');
    const refusal = (method: string) => ({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`${method} has no option 'auth'. It has context`),
    });
    for (const method of ['getSnapshot', 'waitForSnapshot', 'abort'] as const) {
      await expect(agent[method](snapshotId!, context as never)).rejects.toMatchObject(refusal(method));
    }
    await expect(agent.getSnapshot('x', { metadataonly: true } as never)).rejects.toThrow("mean 'metadataOnly'?");
    await expect(agent.waitForSnapshot('x', { timeout: 50 } as never)).rejects.toThrow("mean 'timeoutMs'?");
  });

  test('is open to all users with shareSessions, and keeps its owner', async () => {
    const { agent, store } = setUp({ shareSessions: true });
    await call(agent, ['mine'], { sessionId: 's' }, as('ada'));
    expect((await call(agent, ['and mine'], { sessionId: 's' }, as('bob'))).output.finishReason).toBe('stop');
    expect((await store.listSessions({ ownerId: 'ada' })).items).toMatchObject([{ sessionId: 's' }]);
    expect((await store.listSessions({ ownerId: 'bob' })).items).toEqual([]);
  });

  test('without a signed-in user is open to all users', async () => {
    const { agent } = setUp();
    await call(agent, ['hi'], { sessionId: 's' });
    expect((await call(agent, ['hello'], { sessionId: 's' }, as('bob'))).output.finishReason).toBe('stop');
  });

  test('is found by its owner, with its agent and its usage, by the session actions', async () => {
    const { agent, ai, saves } = setUp({ userId: ({ auth }) => auth?.['email'] as string | undefined });
    const context = { auth: { email: 'ada@example.com' } };
    await call(agent, ['one', 'two'], { sessionId: 's' }, { context });
    await call(agent, ['other'], { sessionId: 't' });
    const list = await ai.registry.lookupAction('/custom/genkitx-agents/listSessions');
    const { result } = await list.run({ ownerId: 'ada@example.com' });
    const usage = { inputTokens: 6, outputTokens: 8 };
    expect(result).toMatchObject({
      items: [{ sessionId: 's', ownerId: 'ada@example.com', agent: 'support', snapshotCount: 2, usage }],
    });
    expect(saves.map((options) => options?.session)).toEqual([
      { ownerId: 'ada@example.com', agent: 'support' },
      { ownerId: 'ada@example.com', agent: 'support' },
      { agent: 'support' },
    ]);
  });

  test('has no owner in a foreign store’s saves', async () => {
    const inner = new InMemorySessionStore();
    const { store } = recordingStore(inner);
    const { agent } = setUp({ store });
    await call(agent, ['hi'], { sessionId: 's' }, as('ada'));
    expect((await inner.listSessions()).items[0]).not.toHaveProperty('ownerId');
  });
});

type Api = ReturnType<typeof setUp>['agent'];

const read =
  (agent: Api, uid: string | undefined): Api['getSnapshot'] =>
  (lookup) =>
    agent.getSnapshot(lookup, as(uid));

const chatAs =
  (agent: Api, uid: string | undefined): Api['chat'] =>
  (init) =>
    agent.chat(init, as(uid));
