import {
  AgentAbortResponseSchema,
  AgentInitSchema,
  AgentInputSchema,
  AgentOutputSchema,
  AgentStreamChunkSchema,
} from '@genkit-ai/ai';
import { genkit, InMemorySessionStore as GenkitStore, type SessionSnapshot, type SessionStore } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, recordingStore } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

function setUp(store?: SessionStore) {
  const ai = genkit({});
  const agent = defineAgent(ai, { name: 'acting', model: scriptedModel(ai, { otherwise: 'ok' }).name, store });
  return { ai, agent };
}

test("an agent is registered under Genkit's keys with Genkit's schemas and metadata", async () => {
  const store = new InMemorySessionStore();
  const { ai, agent } = setUp(store);
  expect(await ai.registry.lookupAction('/agent/acting')).toBe(agent);
  expect(await ai.registry.lookupAction('/agent-snapshot/acting')).toBe(agent.getSnapshotDataAction);
  expect(await ai.registry.lookupAction('/agent-abort/acting')).toBe(agent.abortAgentAction);
  expect(agent.__action).toMatchObject({
    actionType: 'agent',
    metadata: { bidi: true, agent: { stateManagement: 'server', abortable: true } },
  });
  // Genkit's members, and our overrides of a turn.
  expect(agent.__action.inputSchema?.shape).toMatchObject(AgentInputSchema.shape);
  expect(agent.__action.outputSchema).toBe(AgentOutputSchema);
  expect(agent.__action.streamSchema).toBe(AgentStreamChunkSchema);
  expect(agent.__action.initSchema).toBe(AgentInitSchema);
  expect(agent.abortAgentAction.__action.outputSchema).toBe(AgentAbortResponseSchema);
});

test('the metadata of an agent says whether it can be aborted', () => {
  const abortable = (store?: SessionStore) =>
    (setUp(store).agent.__action.metadata?.['agent'] as { abortable?: boolean } | undefined)?.abortable;
  expect(abortable(new GenkitStore())).toBe(true);
  expect(abortable(recordingStore(new GenkitStore()).store)).toBe(false);
  expect(abortable()).toBe(false);
});

test('an agent runs as a plain action too', async () => {
  const { agent } = setUp();
  const input = { message: { role: 'user' as const, content: [{ text: 'hi' }] } };
  expect((await agent.run(input, { init: {} })).result.finishReason).toBe('stop');
  const { stream, output } = agent.stream(input, { init: {} });
  for await (const chunk of stream) expect(chunk.turnEnd).toBeDefined();
  expect((await output).finishReason).toBe('stop');
});

describe.each(STORE_KINDS)('snapshots on $name', ({ make }) => {
  const pending = (rest: Partial<SessionSnapshot> = {}): SessionSnapshot => ({
    snapshotId: 'p',
    sessionId: 's',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'pending',
    ...rest,
  });

  test('are read by id and by session; a missing one is NOT_FOUND', async () => {
    const { agent } = setUp(await make());
    const { output } = await call(agent, ['hi'], { sessionId: 's' });
    const { snapshotId } = output;
    const read = agent.getSnapshotDataAction;
    expect(await read({ sessionId: 's' })).toEqual(await read({ snapshotId }));
    expect((await agent.getSnapshot({ sessionId: 's' }))?.snapshotId).toBe(snapshotId);
    expect((await agent.getSnapshot(snapshotId as string))?.snapshotId).toBe(snapshotId);
    expect(await agent.getSnapshot('nowhere')).toBeUndefined();
    await expect(read({ snapshotId: 'nowhere' })).rejects.toMatchObject({ status: 'NOT_FOUND' });
    for (const lookup of [{}, { snapshotId, sessionId: 's' }, { snapshotId: '' }]) {
      await expect(read(lookup)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
  });

  test('are aborted while they run; abort returns the status before', async () => {
    const store = await make();
    const { agent } = setUp(store);
    await store.saveSnapshot('p', () => pending());
    expect(await agent.abort('p')).toBe('pending');
    expect(await store.getSnapshot({ snapshotId: 'p' })).toMatchObject({
      status: 'aborted',
      createdAt: pending().createdAt,
    });
    expect(await agent.abort('p')).toBe('aborted');
    expect(await agent.abortAgentAction({ snapshotId: 'p' })).toEqual({ snapshotId: 'p', status: 'aborted' });
    expect(await agent.abortAgentAction({ snapshotId: 'nowhere' })).toEqual({ snapshotId: 'nowhere' });
    expect(await agent.abort('nowhere')).toBeUndefined();
  });

  test.each(['completed', 'failed', 'aborted'] as const)('stay %s when they are aborted after that', async (status) => {
    const store = await make();
    const { agent } = setUp(store);
    await store.saveSnapshot('p', () => pending({ status }));
    expect(await agent.abort('p')).toBe(status);
    expect((await agent.getSnapshot('p'))?.status).toBe(status);
  });

  test('without heartbeats read as expired and are not rewritten', async () => {
    const store = await make();
    const { agent } = setUp(store);
    const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
    for (const [id, rest, status] of [
      ['silent', { heartbeatAt: ago(61_000) }, 'expired'],
      ['alive', { heartbeatAt: ago(1_000) }, 'pending'],
      ['starting', {}, 'pending'],
    ] as const) {
      await store.saveSnapshot(id, () => pending({ snapshotId: id, ...rest }));
      expect((await agent.getSnapshot(id))?.status).toBe(status);
      expect((await store.getSnapshot({ snapshotId: id }))?.status).toBe('pending');
    }
  });
});
