import { z } from 'genkit';
import { genkit } from 'genkit/beta';
import { agentRuntime, defineAgent, InMemorySessionStore, recoverRuns, type AgentConfig } from 'genkitx-agents';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, deferred, model, user } from '../support/helpers.ts';

const clientTransform: AgentConfig['clientTransform'] = { state: (state) => ({ ...state, messages: [] }) };

/** Two agents on the default store; the replies of the bank's model are hidden from its clients. */
function setUp(options: Partial<AgentConfig> = {}, faqOptions: Partial<AgentConfig> = {}) {
  const store = new InMemorySessionStore();
  const ai = genkit({ plugins: [agentRuntime({ store })] });
  const scripted = scriptedModel(ai, { otherwise: 'internal verdict: decline' });
  const bank = defineAgent(ai, { name: 'bank', model: scripted.name, clientTransform, ...options });
  const faq = defineAgent(ai, { name: 'faq', model: scripted.name, ...faqOptions });
  const handle = agentHandler([bank, faq], { anonymous: true });
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await handle(
      new Request(`http://host/${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
    );
    return { status: answer.status, text: await answer.text() };
  };
  return { ai, store, scripted, bank, faq, post };
}

describe('HTTP: agents that share a store', () => {
  test('do not see the sessions of one whose clientTransform hides something of them', async () => {
    const { bank, faq, scripted, post } = setUp();
    const { snapshotId, sessionId } = (await call(bank, ['hi'], { sessionId: 's' })).output;
    expect((await post('bank/getSnapshot', { data: { snapshotId } })).status).toBe(200);
    for (const lookup of [{ snapshotId }, { sessionId }, { snapshotId, metadataOnly: true }]) {
      const { status, text } = await post('faq/getSnapshot', { data: lookup });
      expect(status).toBe(404);
      expect(text).not.toContain('verdict');
    }
    for (const init of [{ snapshotId }, { sessionId }]) {
      const { output } = await call(faq, ['What did it say?'], init);
      expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'NOT_FOUND' } });
    }
    expect(scripted.requests).toHaveLength(1);
    expect((await bank.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(snapshotId);
  });

  test('do not abort its runs either, and it recovers them itself', async () => {
    const { ai, bank, faq, scripted } = setUp({ background: { heartbeatIntervalMs: 1, leaseMs: 60_000 } });
    const answer = deferred<string>();
    scripted.reply(() => answer.promise);
    const { snapshotId } = await bank.chat({ sessionId: 's' }).detach('go');
    expect(await faq.abort(snapshotId)).toBeUndefined();
    expect((await recoverRuns(ai)).runs).toEqual([]);
    answer.resolve('done');
    expect((await bank.waitForSnapshot(snapshotId)).status).toBe('completed');
  });

  test('see those of an agent that hides nothing, as with Genkit, or that shares its sessions', async () => {
    for (const options of [{ clientTransform: undefined }, { shareSessions: true }]) {
      const { bank, faq } = setUp(options);
      const { snapshotId } = (await call(bank, ['hi'])).output;
      expect((await faq.getSnapshot(snapshotId!))?.state?.messages).toHaveLength(2);
      expect((await call(faq, ['and?'], { snapshotId: snapshotId! })).output.finishReason).toBe('stop');
    }
  });

  test('do not see those of an agent with shareSessions: false', async () => {
    const { bank, faq } = setUp({ clientTransform: undefined, shareSessions: false });
    const { snapshotId } = (await call(bank, ['hi'])).output;
    expect(await faq.getSnapshot(snapshotId!)).toBeUndefined();
  });

  test('all see snapshots without owners', async () => {
    const { store, bank } = setUp();
    await store.saveSnapshot('old', () => ({
      snapshotId: 'old',
      sessionId: 's',
      createdAt: new Date().toISOString(),
      status: 'completed',
      state: { messages: [user('hi'), model('hello')] },
    }));
    expect((await call(bank, ['and?'], { sessionId: 's' })).output.finishReason).toBe('stop');
  });
});

test('HTTP: the runtime’s internal fields of a snapshot are in no answer', async () => {
  const { ai, scripted, store } = setUp();
  const act = ai.defineTool(
    { name: 'act', description: 'Acts.', inputSchema: z.object({}) },
    async (_, { interrupt, resumed }) => (resumed ? 'done' : interrupt()),
  );
  const agent = defineAgent(ai, { name: 'acting', model: scripted.name, tools: [act], clientTransform });
  scripted.reply([{ toolRequest: { name: 'act', ref: '1', input: {} } }]);
  const { snapshotId } = (await call(agent, ['go'])).output;
  const part = { toolRequest: { name: 'act', ref: '1', input: {} }, metadata: { resumed: true } };
  await call(agent, [{ resume: { restart: [part] } }], { snapshotId: snapshotId! });
  expect(await store.getSnapshot({ snapshotId: snapshotId! })).toMatchObject({ resumption: {}, ownedBy: 'acting' });
  const list = await ai.registry.lookupAction('/custom/genkitx-agents/listSnapshots');
  const { sessionId } = (await store.getSnapshot({ snapshotId: snapshotId! }))!;
  const { result: page } = (await list.run({ sessionId })) as { result: { items: object[] } };
  expect(page.items).toHaveLength(2);
  for (const item of page.items) {
    expect(item).not.toHaveProperty('resumption');
    expect(item).not.toHaveProperty('ownedBy');
  }
  const handle = agentHandler([agent], { anonymous: true });
  for (const metadataOnly of [true, false]) {
    const body = JSON.stringify({ data: { snapshotId, metadataOnly } });
    const headers = { 'content-type': 'application/json' };
    const answer = await handle(new Request('http://host/acting/getSnapshot', { method: 'POST', headers, body }));
    const { result } = (await answer.json()) as { result: object };
    expect(result).not.toHaveProperty('resumption');
    expect(result).not.toHaveProperty('ownedBy');
  }
});
