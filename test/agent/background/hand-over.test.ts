import { genkit, type SessionStore } from 'genkit/beta';
import { agentRuntime, handOverRuns, InMemorySessionStore, recoverRuns } from 'genkitx-agents';
import { describe, expect, test, vi } from 'vitest';
import { call, deferred } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';
import { detached, worker } from '../support/worker.ts';

const LONG_MS = 60_000;

test.each([[{}], [null], ['ai'], [new InMemorySessionStore()]])(
  '%o is refused in place of a Genkit instance',
  async (wrong) => {
    const refused = { status: 'INVALID_ARGUMENT', message: expect.stringContaining('neither a Genkit instance') };
    await expect(recoverRuns(wrong as never)).rejects.toMatchObject(refused);
    await expect(handOverRuns(wrong as never)).rejects.toMatchObject(refused);
  },
);

test('recoverRuns refuses an unknown option', async () => {
  const misspelt = { contexts: [{ auth: { uid: 'ada' } }] };
  await expect(recoverRuns(genkit({}), misspelt as never)).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringContaining("did you mean 'context'?"),
  });
});

describe.each(STORE_KINDS)('a process that shuts down, on $name', ({ make }) => {
  test('waits for its background runs; a run that ends in time is not handed over', async () => {
    const store = await make();
    const leaving = worker(store);
    const { output } = await call(leaving.agent, [detached('one')], { sessionId: 'job' });
    const { release } = await leaving.called(1);
    const leave = handOverRuns(leaving.ai, { graceMs: LONG_MS });
    release('1');
    expect(await leave).toEqual({ handedOver: 0 });
    // Its end is stored, too.
    expect((await store.getSnapshot({ snapshotId: output.snapshotId! }))?.status).toBe('completed');
  });

  test('hands over runs that need longer; another process continues them at once from the last completed turn', async () => {
    const store = await make();
    const leaving = worker(store);
    const { output } = await call(leaving.agent, ['one', 'two', detached('three')], { sessionId: 'job' });
    (await leaving.called(1)).release('1');
    const late = await leaving.called(2);
    expect(await handOverRuns(leaving.ai)).toEqual({ handedOver: 1 });
    expect(late.signal.aborted).toBe(true);
    const id = output.snapshotId!;
    expect((await leaving.agent.getSnapshot(id))?.status).toBe('expired');

    // No lease has to expire first.
    const next = worker(store, { answer: 'next' });
    const { runs } = await recoverRuns(next.ai, { snapshotIds: [id] });
    expect(runs).toEqual([{ agent: 'worker', sessionId: 'job', snapshotId: id, generation: 2, outcome: 'continued' }]);
    late.release('too late');
    const last = await next.settled(id);
    expect(last.status).toBe('completed');
    expect(last.state?.messages?.map(({ content }) => content[0]?.text)).toEqual([
      'one',
      '1',
      'two',
      'next',
      'three',
      'next',
    ]);
    expect(await handOverRuns(leaving.ai)).toEqual({ handedOver: 0 });
  });

  test('hands over no turn whose caller waits', async () => {
    const store = await make();
    const leaving = worker(store);
    const turn = call(leaving.agent, ['one'], { sessionId: 'job' });
    const { release } = await leaving.called(1);
    expect(await handOverRuns(leaving.ai)).toEqual({ handedOver: 0 });
    release('1');
    expect((await turn).output.finishReason).toBe('stop');
  });
});

test('a process that hands its runs over takes over no runs', async () => {
  const store = new InMemorySessionStore();
  let looks = 0;
  const list = store.listSessions.bind(store);
  store.listSessions = (options) => {
    looks++;
    return list(options);
  };
  const background = { recover: true, heartbeatIntervalMs: 50, leaseMs: 1000 };
  const leaving = worker(store, { background });
  await vi.waitUntil(() => looks > 0, { interval: 1 });
  const { output } = await call(leaving.agent, [detached('one')], { sessionId: 'job' });
  await leaving.called(1);
  expect(await handOverRuns(leaving.ai)).toEqual({ handedOver: 1 });
  // Another process finds it by its timer, which is as fast.
  const next = worker(store, { background, answer: 'next' });
  expect((await next.settled(output.snapshotId!)).status).toBe('completed');
  expect(leaving.scripted.requests).toHaveLength(1);
  expect(next.scripted.requests).toHaveLength(1);
  await handOverRuns(next.ai);
  await store.close();
});

test('a run that the store could not release stops and is found when its lease expires', async () => {
  const inner = new InMemorySessionStore();
  let isDown = false;
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: async (...args) => {
      if (isDown) throw new Error('out of reach');
      return inner.saveSnapshot(...args);
    },
  };
  const leaving = worker(store);
  const { output } = await call(leaving.agent, [detached('one')], { sessionId: 'job' });
  const { signal } = await leaving.called(1);
  isDown = true;
  expect(await handOverRuns(leaving.ai)).toEqual({ handedOver: 0 });
  expect(signal.aborted).toBe(true);
  expect((await inner.getSnapshot({ snapshotId: output.snapshotId! }))?.status).toBe('pending');
});

test('handOverRuns waits for a run that is being stored as detached', async () => {
  const inner = new InMemorySessionStore();
  const storing = deferred();
  const stored = deferred();
  const store: SessionStore = {
    getSnapshot: (lookup) => inner.getSnapshot(lookup),
    saveSnapshot: async (...args) => {
      storing.resolve();
      await stored.promise;
      return inner.saveSnapshot(...args);
    },
  };
  const leaving = worker(store, { answer: '1' });
  const turn = call(leaving.agent, [detached('one')], { sessionId: 'job' });
  await storing.promise;
  stored.resolve();
  const { output } = await turn;
  await handOverRuns(leaving.ai, { graceMs: LONG_MS });
  expect((await inner.getSnapshot({ snapshotId: output.snapshotId! }))?.status).toBe('completed');
});

test.each([{ graceMs: -1 }, { graceMs: 2 ** 31 }, { grace: 1 }])('the options %j are refused', async (options) => {
  const ai = genkit({ plugins: [agentRuntime({})] });
  await expect(handOverRuns(ai, options)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
});
