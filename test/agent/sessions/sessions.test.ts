import { genkit, InMemorySessionStore as GenkitStore, type SessionSnapshot, type SessionStore } from 'genkit/beta';
import { AgentError, AgentInitError, defineAgent, defineCustomAgent, type AgentOutput } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, kinds, model, recordingStore, user } from '../support/helpers.ts';
import { CHANGING_STORE_KINDS } from '../support/stores.ts';

function setUp(store?: SessionStore) {
  const ai = genkit({});
  let turn = 0;
  const scripted = scriptedModel(ai, { otherwise: () => `reply ${++turn}` });
  const agent = defineAgent(ai, { name: 'talker', model: scripted.name, system: 'Talk.', store });
  return { ai, agent, scripted };
}

async function put(store: SessionStore, snapshot: SessionSnapshot): Promise<void> {
  await store.saveSnapshot(snapshot.snapshotId, () => snapshot);
}

function snapshot(snapshotId: string, rest: Partial<SessionSnapshot> = {}): SessionSnapshot {
  return {
    snapshotId,
    sessionId: 's',
    createdAt: new Date().toISOString(),
    status: 'completed',
    state: { sessionId: 's' },
    ...rest,
  };
}

describe.each(CHANGING_STORE_KINDS)('sessions on $name', ({ make }) => {
  test('a turn saves one completed snapshot of the conversation', async () => {
    const store = await make();
    const { agent } = setUp(store);
    const { output, chunks } = await call(agent, ['hi']);
    expect(output).toEqual({
      sessionId: expect.any(String) as string,
      snapshotId: expect.any(String) as string,
      message: model('reply 1'),
      finishReason: 'stop',
    });
    expect(chunks).toEqual([{ turnEnd: { snapshotId: output.snapshotId, finishReason: 'stop' } }]);
    const saved = await store.getSnapshot({ snapshotId: output.snapshotId });
    expect(saved).toMatchObject({
      sessionId: output.sessionId,
      status: 'completed',
      finishReason: 'stop',
      state: { sessionId: output.sessionId, messages: [user('hi'), model('reply 1')] },
    });
    expect(saved?.parentId).toBeUndefined();
  });

  test('a session is resumed by its id, and each turn is the child of the one before', async () => {
    const { agent, scripted } = setUp(await make());
    const first = await call(agent, ['one'], { sessionId: 'mine' });
    const second = await call(agent, ['two'], { sessionId: 'mine' });
    expect(first.output.sessionId).toBe('mine');
    const messages = [user('one'), model('reply 1'), user('two')];
    expect(await agent.getSnapshotData({ sessionId: 'mine' })).toMatchObject({
      snapshotId: second.output.snapshotId,
      parentId: first.output.snapshotId,
      status: 'completed',
      state: { sessionId: 'mine', messages: [...messages, model('reply 2')] },
    });
    expect(scripted.requests[1]?.messages.slice(1)).toEqual(messages);
  });

  test('a chat continues from its last turn; two turns from one snapshot are branches', async () => {
    const { agent } = setUp(await make());
    const chat = agent.chat();
    await chat.send('root');
    const fork = chat.snapshotId as string;
    const left = await agent.chat({ snapshotId: fork }).send('left');
    const right = await agent.chat({ snapshotId: fork }).send('right');
    for (const [branch, text, reply] of [
      [left, 'left', 'reply 2'],
      [right, 'right', 'reply 3'],
    ] as const) {
      expect(await agent.getSnapshot(branch.snapshotId as string)).toMatchObject({
        parentId: fork,
        status: 'completed',
        state: { sessionId: chat.sessionId, messages: [user('root'), model('reply 1'), user(text), model(reply)] },
      });
    }
  });

  test('several turns in one call are several snapshots, and the last one is reported', async () => {
    const { agent } = setUp(await make());
    const { chunks, output } = await call(agent, ['one', 'two', 'three']);
    const ids = chunks.map(({ turnEnd }) => turnEnd?.snapshotId);
    expect(new Set(ids).size).toBe(3);
    expect(output.snapshotId).toBe(ids[2]);
    const last = await agent.getSnapshot(output.snapshotId as string);
    expect(last?.parentId).toBe(ids[1]);
    expect(last?.state?.messages).toHaveLength(6);
  });

  test('a sessionId beside the snapshotId guards whose snapshot it is', async () => {
    const { agent } = setUp(await make());
    const { output } = await call(agent, ['one'], { sessionId: 'mine' });
    const snapshotId = output.snapshotId as string;
    expect((await call(agent, ['two'], { snapshotId, sessionId: 'mine' })).output.finishReason).toBe('stop');
    const theft = call(agent, ['two'], { snapshotId, sessionId: 'yours' });
    await expect(theft).rejects.toSatisfy((error) => AgentInitError.isInstance(error));
    await expect(theft).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(theft).rejects.toThrow('does not belong to session "yours"');
    await expect(theft).rejects.not.toThrow('mine');
  });

  test('a running or failed snapshot is not resumed by its id', async () => {
    const store = await make();
    const { agent, scripted } = setUp(store);
    for (const status of ['pending', 'failed'] as const) {
      await put(store, snapshot(status, { status }));
      const { output, chunks } = await call(agent, ['hi'], { snapshotId: status });
      expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'INVALID_ARGUMENT' } });
      expect(output.error?.message).toContain(`is ${status} and cannot be resumed`);
      expect(chunks).toEqual([]);
    }
    expect(scripted.requests).toHaveLength(0);
  });

  test('a snapshot that does not exist ends the call as failed, and so does a blank id', async () => {
    const { agent } = setUp(await make());
    expect((await call(agent, ['hi'], { snapshotId: 'nowhere' })).output).toEqual({
      finishReason: 'failed',
      error: { status: 'NOT_FOUND', message: 'Snapshot "nowhere" was not found.' },
    });
    expect((await call(agent, ['hi'], { sessionId: ' ' })).output.error?.status).toBe('INVALID_ARGUMENT');
    expect((await call(agent, ['hi'], { snapshotId: 'x'.repeat(1025) })).output.error?.status).toBe('INVALID_ARGUMENT');
  });

  test('a sessionId continues from the last completed snapshot', async () => {
    const store = await make();
    const { agent, scripted } = setUp(store);
    await put(store, snapshot('good', { state: { sessionId: 's', messages: [user('old'), model('old reply')] } }));
    await put(store, snapshot('failed', { status: 'failed', parentId: 'good' }));
    const loaded = await agent.loadChat({ sessionId: 's' });
    expect([loaded.snapshotId, loaded.messages]).toEqual(['good', [user('old'), model('old reply')]]);
    await put(store, snapshot('aborted', { status: 'aborted', parentId: 'failed' }));
    expect((await agent.loadChat({ sessionId: 's' })).snapshotId).toBe('aborted');
    const { output } = await call(agent, ['new'], { sessionId: 's' });
    expect((await store.getSnapshot({ snapshotId: output.snapshotId }))?.parentId).toBe('good');
    expect(scripted.requests[0]?.messages.slice(1)).toEqual([user('old'), model('old reply'), user('new')]);
  });

  test('a session of which no turn ever completed begins again under its id', async () => {
    const store = await make();
    const { agent } = setUp(store);
    await put(store, snapshot('first', { status: 'failed' }));
    const chat = await agent.loadChat({ sessionId: 's' });
    expect([chat.sessionId, chat.messages]).toEqual(['s', []]);
    const { output } = await call(agent, ['again'], { sessionId: 's' });
    expect(output).toMatchObject({ sessionId: 's', finishReason: 'stop' });
    expect((await store.getSnapshot({ snapshotId: output.snapshotId }))?.parentId).toBeUndefined();
    expect((await (await agent.loadChat({ sessionId: 's' })).send('more')).sessionId).toBe('s');
  });

  test('a session whose completed turns no longer exist is not continued without them', async () => {
    const store = await make();
    const { agent } = setUp(store);
    await put(store, snapshot('orphan', { status: 'failed', parentId: 'pruned' }));
    const { output } = await call(agent, ['again'], { sessionId: 's' });
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'FAILED_PRECONDITION' } });
    expect(output.error?.message).toContain('"pruned" no longer exists');
  });

  test('state sent to an agent with a store is refused, and thrown', async () => {
    const { agent } = setUp(await make());
    const refused = call(agent, ['hi'], { state: { messages: [] } });
    await expect(refused).rejects.toMatchObject({ name: 'AgentInitError', status: 'FAILED_PRECONDITION' });
    await expect(refused).rejects.toThrow("Cannot send 'state' to agent 'talker'");
  });

  test('changes of a custom agent after its last turn are saved', async () => {
    const { ai } = setUp();
    const store = await make();
    const agent = defineCustomAgent<{ summary: string }>(ai, { name: 'after', store }, async (sess) => {
      await sess.run(async () => sess.addMessages([model('ok')]));
      sess.updateCustom(() => ({ summary: 'short' }));
      return { message: sess.getMessages().at(-1) };
    });
    const { output, chunks } = await call(agent, ['hi']);
    const turn = chunks.find(({ turnEnd }) => turnEnd)?.turnEnd?.snapshotId;
    expect(output.snapshotId).not.toBe(turn);
    expect(await store.getSnapshot({ snapshotId: output.snapshotId })).toMatchObject({
      parentId: turn,
      status: 'completed',
      state: { custom: { summary: 'short' } },
    });
  });

  test('a turn knows the ids of its snapshot and of its parent', async () => {
    const { ai } = setUp();
    const contexts: unknown[] = [];
    const agent = defineCustomAgent(ai, { name: 'knowing', store: await make() }, async (sess) => {
      await sess.run(async (_input, context) => void contexts.push(context));
      return {};
    });
    const { chunks } = await call(agent, ['one', 'two']);
    const [one, two] = chunks.map(({ turnEnd }) => turnEnd?.snapshotId);
    expect(contexts).toEqual([
      { snapshotId: one, turnIndex: 0 },
      { snapshotId: two, parentSnapshotId: one, turnIndex: 1 },
    ]);
  });
});

test('the id under which a store saves is used', async () => {
  const ai = genkit({});
  const inner = new GenkitStore();
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: (snapshotId, mutator, options) => inner.saveSnapshot(`own-${snapshotId}`, mutator, options),
  };
  const agent = defineAgent(ai, { name: 'renamed', model: scriptedModel(ai, { otherwise: 'ok' }).name, store });
  const { output, chunks } = await call(agent, ['one', 'two']);
  const ids = chunks.map(({ turnEnd }) => turnEnd?.snapshotId);
  expect(output.snapshotId).toMatch(/^own-/);
  expect(output.snapshotId).toBe(ids[1]);
  expect((await agent.getSnapshot(ids[1] ?? ''))?.parentId).toBe(ids[0]);
});

test.each([...CHANGING_STORE_KINDS, { name: 'the caller', make: async () => undefined }])(
  'custom state and artifacts kept by $name last from call to call',
  async ({ make }) => {
    const store = await make();
    const agent = defineCustomAgent<{ n: number }>(genkit({}), { name: 'counting', store }, async (sess) => {
      await sess.run(async () => {
        const n = (sess.getCustom()?.n ?? 0) + 1;
        sess.updateCustom(() => ({ n }));
        sess.addArtifacts([{ name: `note ${n}`, parts: [{ text: `This is ${n}.` }] }]);
      });
      return { artifacts: sess.getArtifacts() };
    });
    const notes = [1, 2].map((n) => ({ name: `note ${n}`, parts: [{ text: `This is ${n}.` }] }));
    const kept = async ({ snapshotId, state }: AgentOutput) =>
      store ? (await agent.getSnapshot(snapshotId!))?.state : state;
    const first = (await call(agent, ['one'])).output;
    expect(first.artifacts).toEqual(notes.slice(0, 1));
    expect(await kept(first)).toMatchObject({ custom: { n: 1 }, artifacts: notes.slice(0, 1) });
    const { snapshotId, state } = first;
    const second = (await call(agent, ['two'], store ? { snapshotId } : { state })).output;
    expect(second.artifacts).toEqual(notes);
    expect(await kept(second)).toEqual({
      sessionId: first.sessionId,
      messages: [user('one'), user('two')],
      custom: { n: 2 },
      artifacts: notes,
    });
  },
);

describe('sessions whose callers keep the state', () => {
  test('the state goes out with the output and comes back with the next turn', async () => {
    const { agent, scripted } = setUp();
    const first = await call(agent, ['one']);
    expect(first.output).toEqual({
      sessionId: expect.any(String) as string,
      message: model('reply 1'),
      finishReason: 'stop',
      state: { sessionId: first.output.sessionId, messages: [user('one'), model('reply 1')], artifacts: [] },
    });
    expect(first.chunks).toEqual([{ turnEnd: { finishReason: 'stop' } }]);
    const second = await call(agent, ['two'], { state: first.output.state });
    const messages = [user('one'), model('reply 1'), user('two')];
    expect(second.output).toMatchObject({
      sessionId: first.output.sessionId,
      state: { sessionId: first.output.sessionId, messages: [...messages, model('reply 2')] },
    });
    expect(scripted.requests[1]?.messages.slice(1)).toEqual(messages);
  });

  test.each(['sessionId', 'snapshotId'])('a %s is refused, and thrown', async (key) => {
    const { agent } = setUp();
    const refused = call(agent, ['hi'], { [key]: 'x' });
    await expect(refused).rejects.toMatchObject({ name: 'AgentInitError', status: 'FAILED_PRECONDITION' });
    await expect(refused).rejects.toThrow(`Cannot use '${key}' with agent 'talker'`);
  });

  test('a state with which the call fails is returned unchanged', async () => {
    const { agent } = setUp();
    const state = { sessionId: 's', custom: { at: Number.NaN } };
    const { output } = await call(agent, ['hi'], { state });
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'INVALID_ARGUMENT' }, state });
    expect(output.error?.message).toContain(', at at: ');
  });

  test('snapshots cannot be read or aborted', async () => {
    const { agent } = setUp();
    await expect(agent.getSnapshot('x')).rejects.toSatisfy((error) => AgentError.isInstance(error));
    await expect(agent.abort('x')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await expect(agent.getSnapshotData({ snapshotId: 'x' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  });

  test('a failed turn keeps the earlier state', async () => {
    const { ai } = setUp();
    const agent = defineCustomAgent<{ n: number }>(ai, { name: 'stumbling' }, async (sess) => {
      await sess.run(async (input) => {
        sess.updateCustom((custom) => ({ n: (custom?.n ?? 0) + 1 }));
        sess.addArtifacts([{ name: 'a', parts: [{ text: String(sess.getCustom()?.n) }] }]);
        if (input.message?.content[0]?.text === 'fail') throw new Error('stumbled');
      });
      return { artifacts: sess.getArtifacts() };
    });
    const { output, chunks } = await call(agent, ['go', 'fail', 'never']);
    expect(kinds(chunks).filter((kind) => kind === 'turnEnd')).toHaveLength(2);
    expect(output.finishReason).toBe('failed');
    expect(output.artifacts).toBeUndefined();
    expect(output.state).toMatchObject({
      messages: [user('go')],
      custom: { n: 1 },
      artifacts: [{ name: 'a', parts: [{ text: '1' }] }],
    });
  });
});

describe("the caller's context", () => {
  test('reaches every call to the store: turns, reads and aborts, given or ambient', async () => {
    const ai = genkit({ context: { app: 'a' } });
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const [kind] = CHANGING_STORE_KINDS;
    const { store, calls } = recordingStore(await kind!.make());
    const agent = defineAgent(ai, { name: 'tenant', model: scripted.name, store });
    const context = { auth: { uid: 'u1' } };
    const expected = { app: 'a', ...context };
    const check = (what: string, methods: string[]) => {
      expect(
        calls.map(({ method }) => method),
        what,
      ).toEqual(methods);
      for (const each of calls.splice(0)) expect(each.context, what).toEqual(expected);
    };
    const { output } = await call(agent, ['hi'], { sessionId: 's' }, { context });
    check('action', ['getSnapshot', 'saveSnapshot']);
    const snapshotId = output.snapshotId as string;
    await agent.chat({ snapshotId }, { context }).send('hi');
    check('chat', ['getSnapshot', 'saveSnapshot']);
    await (await agent.loadChat({ snapshotId }, { context })).send('hi');
    check('loadChat', ['getSnapshot', 'getSnapshot', 'saveSnapshot']);
    await agent.getSnapshot(snapshotId, { context });
    await agent.getSnapshotData({ snapshotId, context });
    await agent.abort(snapshotId, { context });
    check('reads', ['getSnapshot', 'getSnapshot', 'saveSnapshot']);
    const flow = ai.defineFlow('inside', async () => {
      await agent.chat({ snapshotId }).send('hi');
      await agent.getSnapshot(snapshotId);
      await agent.abort(snapshotId);
      await agent.loadChat({ snapshotId });
    });
    await flow(undefined, { context });
    check('ambient', ['getSnapshot', 'saveSnapshot', 'getSnapshot', 'saveSnapshot', 'getSnapshot']);
  });
});
