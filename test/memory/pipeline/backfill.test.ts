/** Learning from the sessions of a store that are older than the memory. */
import { GenkitError } from 'genkit';
import { InMemorySessionStore } from 'genkitx-agents';
import { logger } from 'genkit/logging';
import { processMemoryJobs } from 'genkitx-agents/memory';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { echoTexts } from './corroborate.ts';
import { DAY, range, setUp, textsOf, user } from './support.ts';

test('backfill learns from the sessions of a store, and later only from those that continued', async () => {
  const { memory, scope, store } = setUp({
    extract: echoTexts,
    model: undefined,
  });
  const sessions = new InMemorySessionStore();
  const save = (sessionId: string, texts: string[]) =>
    sessions.saveSnapshot(
      undefined,
      () =>
        ({
          sessionId,
          createdAt: new Date().toISOString(),
          status: 'completed',
          state: { messages: texts.map(user) },
        }) as never,
    );
  for (let i = 0; i < 3; i++) await save(`s${i}`, [`Alpha${i} is a hobby.`]);
  const options = { store: sessions, scopeOf: () => scope };
  expect(await memory.backfill(options)).toMatchObject({ sessions: 3, enqueued: 3, failed: 0, isFull: false });
  await memory.settled();
  expect(await memory.backfill(options)).toMatchObject({ sessions: 3, enqueued: 0 });
  const leaf = await sessions.getSnapshot({ sessionId: 's1' });
  const messages = [...leaf!.state!.messages!, user('Omega is a pet.')];
  await sessions.saveSnapshot('next', () => ({
    ...leaf!,
    snapshotId: 'next',
    parentId: leaf!.snapshotId,
    state: { messages },
  }));
  expect(await memory.backfill(options)).toMatchObject({ enqueued: 1 });
  await memory.settled();
  expect(await textsOf(store)).toEqual([
    'Alpha0 is a hobby.',
    'Alpha1 is a hobby.',
    'Alpha2 is a hobby.',
    'Omega is a pet.',
  ]);
});

describe('backfill', () => {
  /** A store with sessions of one message, `s0` written first. */
  async function withSessions(count: number, options: Parameters<typeof setUp>[0] = {}) {
    const set = setUp({ extract: () => [], model: undefined, ...options });
    const sessions = new InMemorySessionStore();
    for (const i of range(0, count)) {
      const createdAt = new Date(Date.now() - (count - i) * DAY).toISOString();
      const state = { messages: [user('I like tea.')] };
      const snapshot = { snapshotId: `a${i}`, sessionId: `s${i}`, createdAt, status: 'completed', state } as const;
      await sessions.saveSnapshot(`a${i}`, () => snapshot);
    }
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    return { ...set, sessions, warn, options: { store: sessions, scopeOf: () => set.scope } };
  }

  test('is done at the first session that is too old, and has no cursor then', async () => {
    const { memory, options } = await withSessions(150);
    const progress: (string | undefined)[] = [];
    const onProgress = ({ cursor }: { cursor?: string }) => progress.push(cursor);
    const result = await memory.backfill({ ...options, withinMs: 120.5 * DAY, onProgress });
    expect(result).toEqual({ sessions: 120, enqueued: 120, failed: 0, isFull: false });
    expect(progress).toEqual([expect.any(String), undefined]);
  });

  test('of a full queue continues at its cursor', async () => {
    const { memory, options } = await withSessions(150, { worker: false, limits: { maxJobs: 120 } });
    const { cursor, ...first } = await memory.backfill(options);
    expect(first).toEqual({ sessions: 121, enqueued: 120, failed: 0, isFull: true });
    await processMemoryJobs(memory);
    expect(await memory.backfill({ ...options, cursor: cursor! })).toEqual({
      sessions: 50,
      enqueued: 30,
      failed: 0,
      isFull: false,
    });
  });

  test.each<[string, Parameters<typeof setUp>[0], object, string, RegExp]>([
    ['a manager without a model', { extract: undefined }, {}, 'FAILED_PRECONDITION', /needs a model/],
    ['an invalid scope', {}, { scopeOf: () => 'ada' }, 'INVALID_ARGUMENT', /Not a memory scope/],
    ['a scopeOf that is async', {}, { scopeOf: async () => undefined }, 'INVALID_ARGUMENT', /Not a memory scope/],
  ])('throws for %s', async (_, of, more, status, message) => {
    const { memory, options, warn } = await withSessions(3, of);
    const run = memory.backfill({ ...options, ...more });
    await expect(run).rejects.toMatchObject({ status, message: expect.stringMatching(message) });
    expect(await memory.jobs.list()).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });

  test('throws for a manager that is closed, before it or during it', async () => {
    const { memory, options } = await withSessions(3);
    let seen = 0;
    const scopeOf = () => {
      if (++seen === 2) void memory.close();
      return options.scopeOf();
    };
    await expect(memory.backfill({ ...options, scopeOf })).rejects.toThrow(/This memory manager is closed/);
    expect(seen).toBe(2);
    const empty = { ...options, store: new InMemorySessionStore() };
    await expect(memory.backfill(empty)).rejects.toThrow(/This memory manager is closed/);
  });

  test('counts a session that can’t be read, and continues', async () => {
    const { memory, options, sessions, warn } = await withSessions(3);
    const read = sessions.getSnapshot.bind(sessions);
    sessions.getSnapshot = async (lookup) => {
      if (lookup.sessionId === 's1') throw new GenkitError({ status: 'DATA_LOSS', message: 'Damaged.' });
      return read(lookup);
    };
    expect(await memory.backfill(options)).toMatchObject({ sessions: 3, enqueued: 2, failed: 1 });
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
