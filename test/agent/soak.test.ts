import { getEventListeners } from 'node:events';
import { genkit } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { expect, test, vi } from 'vitest';
import { scale } from '../support/scale.ts';
import { call, user } from './helpers.ts';

test('R6 soak: turns in the foreground and the background leave no listener, timer or handle', async () => {
  const ai = genkit({});
  ai.defineModel({ name: 'brief', apiVersion: 'v2' }, async () => ({
    message: { role: 'model', content: [{ text: 'ok' }] },
    finishReason: 'stop',
  }));
  const store = new InMemorySessionStore();
  let watchers = 0;
  const subscribe = store.onSnapshotStateChange.bind(store);
  store.onSnapshotStateChange = (...args) => {
    watchers++;
    const end = subscribe(...args);
    return () => {
      watchers--;
      end();
    };
  };
  const agent = defineAgent(ai, { name: 'soak', model: 'brief', store });
  const { signal } = new AbortController();
  const turns = scale(500, 10_000);
  const handles = () => process.getActiveResourcesInfo().filter((kind) => kind !== 'Immediate').length;
  await call(agent, ['warm up'], {}, { abortSignal: signal });
  const before = handles();
  for (let turn = 0; turn < turns; turn++) {
    const sessionId = `session-${turn % 50}`;
    if (turn % 10 === 0) {
      const { output } = await call(agent, [{ message: user('later'), detach: true }], { sessionId });
      await agent.waitForSnapshot(output.snapshotId!, { metadataOnly: true });
    } else {
      const { output } = await call(agent, ['now'], { sessionId }, { abortSignal: signal });
      expect(output.finishReason).toBe('stop');
    }
    // The sessions do not grow without end: what is measured is what the turns leave.
    if (turn % 500 === 499) for (let id = 0; id < 50; id++) await store.deleteSession({ sessionId: `session-${id}` });
  }
  await vi.waitUntil(() => watchers === 0 && handles() <= before, { timeout: 5000, interval: 5 });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
