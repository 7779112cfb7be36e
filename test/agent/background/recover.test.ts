import { randomUUID } from 'node:crypto';
import { generateMiddleware, GenkitError, z } from 'genkit';
import { genkit, type Part, type SessionStore } from 'genkit/beta';
import { logger } from 'genkit/logging';
import {
  abortRun,
  agentRuntime,
  defineAgent,
  defineCustomAgent,
  InMemorySessionStore,
  recoverRuns,
  type CheckStore,
} from 'genkitx-agents';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { storeAround } from '../../session/store-around.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, model, recordingStore, user } from '../support/helpers.ts';
import { ALL_STORE_KINDS } from '../support/stores.ts';
import { detached, worker } from '../support/worker.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** The leases of all runs here expire: heartbeats are rare. */
function letLeasesEnd(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 });
}

/** A fake clock that only waiting advances, so that a lease lasts equally long on a busy machine. */
function letWaitsMoveTheClock(): void {
  const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
  vi.useFakeTimers({ toFake: ['Date', 'performance', ...timers], now: Date.now() });
}

const texts = (messages: { content: { text?: string }[] }[] | undefined) =>
  messages?.map(({ content }) => content[0]?.text);

/** The statuses of a snapshot and those before it, the last first. */
async function statusesTo(store: SessionStore, snapshotId: string | undefined): Promise<(string | undefined)[]> {
  const snapshot = snapshotId === undefined ? undefined : await store.getSnapshot({ snapshotId });
  return snapshot ? [snapshot.status, ...(await statusesTo(store, snapshot.parentId))] : [];
}

test('a run with a turn whose end was not stored is found when its lease expires', async () => {
  let refusedId: string | undefined;
  let refusals = 0;
  const store = storeAround(new InMemorySessionStore(), (name, [snapshotId], make) => {
    if (name !== 'saveSnapshot' || snapshotId !== refusedId) return make();
    refusals++;
    throw new GenkitError({ status: 'PERMISSION_DENIED', message: 'not now' });
  });
  const owner = worker(store);
  const { output } = await call(owner.agent, ['one', detached('two')], { sessionId: 'job' });
  const { release } = await owner.called(1);
  refusedId = (await store.getSnapshot({ snapshotId: output.snapshotId! }))!.parentId!;
  release(Promise.reject(new Error('no model')) as never);
  // Neither its failure nor its end is stored.
  await vi.waitUntil(() => refusals === 2, { interval: 1 });
  await new Promise(setImmediate);
  refusedId = undefined;
  letLeasesEnd();
  const rescuer = worker(store, { answer: 'rescued' });
  expect((await recoverRuns(rescuer.ai)).runs).toMatchObject([{ snapshotId: output.snapshotId, outcome: 'continued' }]);
  const { state } = await rescuer.settled(output.snapshotId!);
  expect(texts(state?.messages)).toEqual(['one', 'rescued', 'two', 'rescued']);
});

test('a turn that continues from before a run is rejected when the run is taken over and completes meanwhile', async () => {
  const store = new InMemorySessionStore();
  const dead = worker(store);
  const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
  await dead.called(1);
  letLeasesEnd();
  const other = worker(store);
  const two = call(other.agent, ['two'], { sessionId: 'job' });
  const { release } = await other.called(1);
  const rescuer = worker(store, { answer: 'rescued' });
  await recoverRuns(rescuer.ai);
  await rescuer.settled(output.snapshotId!);
  release('too late');
  expect((await two).output).toMatchObject({
    finishReason: 'failed',
    error: { status: 'ABORTED' },
    message: model('too late'),
  });
  const { snapshotId, state } = (await other.agent.getSnapshot({ sessionId: 'job' }))!;
  expect([snapshotId, texts(state?.messages)]).toEqual([output.snapshotId, ['one', 'rescued']]);
});

describe.each(ALL_STORE_KINDS)('a run whose process died, on $name', ({ make }) => {
  test('is taken over, continues from the last completed turn, and loses no input', async () => {
    const store = await make();
    const dead = worker(store);
    const { output } = await call(dead.agent, ['one', 'two', detached('three')], { sessionId: 'job' });
    (await dead.called(1)).release('1');
    await dead.called(2);
    letLeasesEnd();
    const id = output.snapshotId!;
    expect((await dead.agent.getSnapshot(id))?.status).toBe('expired');
    const { check } = store as Partial<CheckStore>;
    const kinds = async () => (await check?.call(store))?.findings.map(({ kind, sessionId }) => `${kind} ${sessionId}`);
    expect(new Set((await kinds()) ?? ['expired job'])).toEqual(new Set(['expired job']));
    const rescuer = worker(store, { answer: 'rescued' });
    expect(await recoverRuns(rescuer.ai, { snapshotIds: [id] })).toEqual({
      runs: [{ agent: 'worker', sessionId: 'job', snapshotId: id, generation: 2, outcome: 'continued' }],
      unlisted: [],
    });
    const last = await rescuer.settled(id);
    expect(last.status).toBe('completed');
    expect(texts(last.state?.messages)).toEqual(['one', '1', 'two', 'rescued', 'three', 'rescued']);
    expect(await recoverRuns(rescuer.ai, { snapshotIds: [id] })).toEqual({ runs: [], unlisted: [] });
    expect((await kinds()) ?? []).toEqual([]);
    // Callers do not see the internal fields of the run.
    expect(last).not.toHaveProperty('backgroundRun');
    expect(await rescuer.agent.getSnapshot(id, { metadataOnly: true })).not.toHaveProperty('backgroundRun');
  });

  test('is taken over by one of many processes', async () => {
    const store = await make();
    const dead = worker(store);
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    await dead.called(1);
    letLeasesEnd();
    const snapshotIds = [output.snapshotId!];
    const rescuers = Array.from({ length: 8 }, () => worker(store, { answer: 'rescued' }));
    const taken = await Promise.all(rescuers.map(({ ai }) => recoverRuns(ai, { snapshotIds })));
    expect(taken.flatMap(({ runs }) => runs)).toHaveLength(1);
    await rescuers[0]!.settled(snapshotIds[0]!);
    expect(rescuers.flatMap(({ scripted }) => scripted.requests)).toHaveLength(1);
  });

  test('is not taken over while it is alive, nor after its end', async () => {
    const store = await make();
    const living = worker(store);
    const { output } = await call(living.agent, [detached('one')]);
    const other = worker(store, { answer: 'never' });
    const snapshotIds = [output.snapshotId!, 'unknown'];
    expect((await recoverRuns(other.ai, { snapshotIds })).runs).toEqual([]);
    (await living.called(1)).release('1');
    await living.settled(output.snapshotId!);
    letLeasesEnd();
    expect((await recoverRuns(other.ai, { snapshotIds })).runs).toEqual([]);
    expect(other.scripted.requests).toEqual([]);
  });

  test('that was only paused: its late reply is refused, and it stops', async () => {
    const store = await make();
    // Without watching, so that the late save itself has to be refused.
    const { store: slow, calls } = recordingStore(store);
    const sleeper = worker(slow);
    const { output } = await call(sleeper.agent, ['one', detached('two')], { sessionId: 'job' });
    const asleep = await sleeper.called(1);
    letLeasesEnd();
    const rescuer = worker(store, { answer: 'rescued' });
    await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] });
    const last = await rescuer.settled(output.snapshotId!);
    const before = calls.length;
    asleep.release('too late');
    // It tries to save the completion of its first turn, and the abort of both.
    await vi.waitUntil(() => calls.length === before + 3, { interval: 1 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await rescuer.agent.getSnapshot(output.snapshotId!)).toEqual(last);
    expect(texts(last.state?.messages)).toEqual(['one', 'rescued', 'two', 'rescued']);
    expect(sleeper.scripted.requests).toHaveLength(1);
  });

  test('that was only paused and notices the takeover: it aborts no turn that the other process has not claimed yet', async () => {
    const store = await make();
    const sleeper = worker(store);
    const { output } = await call(sleeper.agent, ['one', detached('two')], { sessionId: 'job' });
    const { signal } = await sleeper.called(1);
    letLeasesEnd();
    let saves = 0;
    const slow: SessionStore = {
      getSnapshot: (lookup) => store.getSnapshot(lookup),
      saveSnapshot: async (...args) => {
        // Between the claim of the last turn and that of the first.
        if (++saves === 2 && store.onSnapshotStateChange) {
          await vi.waitUntil(() => signal.aborted, { interval: 1 });
          for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
        }
        return store.saveSnapshot(...args);
      },
    };
    const rescuer = worker(slow, { answer: 'rescued' });
    const { runs } = await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] });
    expect(runs).toMatchObject([{ outcome: 'continued' }]);
    const last = await rescuer.settled(output.snapshotId!);
    expect(texts(last.state?.messages)).toEqual(['one', 'rescued', 'two', 'rescued']);
  });

  test('that was only paused: its next heartbeat is refused, and its model call stops', async () => {
    const store = await make();
    const sleeper = worker(store, { background: { heartbeatIntervalMs: 200, leaseMs: 60_000 } });
    const { output } = await call(sleeper.agent, [detached('one')], { sessionId: 'job' });
    const { signal } = await sleeper.called(1);
    letLeasesEnd();
    const rescuer = worker(store);
    // A heartbeat with the current time may have come first.
    await store.saveSnapshot(output.snapshotId, (current) => ({
      ...current!,
      heartbeatAt: new Date(0).toISOString(),
    }));
    expect((await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] })).runs).toHaveLength(1);
    const { release } = await rescuer.called(1);
    await vi.waitUntil(() => signal.aborted, { interval: 1 });
    expect((await rescuer.agent.getSnapshot(output.snapshotId!))?.status).toBe('pending');
    release('rescued');
    expect(texts((await rescuer.settled(output.snapshotId!)).state?.messages)).toEqual(['one', 'rescued']);
  });

  test('is taken over maxAttempts times and then given up, its input kept', async () => {
    const store = await make();
    const background = { maxAttempts: 2 };
    const first = worker(store, { background });
    const { output } = await call(first.agent, ['one', detached('two')], { sessionId: 'job' });
    const id = output.snapshotId!;
    for (const generation of [2, 3]) {
      letLeasesEnd();
      const next = worker(store, { background });
      expect((await recoverRuns(next.ai, { snapshotIds: [id] })).runs).toMatchObject([
        { generation, outcome: 'continued' },
      ]);
      await next.called(1);
    }
    letLeasesEnd();
    const last = worker(store, { background });
    expect((await recoverRuns(last.ai, { snapshotIds: [id] })).runs).toMatchObject([
      { generation: 4, outcome: 'settled' },
    ]);
    const given = await last.agent.getSnapshot(id);
    expect(given).toMatchObject({
      status: 'failed',
      finishReason: 'failed',
      error: { status: 'ABORTED', message: expect.stringContaining('given up') as string },
    });
    expect(texts(given?.state?.messages)).toEqual(['one', 'two']);
    expect((await last.agent.getSnapshot(given!.parentId!))?.status).toBe('failed');
    expect(last.scripted.requests).toEqual([]);
  });

  test('of an existing session continues from its completed turns', async () => {
    const store = await make();
    const dead = worker(store);
    const before = call(dead.agent, ['zero'], { sessionId: 'job' });
    (await dead.called(1)).release('0');
    const parentId = (await before).output.snapshotId;
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    await dead.called(2);
    letLeasesEnd();
    const rescuer = worker(store, { answer: 'rescued' });
    await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] });
    const last = await rescuer.settled(output.snapshotId!);
    expect(last.parentId).toBe(parentId);
    expect(texts(last.state?.messages)).toEqual(['zero', '0', 'one', 'rescued']);
  });

  test('that was aborted by one of its turns is not run again', async () => {
    const store = await make();
    const dead = worker(store);
    const { output } = await call(dead.agent, ['one', 'two', detached('three')], { sessionId: 'job' });
    await dead.called(1);
    const last = (await dead.agent.getSnapshot(output.snapshotId!))!;
    const first = (await dead.agent.getSnapshot(last.parentId!))!.parentId!;
    // The process died before it saw the abort.
    const { store: silent } = recordingStore(store);
    await silent.saveSnapshot(first, (current) => ({ ...current!, status: 'aborted' }));
    letLeasesEnd();
    const rescuer = worker(store, { answer: 'never' });
    const { runs } = await recoverRuns(rescuer.ai, { snapshotIds: [last.snapshotId] });
    expect(runs.every(({ outcome }) => outcome === 'settled')).toBe(true);
    expect((await rescuer.settled(last.snapshotId)).status).toBe('aborted');
    expect(rescuer.scripted.requests).toEqual([]);
  });

  test.each(['first', 'last'] as const)('ends with all of its turns when its %s turn is aborted', async (which) => {
    // The store can't be watched, so the dead process does not see the abort.
    const { store, calls } = recordingStore(await make());
    const dead = worker(store);
    const before = call(dead.agent, ['zero'], { sessionId: 'job' });
    (await dead.called(1)).release('0');
    await before;
    const { output } = await call(dead.agent, ['one', 'two', detached('three')], { sessionId: 'job' });
    (await dead.called(2)).release('1');
    await dead.called(3);
    const last = output.snapshotId!;
    const first = (await dead.agent.getSnapshot(last))!.parentId!;
    const other = worker(store, { answer: 'never' });
    calls.length = 0;
    expect(await other.agent.abort(which === 'first' ? first : last)).toBe('pending');
    // Back to the run's first turn, which has completed.
    if (which === 'last') expect(calls.map(({ method }) => method)).toEqual(Array(3).fill('saveSnapshot'));
    expect(await statusesTo(store, last)).toEqual(['aborted', 'aborted', 'completed', 'completed']);
    letLeasesEnd();
    expect((await recoverRuns(other.ai, { snapshotIds: [last] })).runs).toEqual([]);
  });

  test('and whose abort was interrupted: the next abort ends its other turns', async () => {
    const { store } = recordingStore(await make());
    const dead = worker(store);
    const { output } = await call(dead.agent, ['one', detached('two')], { sessionId: 'job' });
    await dead.called(1);
    await store.saveSnapshot(output.snapshotId, (current) => ({ ...current!, status: 'aborted' }));
    expect(await worker(store).agent.abort(output.snapshotId!)).toBe('aborted');
    expect(await statusesTo(store, output.snapshotId)).toEqual(['aborted', 'aborted']);
  });

  test('and of which one turn can not be saved: the named turn is aborted, the next abort ends the others', async () => {
    const store = await make();
    const [first, last] = [randomUUID(), randomUUID()];
    const backgroundRun = { id: last, agent: 'job', owner: 'dead', generation: 1, leaseMs: 60_000 };
    const pending = {
      sessionId: 'job',
      createdAt: new Date(0).toISOString(),
      status: 'pending',
      backgroundRun,
    } as const;
    await store.saveSnapshot(first, () => ({ ...pending, state: {} }));
    await store.saveSnapshot(last, () => ({ ...pending, parentId: first, state: {} }));
    const failing = recordingStore(store).store;
    const save = failing.saveSnapshot.bind(failing);
    failing.saveSnapshot = async (id, ...rest) => {
      if (id === first) throw new Error('The disk is full.');
      return save(id, ...rest);
    };
    expect(await abortRun(failing, last)).toBe('pending');
    expect(await statusesTo(store, last)).toEqual(['aborted', 'pending']);
    expect(await abortRun(store, last)).toBe('aborted');
    expect(await statusesTo(store, last)).toEqual(['aborted', 'aborted']);
  });

  test('while its clock was ahead is taken over', async () => {
    const store = await make();
    const dead = worker(store);
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    await dead.called(1);
    const heartbeatAt = new Date(Date.now() + 86_400_000).toISOString();
    await store.saveSnapshot(output.snapshotId, (current) => ({ ...current!, heartbeatAt }));
    expect((await dead.agent.getSnapshot(output.snapshotId!))?.status).toBe('expired');
    const { check } = store as Partial<CheckStore>;
    expect((await check?.call(store))?.findings ?? [{ kind: 'expired' }]).toMatchObject([{ kind: 'expired' }]);
    const rescuer = worker(store, { answer: 'rescued' });
    expect((await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] })).runs).toHaveLength(1);
    expect((await rescuer.settled(output.snapshotId!)).status).toBe('completed');
  });
});

test('a process whose clock is set forward neither takes over a run of its own, nor begins a turn beside it', async () => {
  const store = new InMemorySessionStore();
  const living = worker(store);
  const { output } = await call(living.agent, ['one', detached('two')], { sessionId: 'job' });
  (await living.called(1)).release('1');
  const { release } = await living.called(2);
  letLeasesEnd();
  expect((await recoverRuns(living.ai)).runs).toEqual([]);
  const refused = await call(living.agent, ['three'], { sessionId: 'job' });
  expect(refused.output.error?.message).toContain('is running in the background');
  release('2');
  expect(texts((await living.settled(output.snapshotId!)).state?.messages)).toEqual(['one', '1', 'two', '2']);
  expect(living.scripted.requests).toHaveLength(2);
});

describe('finding the runs whose processes died', () => {
  test('needs only the list of the sessions, and sees every branch', async () => {
    const store = new InMemorySessionStore();
    const dead = worker(store);
    const alone = (await call(dead.agent, [detached('one')], { sessionId: 'alone' })).output.snapshotId!;
    const first = call(dead.agent, ['zero'], { sessionId: 'branched' });
    (await dead.called(2)).release('0');
    const root = (await first).output.snapshotId!;
    const branch = (await call(dead.agent, ['a', detached('b')], { snapshotId: root })).output.snapshotId!;
    await dead.called(3);
    // Another branch is the latest leaf by now.
    const other = call(dead.agent, ['c'], { snapshotId: root });
    (await dead.called(4)).release('c');
    await other;
    letLeasesEnd();
    const rescuer = worker(store, { answer: 'rescued' });
    const { runs } = await recoverRuns(rescuer.ai);
    expect(runs.map(({ snapshotId }) => snapshotId).toSorted()).toEqual([alone, branch].toSorted());
    for (const id of [alone, branch]) expect((await rescuer.settled(id)).status).toBe('completed');
  });

  test('reads nothing of sessions that have no running turn', async () => {
    const store = new InMemorySessionStore();
    const agent = worker(store, { answer: 'ok' });
    for (let i = 0; i < 20; i++) await call(agent.agent, ['hi'], { sessionId: `s${i}` });
    const reads = (['getSnapshot', 'getSnapshotMetadata', 'listSnapshots'] as const).map((name) =>
      vi.spyOn(store, name),
    );
    const lists = vi.spyOn(store, 'listSessions');
    expect((await recoverRuns(worker(store).ai)).runs).toEqual([]);
    expect(lists).toHaveBeenCalledTimes(1);
    for (const read of reads) expect(read).not.toHaveBeenCalled();
  });

  test("does not touch other agents' runs and foreground turns", async () => {
    const store = new InMemorySessionStore();
    const dead = worker(store, { name: 'other' });
    await call(dead.agent, [detached('one')]);
    const foreground = worker(store);
    void call(foreground.agent, ['two']);
    await foreground.called(1);
    letLeasesEnd();
    expect((await recoverRuns(worker(store).ai)).runs).toEqual([]);
    expect((await recoverRuns(worker(store, { name: 'other', answer: 'ok' }).ai)).runs).toHaveLength(1);
  });

  test('is impossible with a store of three methods, which is reported; a named run is taken over', async () => {
    const { store } = recordingStore(new InMemorySessionStore());
    const dead = worker(store);
    const { output } = await call(dead.agent, [detached('one')]);
    letLeasesEnd();
    const rescuer = worker(store, { answer: 'rescued' });
    expect(await recoverRuns(rescuer.ai)).toEqual({ runs: [], unlisted: ['worker'] });
    expect((await recoverRuns(rescuer.ai, { snapshotIds: [output.snapshotId!] })).runs).toHaveLength(1);
    expect((await rescuer.settled(output.snapshotId!)).status).toBe('completed');
  });

  test('is done by the process itself where background.recover is on', async () => {
    const store = new InMemorySessionStore();
    const dead = worker(store);
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    letWaitsMoveTheClock();
    const ai = genkit({
      plugins: [agentRuntime({ store, background: { recover: true, heartbeatIntervalMs: 5, leaseMs: 20 } })],
    });
    const scripted = scriptedModel(ai, { otherwise: 'rescued' });
    const rescuer = defineAgent(ai, { name: 'worker', model: scripted.name });
    const isRescued = (snapshotId: string) =>
      vi.waitUntil(async () => (await rescuer.getSnapshot(snapshotId))?.status === 'completed', { interval: 2 });
    await isRescued(output.snapshotId!);
    // And again on its timer, not only at the start.
    const later = await call(dead.agent, [detached('two')], { sessionId: 'later' });
    await isRescued(later.output.snapshotId!);
    await store.close();
  });
});

test.each([
  ['had started', true, 'failed'],
  ['had not started', false, 'completed'],
])(
  'forged resume: one interrupt, one execution: a run that died when its approved tool %s',
  async (_, starts, status) => {
    const store = new InMemorySessionStore();
    let runs = 0;
    const request: Part = { toolRequest: { name: 'act', ref: '1', input: {} } };
    const process = (isDead: boolean) => {
      const ai = genkit({});
      const act = ai.defineTool(
        { name: 'act', description: 'Acts.', inputSchema: z.object({}) },
        async (__, { interrupt, resumed }) => {
          if (!resumed) interrupt();
          runs++;
          return isDead ? new Promise<string>(() => {}) : 'done';
        },
      );
      const stuck = generateMiddleware({ name: 'stuck' }, () => ({
        tool: async (part, options, next) => {
          if (isDead && !starts && part.metadata?.['resumed']) await new Promise(() => {});
          return next(part, options);
        },
      }));
      const scripted = scriptedModel(ai, { replies: isDead ? [[request]] : [], otherwise: 'bye' });
      return {
        ai,
        agent: defineAgent(ai, { name: 'worker', model: scripted.name, tools: [act], store, use: [stuck()] }),
      };
    };
    const dead = process(true);
    const { snapshotId } = (await call(dead.agent, ['go'], { sessionId: 'job' })).output;
    const restart = [{ ...request, metadata: { resumed: true } } as never];
    const { output } = await call(dead.agent, [{ resume: { restart }, detach: true }], { snapshotId: snapshotId! });
    await vi.waitUntil(
      async () => {
        const { resumption } = (await store.getSnapshot({ snapshotId: snapshotId! })) as {
          resumption?: { started?: true };
        };
        return resumption && (!starts || (resumption.started && runs === 1));
      },
      { interval: 2 },
    );
    letLeasesEnd();
    const rescuer = process(false);
    expect((await recoverRuns(rescuer.ai)).runs).toMatchObject([{ outcome: 'continued' }]);
    const end = await rescuer.agent.waitForSnapshot(output.snapshotId!);
    expect(end.status).toBe(status);
    if (starts) expect(end.error?.status).toBe('FAILED_PRECONDITION');
    expect(runs).toBe(1);
    const answer = { resume: { respond: [{ toolResponse: { name: 'act', ref: '1', output: 'done' } }] } };
    // The caller may answer for a tool without a result.
    const answered = (await call(rescuer.agent, [answer], { snapshotId: snapshotId! })).output;
    expect(answered.finishReason).toBe(starts ? 'stop' : 'failed');
  },
);

describe('where background.recover is on', () => {
  const recovering = { recover: true, heartbeatIntervalMs: 5, leaseMs: 20 };

  beforeEach(letWaitsMoveTheClock);

  /** Counts the lists of sessions, and waits for the next one. */
  function counting(store: InMemorySessionStore) {
    let looks = 0;
    const list = store.listSessions.bind(store);
    store.listSessions = async (options) => {
      const page = await list(options);
      looks++;
      return page;
    };
    return (more: number) => {
      const from = looks;
      return vi.waitUntil(() => looks >= from + more, { interval: 2 });
    };
  }

  async function deadRun(store: InMemorySessionStore) {
    const dead = worker(store, { background: { heartbeatIntervalMs: 2 ** 30, leaseMs: 2 ** 31 - 1 } });
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    await dead.called(1);
    await store.saveSnapshot(output.snapshotId, (current) => ({
      ...current!,
      heartbeatAt: new Date(0).toISOString(),
    }));
    return output.snapshotId!;
  }

  test('a run whose agent is defined later is found', async () => {
    const store = new InMemorySessionStore();
    const snapshotId = await deadRun(store);
    const looked = counting(store);
    const early = worker(store, { name: 'other', background: recovering, answer: 'rescued' });
    await looked(2);
    // By now the run is older than the searched sessions.
    await vi.waitUntil(async () => {
      const { updatedAt } = (await store.getSnapshot({ snapshotId }))!;
      return Date.now() - Date.parse(updatedAt!) > 10 * recovering.leaseMs;
    });
    await looked(2);
    const late = worker(store, { background: recovering, answer: 'rescued' });
    expect((await late.settled(snapshotId)).status).toBe('completed');
    expect(early.scripted.requests).toEqual([]);
    await store.close();
  });

  test('a run that could not be taken over is found again when the store is back', async () => {
    const store = new InMemorySessionStore();
    const snapshotId = await deadRun(store);
    const looked = counting(store);
    let isDown = true;
    const save = store.saveSnapshot.bind(store);
    store.saveSnapshot = async (...args) => {
      if (isDown) throw new Error('read-only');
      return save(...args);
    };
    const rescuer = worker(store, { background: recovering, answer: 'rescued' });
    await looked(2);
    await vi.waitUntil(async () => {
      const { updatedAt } = (await store.getSnapshot({ snapshotId }))!;
      return Date.now() - Date.parse(updatedAt!) > 10 * recovering.leaseMs;
    });
    await looked(2);
    isDown = false;
    expect((await rescuer.settled(snapshotId)).status).toBe('completed');
    await store.close();
  });

  describe('after a search that did not find a run', () => {
    const HOUR = 3_600_000;

    /** A dead run that is listed only after `list`. */
    async function lateRun() {
      const store = new InMemorySessionStore();
      await call(worker(store, { answer: 'hello' }).agent, ['hi'], { sessionId: 'other' });
      const snapshotId = await deadRun(store);
      const listSessions = store.listSessions.bind(store);
      const lists = vi.spyOn(store, 'listSessions');
      lists.mockImplementation(async (options) => {
        const page = await listSessions(options);
        return { ...page, items: page.items.filter(({ sessionId }) => sessionId === 'other') };
      });
      return { store, snapshotId, lists, listSessions };
    }

    test('it is found when the clock was ahead meanwhile', async () => {
      const { store, snapshotId, lists } = await lateRun();
      const rescuer = worker(store, { background: recovering, answer: 'rescued' });
      const searched = async () => {
        const from = lists.mock.calls.length;
        await vi.waitUntil(() => lists.mock.calls.length >= from + 2, { interval: 2 });
      };
      await searched();
      vi.setSystemTime(Date.now() + HOUR);
      await searched();
      vi.setSystemTime(Date.now() - HOUR);
      lists.mockRestore();
      expect((await rescuer.settled(snapshotId)).status).toBe('completed');
      await store.close();
    });

    test('it is found within a day, whatever time its session has', async () => {
      const { store, snapshotId, lists, listSessions } = await lateRun();
      const background = { recover: true, leaseMs: HOUR };
      const rescuer = worker(store, { background, answer: 'rescued' });
      await vi.advanceTimersByTimeAsync(HOUR);
      lists.mockImplementation(async (options) => {
        const page = await listSessions(options);
        return { ...page, items: page.items.map((item) => ({ ...item, updatedAt: new Date(0).toISOString() })) };
      });
      await vi.advanceTimersByTimeAsync(24 * HOUR);
      expect((await rescuer.settled(snapshotId)).status).toBe('completed');
      await store.close();
    });
  });

  test.each([
    ['listed', undefined],
    ['named', new Error('tenant service is away')],
  ])('a tenant that can’t be %s is logged, and the others are searched', async (_, failure) => {
    let brokenTenant: string | undefined;
    const store = new InMemorySessionStore({
      snapshotPathPrefix: (options) => {
        const tenant = options?.context?.auth?.['uid'] as string;
        if (tenant === brokenTenant) throw new Error('tenant service is away');
        return tenant;
      },
    });
    const contexts = ['ada', 'eve'].map((uid) => ({ auth: { uid } }));
    const dead = worker(store, { background: { heartbeatIntervalMs: 2 ** 30, leaseMs: 2 ** 31 - 1 } });
    const { output } = await call(dead.agent, [detached('one')], {}, { context: contexts[1]! });
    brokenTenant = 'ada';
    const warn = vi.spyOn(logger, 'warn').mockReturnValue();
    const recoverContexts = async () => contexts;
    worker(store, {
      name: 'first',
      background: { ...recovering, recoverContexts: failure ? () => Promise.reject(failure) : recoverContexts },
    });
    const rescuer = worker(store, { background: { ...recovering, recoverContexts }, answer: 'rescued' });
    const read = () => rescuer.agent.getSnapshot(output.snapshotId!, { context: contexts[1]! });
    await vi.waitUntil(async () => (await read())?.status === 'completed', { interval: 2 });
    expect(String(warn.mock.calls[0])).toMatch(/runs to take over failed.*tenant service is away/);
    warn.mockRestore();
    await store.close();
  });

  test('a run is found when the store was empty at first, as a directory that is not mounted yet', async () => {
    const store = new InMemorySessionStore();
    const snapshotId = await deadRun(store);
    const list = vi.spyOn(store, 'listSessions').mockResolvedValue({ items: [] });
    const rescuer = worker(store, { background: recovering, answer: 'rescued' });
    await vi.waitUntil(() => list.mock.calls.length > 10, { interval: 2 });
    list.mockRestore();
    expect((await rescuer.settled(snapshotId)).status).toBe('completed');
    await store.close();
  });

  test.each(['UNAVAILABLE', 'FAILED_PRECONDITION'] as const)(
    'it looks again, and logs it, when the store could not list its sessions (%s)',
    async (status) => {
      const store = new InMemorySessionStore();
      const snapshotId = await deadRun(store);
      const list = vi.spyOn(store, 'listSessions').mockRejectedValue(new GenkitError({ status, message: 'is away' }));
      const warn = vi.spyOn(logger, 'warn').mockReturnValue();
      const rescuer = worker(store, { background: recovering, answer: 'rescued' });
      const isLogged = () => warn.mock.calls.some(([text]) => /runs to take over failed.*is away/.test(String(text)));
      await vi.waitUntil(isLogged, { interval: 2 });
      list.mockRestore();
      expect((await rescuer.settled(snapshotId)).status).toBe('completed');
      warn.mockRestore();
      await store.close();
    },
  );
});

describe('the input of a run that was taken over', () => {
  test('is the context of the recovering process with the part that keepContext kept, and selects the tenant', async () => {
    const store = new InMemorySessionStore({
      snapshotPathPrefix: (options) => options?.context?.auth?.['uid'] ?? 'anonymous',
    });
    const seen: unknown[] = [];
    const define = (wait: boolean) => {
      const ai = genkit({});
      const background = {
        keepContext: ({ auth }: { auth?: Record<string, unknown> }) => ({
          auth: { uid: auth?.['uid'], role: 'admin' },
        }),
      };
      const agent = defineCustomAgent(ai, { name: 'worker', store, background }, async (sess, { context }) => {
        await sess.run(async () => {
          if (wait) await new Promise(() => {});
          seen.push(context, ai.currentContext());
        });
        return {};
      });
      return { ai, agent };
    };
    const context = { auth: { uid: 'ada', token: 'secret' } };
    const { output } = await call(define(true).agent, [detached('one')], {}, { context });
    letLeasesEnd();
    const stored = await store.getSnapshot({ snapshotId: output.snapshotId!, context });
    expect(JSON.stringify(stored)).not.toContain('secret');
    const rescuer = define(false);
    expect((await recoverRuns(rescuer.ai)).runs).toEqual([]);
    expect((await recoverRuns(rescuer.ai, { context: { auth: { uid: 'ada' } } })).runs).toHaveLength(1);
    await vi.waitUntil(() => seen.length === 2, { interval: 1 });
    const kept = { auth: { uid: 'ada', role: 'admin' } };
    expect(seen).toEqual([kept, kept]);
  });

  test('is each original input: a resume, and overrides of the model', async () => {
    const store = new InMemorySessionStore();
    const inputs: unknown[] = [];
    const define = (wait: boolean) => {
      const ai = genkit({});
      const agent = defineCustomAgent(ai, { name: 'worker', store }, async (sess) => {
        await sess.run(async (input) => {
          if (wait) await new Promise(() => {});
          inputs.push(input);
        });
        return {};
      });
      return { ai, agent };
    };
    const respond = [{ toolResponse: { name: 'ask', ref: '1', output: { yes: true } } }];
    const asked = [{ resume: { respond } }, { message: user('two'), config: { temperature: 0 } }];
    await call(define(true).agent, [asked[0]!, { ...asked[1]!, detach: true }]);
    letLeasesEnd();
    await recoverRuns(define(false).ai);
    await vi.waitUntil(() => inputs.length === 2, { interval: 1 });
    expect(inputs).toEqual(asked);
  });

  test('may be empty: a run without a turn ends', async () => {
    const store = new InMemorySessionStore();
    const define = (wait: boolean) => {
      const ai = genkit({});
      const agent = defineCustomAgent(ai, { name: 'worker', store }, async (sess) => {
        for await (const _ of sess.inputCh);
        if (wait) await new Promise(() => {});
        return {};
      });
      return { ai, agent };
    };
    const { output } = await call(define(true).agent, [{ detach: true }]);
    letLeasesEnd();
    const rescuer = define(false);
    expect((await recoverRuns(rescuer.ai)).runs).toHaveLength(1);
    await vi.waitUntil(async () => (await rescuer.agent.getSnapshot(output.snapshotId!))?.status === 'completed', {
      interval: 1,
    });
  });

  test('is complete after a prune during the run', async () => {
    const store = new InMemorySessionStore();
    const dead = worker(store);
    const turns = call(dead.agent, ['zero', 'one'], { sessionId: 'job' });
    (await dead.called(1)).release('0');
    (await dead.called(2)).release('1');
    await turns;
    const { output } = await call(dead.agent, [detached('two')], { sessionId: 'job' });
    expect((await store.prune({ maxChainLength: 1 })).snapshots).toBe(1);
    letLeasesEnd();
    const rescuer = worker(store, { answer: '2' });
    expect((await recoverRuns(rescuer.ai)).runs).toMatchObject([{ outcome: 'continued' }]);
    const { status, state } = await rescuer.settled(output.snapshotId!);
    expect([status, texts(state?.messages)]).toEqual(['completed', ['zero', '0', 'one', '1', 'two', '2']]);
  });

  test('whose first snapshot is gone is given up', async () => {
    const store = new InMemorySessionStore();
    const dead = worker(store);
    const first = call(dead.agent, ['zero'], { sessionId: 'job' });
    (await dead.called(1)).release('0');
    const { snapshotId: gone } = (await first).output;
    const { output } = await call(dead.agent, [detached('one')], { sessionId: 'job' });
    letLeasesEnd();
    const without = storeAround(store, (name, [lookup], make) => {
      const isGone = name === 'getSnapshot' && (lookup as { snapshotId?: string }).snapshotId === gone;
      return isGone ? Promise.resolve(undefined) : make();
    });
    const rescuer = worker(without, { answer: 'never' });
    expect((await recoverRuns(rescuer.ai)).runs).toMatchObject([{ outcome: 'settled' }]);
    expect(await rescuer.agent.getSnapshot(output.snapshotId!)).toMatchObject({
      status: 'failed',
      state: { messages: [user('zero'), model('0'), user('one')] },
    });
  });
});

test("Genkit's own runtime reads the snapshots of a run: pending, expired, completed", async () => {
  const store = new InMemorySessionStore();
  const ours = worker(store);
  const { output } = await call(ours.agent, [detached('one')], { sessionId: 'job' });
  const ai = genkit({});
  const theirs = ai.defineCustomAgent({ name: 'worker', store }, async (sess) => {
    await sess.run(async () => {});
    return {};
  });
  const read = (): Promise<{ status?: string } | undefined> =>
    theirs.getSnapshotDataAction({ snapshotId: output.snapshotId! });
  expect(await read()).toMatchObject({ status: 'pending', heartbeatAt: expect.any(String) as string });
  letLeasesEnd();
  expect(await read()).toMatchObject({ status: 'expired' });
  vi.useRealTimers();
  (await ours.called(1)).release('1');
  await ours.settled(output.snapshotId!);
  expect(await read()).toMatchObject({ status: 'completed', state: { messages: [user('one'), model('1')] } });
});

test('invalid options of background are refused', () => {
  const store = new InMemorySessionStore();
  for (const background of [
    { maxAttempts: -1 },
    { recover: 'yes' },
    { lease: 1 },
    { heartbeatIntervalMs: 0.5 },
    { leaseMs: 2 ** 31 },
  ]) {
    expect(() => worker(store, { background })).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }));
  }
});
