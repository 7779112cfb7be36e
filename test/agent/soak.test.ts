import { createHook } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { genkit } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { expect, onTestFinished, test, vi } from 'vitest';
import { scale } from '../support/scale.ts';
import { call, user } from './support/helpers.ts';

/** Timers that have neither run nor been cleared, those that keep no process alive included. */
function countTimers(): () => number {
  const timers = new Set<number>();
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && timers.add(id)),
    destroy: (id) => void timers.delete(id),
  });
  hook.enable();
  onTestFinished(() => void hook.disable());
  return () => timers.size;
}

/** The active watches of the store. */
function countWatchers(store: InMemorySessionStore): () => number {
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
  return () => watchers;
}

/** Bytes of objects in use. Machine code is not counted: V8 makes it as functions get hot, a megabyte and more of it. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let i = 0; i < 4; i++) collect();
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !name.startsWith('code_'));
  return spaces.reduce((sum, { space_used_size: size }) => sum + size, 0);
}

/** Kinds of turns, in turn. */
const KINDS = ['plain', 'background', 'failing', 'aborted', 'plain', 'chat', 'tool'] as const;
const SESSIONS = 50;

function setUp() {
  const ai = genkit({});
  ai.defineTool({ name: 'look', description: 'Looks.' }, async () => 'seen');
  ai.defineModel({ name: 'brief', apiVersion: 'v2' }, async ({ messages }, { abortSignal, sendChunk }) => {
    const text = messages.at(-1)?.content[0]?.text;
    sendChunk({ content: [{ text: 'o' }] });
    if (text === 'failing') throw new Error('no');
    if (text === 'aborted')
      await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve, { once: true }));
    const part = text === 'tool' ? { toolRequest: { name: 'look', input: {} } } : { text: 'ok' };
    return { message: { role: 'model', content: [part] }, finishReason: 'stop' };
  });
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, { name: 'soak', model: 'brief', tools: ['look'], store });
  return { agent, store };
}

test('soak: turns of all kinds leave no memory, listener, timer, watcher or handle', async () => {
  const { agent, store } = setUp();
  const timers = countTimers();
  const watchers = countWatchers(store);
  // Signals of two kinds of callers: one that lives long, and one that stops its turn.
  const { signal } = new AbortController();
  const handles = () => process.getActiveResourcesInfo().filter((kind) => kind !== 'Immediate').length;

  async function turn(kind: (typeof KINDS)[number], sessionId: string): Promise<void> {
    if (kind === 'background') {
      const { output } = await call(agent, [{ message: user(kind), detach: true }], { sessionId });
      expect((await agent.waitForSnapshot(output.snapshotId!, { metadataOnly: true })).status).toBe('completed');
    } else if (kind === 'chat') {
      await agent.chat({ sessionId }).send(kind, { abortSignal: signal });
    } else if (kind === 'aborted') {
      const caller = new AbortController();
      setImmediate(() => caller.abort());
      const { output } = await call(agent, [kind], { sessionId }, { abortSignal: caller.signal });
      expect(output.finishReason).toBe('aborted');
      expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
    } else {
      const { output } = await call(agent, [kind], { sessionId }, { abortSignal: signal });
      expect(output.finishReason).toBe(kind === 'failing' ? 'failed' : 'stop');
    }
  }

  async function turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await turn(KINDS[i % KINDS.length]!, `session-${i % SESSIONS}`);
      // The sessions do not grow, so that only leaks are measured.
      if (i % 500 === 499 || i === count - 1)
        for (let id = 0; id < SESSIONS; id++) await store.deleteSession({ sessionId: `session-${id}` });
    }
    await vi.waitUntil(() => watchers() === 0, { interval: 5 });
  }

  // The first turns compile and fill caches.
  await turns(700);
  const before = { handles: handles(), heap: heapInUse(), timers: timers() };
  const count = scale(700, 10_000);
  await turns(count);
  expect(handles()).toBeLessThanOrEqual(before.handles);
  // The removal of a timer is reported in the next macrotask.
  await new Promise((resolve) => setImmediate(resolve));
  expect(timers()).toBeLessThanOrEqual(before.timers);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
  // The exporter of traces holds the latest spans of all agents for some seconds.
  let grown = Infinity;
  const isBack = () => (grown = heapInUse() - before.heap) < 1_000_000;
  await vi.waitUntil(isBack, { interval: 500, timeout: 30_000 }).catch(() => {});
  expect(grown, `bytes that ${count} turns left`).toBeLessThan(1_000_000);
}, 1_800_000);
