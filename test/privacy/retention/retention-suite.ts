import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { logger } from 'genkit/logging';
import { defineAgent, genkit, type InMemorySessionStoreOptions } from 'genkitx-agents';
import {
  applyRetention,
  archiveToDirectory,
  holdSession,
  releaseSession,
  type ArchivedSession,
} from 'genkitx-agents/privacy';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { storeAround } from '../../session/store-around.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import type { FullStore } from '../rights/erase-suite.ts';

export const DAY = 24 * 3_600_000;
const daysAgo = (days: number): string => new Date(Date.now() - days * DAY).toISOString();

/** Saves a session with turns of the given ages, in days. */
export async function plant(
  store: FullStore,
  sessionId: string,
  days: readonly number[],
  context?: object,
): Promise<void> {
  for (const [n, day] of days.entries()) {
    const parent = n === 0 ? {} : { parentId: `${sessionId} ${n - 1}` };
    const state = { custom: { said: `${sessionId} said ${n}` } };
    const createdAt = daysAgo(day);
    await store.saveSnapshot(
      `${sessionId} ${n}`,
      () => ({ sessionId, ...parent, createdAt, updatedAt: createdAt, status: 'completed', state }),
      { ...(context && { context }) },
    );
  }
}

export async function sessionsIn(store: FullStore, context?: object): Promise<string[]> {
  const { items } = await store.listSessions({ ...(context && { context }) });
  return items.map(({ sessionId }) => sessionId).toSorted();
}

/** The tests of `applyRetention` over one store. */
export function appliesRetention(
  open: (options?: Pick<InMemorySessionStoreOptions, 'snapshotPathPrefix'>) => FullStore,
): void {
  afterEach(() => void vi.useRealTimers());

  it('removes idle sessions, old snapshots and the beginnings of long lines, and only those', async () => {
    const store = open();
    await plant(store, 'idle', [40, 39]);
    await plant(store, 'aged', [100, 90, 5]);
    await plant(store, 'long', [3, 3, 2, 2, 1]);
    await plant(store, 'young', [2, 1]);
    const policy = { idleMs: 30 * DAY, maxAgeMs: 60 * DAY, maxChainLength: 3 };
    const foreseen = await applyRetention(store, policy, { dryRun: true });
    expect(foreseen).toMatchObject({ seen: 4, sessions: 1, snapshots: 6, held: 0, failed: 0 });
    expect(await sessionsIn(store)).toEqual(['aged', 'idle', 'long', 'young']);
    const progress: number[] = [];
    const onProgress = ({ seen }: { seen: number }): unknown => progress.push(seen);
    expect(await applyRetention(store, policy, { onProgress })).toMatchObject({ seen: 4, sessions: 1, snapshots: 6 });
    expect(progress).toEqual([1, 2, 3, 4]);
    const left = (await store.listSessions()).items.map((one) => [one.sessionId, one.snapshotCount]);
    expect(Object.fromEntries(left)).toEqual({ aged: 1, long: 3, young: 2 });
    expect((await store.getSnapshot({ sessionId: 'aged' }))?.state?.custom).toEqual({ said: 'aged said 2' });
    expect(await applyRetention(store, policy)).toMatchObject({ seen: 3, sessions: 0, snapshots: 0, shards: 0 });
  });

  it.each([{ maxAgeMs: 0 }, { maxChainLength: 1 }])(
    'with %j leaves a session able to continue whose last turn failed',
    async (policy) => {
      const store = open();
      const ai = genkit({});
      const fails = (): never => {
        throw new Error('no quota');
      };
      const model = scriptedModel(ai, { replies: ['1', '2', fails, '4'] });
      const agent = defineAgent(ai, { name: 'support', model: model.name, store });
      const send = (text: string) => agent.chat({ sessionId: 'chat' }).send(text);
      await send('one');
      await send('two');
      await expect(send('three')).rejects.toMatchObject({ status: 'INTERNAL' });
      await applyRetention(store, policy);
      expect((await send('four')).text).toBe('4');
      const sent = model.requests.at(-1)!.messages.map(({ content }) => content[0]?.text);
      expect(sent).toEqual(['one', '1', 'two', '2', 'four']);
    },
  );

  it('accepts a function of the session’s summary', async () => {
    const store = open();
    for (const sessionId of ['short', 'kept']) await plant(store, sessionId, [10]);
    await applyRetention(store, ({ sessionId }) => (sessionId === 'short' ? { idleMs: DAY } : undefined));
    expect(await sessionsIn(store)).toEqual(['kept']);
  });

  it('leaves a session on hold until each hold is released', async () => {
    const store = open();
    await plant(store, 'held', [100, 99]);
    await plant(store, 'long', [1, 1]);
    await holdSession(store, { sessionId: 'held', reason: 'a lawsuit' });
    await holdSession(store, { sessionId: 'held', key: 'audit' });
    await holdSession(store, { sessionId: 'long' });
    await expect(holdSession(store, { sessionId: 'unknown' })).rejects.toMatchObject({ status: 'NOT_FOUND' });
    const policy = { idleMs: DAY * 30, maxChainLength: 1 };
    expect(await applyRetention(store, policy)).toMatchObject({ sessions: 0, snapshots: 0, held: 2 });
    await releaseSession(store, { sessionId: 'held' });
    await releaseSession(store, { sessionId: 'long' });
    expect(await applyRetention(store, policy)).toMatchObject({ sessions: 0, snapshots: 1, held: 1 });
    await releaseSession(store, { sessionId: 'held', key: 'audit' });
    expect(await applyRetention(store, policy)).toMatchObject({ sessions: 1, snapshots: 2, held: 0 });
  });

  it('removes a session when it is archived, and leaves it when that fails', async () => {
    const store = open();
    await plant(store, 'one', [10, 9]);
    await plant(store, 'two', [10]);
    const folder = join(temporaryFolder(), 'archive');
    const write = archiveToDirectory(folder);
    const archive = async (session: ArchivedSession): Promise<void> => {
      if (session.summary.sessionId === 'two') throw new Error('the disk is full');
      await write(session);
    };
    expect(await applyRetention(store, { idleMs: DAY }, { archive })).toMatchObject({ sessions: 1, failed: 1 });
    expect(await sessionsIn(store)).toEqual(['two']);
    const names = readdirSync(folder);
    expect(names).toEqual([expect.stringMatching(/^one-[0-9a-f]{32}\.jsonl$/)]);
    const text = readFileSync(join(folder, names[0]!), 'utf8').trimEnd().split('\n');
    const lines = text.map((line) => JSON.parse(line) as { kind: string; snapshot?: { state: unknown } });
    expect(lines.map(({ kind }) => kind)).toEqual(['session', 'snapshot', 'snapshot', 'end']);
    expect(lines[2]!.snapshot!.state).toEqual({ custom: { said: 'one said 1' } });
    const read = await applyRetention(store, { idleMs: DAY }, { archive: write });
    expect(read).toMatchObject({ sessions: 1, failed: 0 });
  });

  it('leaves a session that is written, or put on hold, while it is archived', async () => {
    const store = open();
    await plant(store, 'written', [10]);
    await plant(store, 'held', [10]);
    await plant(store, 'other', [10]);
    const archive = async ({ summary: { sessionId } }: ArchivedSession): Promise<void> => {
      const parent = { sessionId, parentId: `${sessionId} 0`, createdAt: daysAgo(0) };
      if (sessionId === 'written') await store.saveSnapshot('more', () => ({ ...parent, status: 'completed' }));
      if (sessionId === 'held') await holdSession(store, { sessionId });
    };
    const result = await applyRetention(store, { idleMs: DAY }, { archive });
    expect(result).toMatchObject({ sessions: 1, held: 1, failed: 0 });
    expect(await sessionsIn(store)).toEqual(['held', 'written']);
  });

  it('checks the tenants that are named', async () => {
    const prefix = ({ context }: { context?: { tenant?: string } } = {}): string => context?.tenant ?? 'none';
    const store = open({ snapshotPathPrefix: prefix as never });
    const contexts = ['a', 'b', 'c'].map((tenant) => ({ tenant }));
    for (const context of contexts) await plant(store, 'idle', [10], context);
    const policy = (_: unknown, context: unknown) =>
      (context as { tenant: string }).tenant === 'b' ? undefined : { idleMs: DAY };
    expect(await applyRetention(store, policy, { contexts: async () => contexts.slice(0, 2) })).toMatchObject({
      seen: 2,
    });
    const left = await Promise.all(contexts.map((context) => sessionsIn(store, context)));
    expect(left).toEqual([[], ['idle'], ['idle']]);
  });

  it('checks the other tenants when one can’t be listed, and then throws its error', async () => {
    const prefix = ({ context }: { context?: { tenant?: string } } = {}): string => context?.tenant ?? 'none';
    const store = open({ snapshotPathPrefix: prefix as never });
    const contexts = ['a', 'b', 'c'].map((tenant) => ({ tenant }));
    for (const context of contexts) await plant(store, 'idle', [10], context);
    const broken = storeAround(store, (name, args, make) => {
      const { context } = (args[0] ?? {}) as { context?: { tenant: string } };
      if (name === 'listSessions' && context?.tenant !== 'c') throw new Error(`${context?.tenant} is away`);
      return make();
    });
    const warn = vi.spyOn(logger, 'warn').mockReturnValue();
    onTestFinished(() => warn.mockRestore());
    await expect(applyRetention(broken, { idleMs: DAY }, { contexts })).rejects.toThrow('a is away');
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
      'Retention could not list the sessions of a tenant. a is away',
      'Retention could not list the sessions of a tenant. b is away',
    ]);
    const left = await Promise.all(contexts.map((context) => sessionsIn(store, context)));
    expect(left).toEqual([['idle'], ['idle'], []]);
  });

  it('ends when its signal aborts, and continues when it is called again', async () => {
    const store = open();
    for (let n = 0; n < 5; n++) await plant(store, `s${n}`, [10]);
    const controller = new AbortController();
    const onProgress = ({ seen }: { seen: number }): void => void (seen === 2 && controller.abort(new Error('later')));
    const options = { signal: controller.signal, onProgress };
    await expect(applyRetention(store, { idleMs: DAY }, options)).rejects.toThrow('later');
    expect(await sessionsIn(store)).toHaveLength(3);
    expect(await applyRetention(store, { idleMs: DAY })).toMatchObject({ sessions: 3 });
  });

  it.each([365 * DAY, -365 * DAY])('removes nothing more once the clock has jumped by %d ms', async (jump) => {
    const store = open();
    for (const n of [1, 2, 3]) await plant(store, `s${n}`, [1]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const onProgress = (): void => void vi.setSystemTime(Date.now() + jump);
    const policy = { idleMs: 100 * DAY, maxChainLength: 1 };
    await expect(applyRetention(store, policy, { onProgress })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    expect(await sessionsIn(store)).toEqual(['s1', 's2', 's3']);
    vi.useRealTimers();
    // A session that was written with a clock ahead does not look old.
    const future = daysAgo(-1000);
    await store.saveSnapshot('ahead', () => ({ sessionId: 'ahead', createdAt: future, status: 'completed' }));
    expect(await applyRetention(store, { idleMs: 100 * DAY })).toMatchObject({ seen: 4, sessions: 0 });
  });

  it('continues with the others when a session can’t be read or removed', async () => {
    const store = open();
    for (const n of [1, 2, 3]) await plant(store, `s${n}`, [10]);
    const broken = storeAround(store, (name, args, make) => {
      if (name === 'deleteSession' && (args[0] as { sessionId: string }).sessionId === 's2') throw new Error('broken');
      return make();
    });
    expect(await applyRetention(broken, { idleMs: DAY })).toMatchObject({ sessions: 2, failed: 1 });
    expect(await sessionsIn(store)).toEqual(['s2']);
  });
}
