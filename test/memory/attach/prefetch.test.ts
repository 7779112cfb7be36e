/** The memories of a turn are searched while its session is read, so that the turn does not wait for both one after the other. */
import { defineCustomAgent, InMemorySessionStore } from 'genkitx-agents';
import { contextWindow } from 'genkitx-agents/context';
import { expect, test, vi } from 'vitest';
import { ADA, agentWithMemory, linesOf, remember } from './support.ts';
import { until } from '../pipeline/support.ts';

/** A store whose reads of sessions wait until `release` is called, if `hold` was. */
function heldStore() {
  const store = new InMemorySessionStore();
  let held: Promise<void> | undefined;
  let release: () => void = () => {};
  const read = store.getSnapshot.bind(store);
  store.getSnapshot = async (lookup: Parameters<typeof read>[0]) => {
    await held;
    return read(lookup);
  };
  const hold = () => (held = new Promise((resolve) => (release = resolve)));
  return { store, hold, release: () => release() };
}

test.each([
  ['without a window', undefined],
  ['in a window', contextWindow()],
])('%s, the memories are found before the session is read, once for the turn', async (_, context) => {
  const { store, hold, release } = heldStore();
  const { memory, scope, chat, said, turns } = agentWithMemory({ store, ...(context && { context }) });
  await remember(memory, scope, 'The user prefers a window seat.');
  const first = chat();
  await first.send('Hello.');
  const search = vi.spyOn(memory, 'search');
  const used = vi.spyOn(memory, 'noteUse');
  for (const init of [{ sessionId: first.sessionId }, { snapshotId: first.snapshotId! }]) {
    search.mockClear();
    used.mockClear();
    void hold();
    const calls = said.requests.length;
    const reply = chat(ADA, init).send('Which seat do I prefer?');
    await until(() => search.mock.settledResults[0]?.type === 'fulfilled');
    expect(said.requests).toHaveLength(calls);
    expect(used).not.toHaveBeenCalled();
    release();
    expect((await reply).text).toBe('ok');
    expect(linesOf(said.requests.at(-1)!).at(-1)).toContain('The user prefers a window seat.');
    expect(search).toHaveBeenCalledTimes(1);
    expect(used).toHaveBeenCalledTimes(1);
    expect(turns.at(-1)).toMatchObject({ sessionId: first.sessionId, reasons: [] });
  }
});

test('a session that does not exist uses no memory', async () => {
  const { memory, scope, chat } = agentWithMemory();
  await remember(memory, scope, 'The user prefers a window seat.');
  const used = vi.spyOn(memory, 'noteUse');
  const search = vi.spyOn(memory, 'search');
  await expect(chat(ADA, { snapshotId: 'missing' }).send('Which seat?')).rejects.toThrow('missing');
  await until(() => search.mock.settledResults.every(({ type }) => type === 'fulfilled'));
  expect(used).not.toHaveBeenCalled();
});

test('the memories of a session are searched when the session is known', async () => {
  const { memory, chat, said } = agentWithMemory({ attach: { scope: 'session' } });
  const first = chat();
  await first.send('Hello.');
  const scope = memory.scopeFor('session', { context: ADA, sessionId: first.sessionId! });
  await remember(memory, scope, 'The order is number 17.');
  for (const init of [{ sessionId: first.sessionId }, { snapshotId: first.snapshotId! }]) {
    await chat(ADA, init).send('Which order?');
    expect(linesOf(said.requests.at(-1)!).at(-1)).toContain('The order is number 17.');
  }
});

test('a custom agent searches nothing by itself', async () => {
  const { ai, memory, attached } = agentWithMemory();
  const search = vi.spyOn(memory, 'search');
  const agent = defineCustomAgent(ai, { name: 'custom', memory: attached }, async (session) => {
    await session.run(async () => {});
    return {};
  });
  await agent.chat({}, { context: ADA }).send('Which seat?');
  expect(search).not.toHaveBeenCalled();
});
