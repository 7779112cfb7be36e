import { genkit, type SessionStore } from 'genkit/beta';
import { defineAgent, InMemorySessionStore, type Agent, type AgentAPI } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { serveByGenkit, serveByHandler } from '../../server/support/http.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { deferred, model, recordingStore, user } from '../support/helpers.ts';

const transports: { name: string; reach: (agent: Agent) => Promise<AgentAPI> }[] = [
  { name: 'in process', reach: async (agent) => agent },
  {
    name: 'over HTTP',
    reach: async (agent) => {
      const running = await serveByHandler([agent], { anonymous: true });
      onTestFinished(running.stop);
      return remoteAgent({ url: `${running.url}/worker` });
    },
  },
];

function setUp(store: SessionStore = new InMemorySessionStore(), options: object = {}) {
  const ai = genkit({});
  const gate = deferred<string>();
  const scripted = scriptedModel(ai, { otherwise: () => gate.promise });
  const other = scriptedModel(ai, { name: 'other', otherwise: 'from the other' });
  const agent = defineAgent(ai, {
    name: 'worker',
    model: scripted.name,
    config: { temperature: 1, topK: 3 },
    store,
    ...options,
  });
  return { agent, gate, scripted, other };
}

describe.each(transports)('$name', ({ reach }) => {
  test('waitForSnapshot returns when the run ends, by watching: the store is read twice', async () => {
    const inner = new InMemorySessionStore();
    const { store, calls } = recordingStore(inner);
    const watched: SessionStore = { ...store, onSnapshotStateChange: inner.onSnapshotStateChange.bind(inner) };
    const { agent, gate } = setUp(watched);
    const api = await reach(agent);
    const task = await api.chat().detach('go');
    const reads = () => calls.filter(({ method }) => method === 'getSnapshot').length;
    const waiting = api.waitForSnapshot(task.snapshotId);
    await vi.waitUntil(() => reads() === 1, { interval: 1 });
    gate.resolve('done');
    expect(await waiting).toMatchObject({ status: 'completed', state: { messages: [user('go'), model('done')] } });
    expect(reads()).toBe(2);
    expect((await api.waitForSnapshot(task.snapshotId)).status).toBe('completed');
  });

  test('waitForSnapshot reports an abort, a missing snapshot, and a timeout', async () => {
    const { agent, scripted } = setUp();
    const api = await reach(agent);
    await expect(api.waitForSnapshot('nowhere')).rejects.toMatchObject({ status: 'NOT_FOUND' });
    const task = await api.chat().detach('go');
    await expect(api.waitForSnapshot(task.snapshotId, { timeoutMs: 20 })).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
    });
    await vi.waitUntil(() => scripted.requests.length === 1, { interval: 1 });
    const waiting = api.waitForSnapshot(task.snapshotId, { metadataOnly: true });
    await api.abort(task.snapshotId);
    const snapshot = await waiting;
    expect(snapshot.status).toBe('aborted');
    expect(snapshot.state).toBeUndefined();
  });

  test('waitForSnapshot ends when the heartbeats of a run stop', async () => {
    const store = new InMemorySessionStore();
    const heartbeatAt = new Date().toISOString();
    await store.saveSnapshot('dead', () => ({
      sessionId: 's',
      createdAt: heartbeatAt,
      status: 'pending',
      heartbeatAt,
    }));
    const { agent } = setUp(store, { background: { heartbeatIntervalMs: 10, leaseMs: 30 } });
    expect((await (await reach(agent)).waitForSnapshot('dead')).status).toBe('expired');
  });

  test('metadataOnly reads a snapshot without its state', async () => {
    const { agent, gate } = setUp();
    gate.resolve('hello');
    const api = await reach(agent);
    const { snapshotId, sessionId } = await api.chat().send('hi');
    for (const lookup of [snapshotId!, { snapshotId: snapshotId! }, { sessionId: sessionId! }]) {
      const snapshot = await api.getSnapshot(lookup, { metadataOnly: true });
      expect(snapshot).toMatchObject({ snapshotId, status: 'completed', sessionId });
      expect(snapshot?.state).toBeUndefined();
    }
  });

  test('a turn may override the model and the configuration that turnOverrides allows', async () => {
    const { agent, gate, scripted, other } = setUp(undefined, { turnOverrides: { models: ['other'], config: true } });
    gate.resolve('from the usual');
    const chat = (await reach(agent)).chat();
    expect((await chat.send('hi', { model: 'other', config: { temperature: 0 } })).text).toBe('from the other');
    expect(other.requests[0]?.config).toEqual({ temperature: 0, topK: 3 });
    expect((await chat.send('hi')).text).toBe('from the usual');
    expect(scripted.requests[0]?.config).toEqual({ temperature: 1, topK: 3 });
    await expect(chat.send('hi', { model: 'scripted' })).rejects.toMatchObject({ status: 'PERMISSION_DENIED' });
  });

  test('other overrides are refused before any model call', async () => {
    const { agent, scripted, other } = setUp();
    const chat = (await reach(agent)).chat();
    await expect(chat.send('hi', { model: 'other' })).rejects.toThrow();
    await expect(chat.send('hi', { config: { temperature: 0 } })).rejects.toThrow();
    expect([...scripted.requests, ...other.requests]).toEqual([]);
  });
});

test("waitForSnapshot works with Genkit's server, which does not wait", async () => {
  const { agent, gate } = setUp();
  gate.resolve('done');
  const running = await serveByGenkit({ worker: agent as never });
  onTestFinished(running.stop);
  const api = remoteAgent({ url: `${running.url}/worker` });
  const { snapshotId } = await api.chat().detach('go');
  expect((await api.waitForSnapshot(snapshotId)).status).toBe('completed');
});
