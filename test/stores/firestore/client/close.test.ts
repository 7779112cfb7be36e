import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newProject, openDatabase } from '../support/database.ts';
import { Proxy } from '../support/proxy.ts';
import { makeTurn } from '../../make-turn.ts';

const turn = (sessionId: string): SessionSnapshotInput =>
  makeTurn({ sessionId, state: { custom: 'x'.repeat(10_000) } });

/** 60 calls of all kinds, many of which wait for others. */
function callAll(store: FirestoreSessionStore): Promise<PromiseSettledResult<unknown>[]> {
  const calls: ((i: number) => Promise<unknown>)[] = [
    (i) => store.saveSnapshot(`turn ${i}`, () => turn('one')),
    (i) => store.saveSnapshot(`other ${i}`, () => turn(`session ${i}`)),
    () => store.saveSnapshot('counter', (current) => current ?? turn('two')),
    () => store.getSnapshot({ sessionId: 'one' }),
    () => store.listSessions(),
    () => store.prune({ maxChainLength: 1 }),
  ];
  return Promise.allSettled(Array.from({ length: 60 }, (_, i) => calls[i % calls.length]!(i)));
}

describe('close() while 60 calls are running', () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => void process.on('unhandledRejection', note).on('uncaughtException', note));
  afterEach(async () => {
    process.off('unhandledRejection', note).off('uncaughtException', note);
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled.splice(0)).toEqual([]);
  });

  const expectTyped = async (
    outcomes: Promise<PromiseSettledResult<unknown>[]>,
    statuses: readonly string[],
  ): Promise<void> => {
    for (const outcome of await outcomes) {
      if (outcome.status === 'rejected') expect(statuses).toContain((outcome.reason as { status?: string }).status);
    }
  };

  it('each ends with a typed error or is acknowledged, and acknowledged data exists', async () => {
    const project = newProject();
    const env = process.env['GOOGLE_CLOUD_PROJECT'];
    process.env['GOOGLE_CLOUD_PROJECT'] = project;
    const store = new FirestoreSessionStore();
    await store.saveSnapshot('first', () => turn('one'));
    const told = new Promise((resolve) => store.onSnapshotStateChange('first', resolve));
    await told;
    const calls = callAll(store);
    await store.close();
    await expectTyped(calls, ['FAILED_PRECONDITION']);
    process.env['GOOGLE_CLOUD_PROJECT'] = env;
    const db = openDatabase(project);
    const reader = new FirestoreSessionStore({ db });
    for (const outcome of await calls) {
      const isSaved = outcome.status === 'fulfilled' && typeof outcome.value === 'string';
      if (isSaved) expect(await reader.getSnapshotMetadata({ snapshotId: outcome.value as string })).toBeDefined();
    }
    await db.terminate();
  });

  it.each([0, 20])('also when the application terminates its client during the calls, after %i ms', async (ms) => {
    const db = openDatabase();
    const store = new FirestoreSessionStore({ db });
    await store.saveSnapshot('first', () => turn('one'));
    store.onSnapshotStateChange('first', () => {})();
    const calls = callAll(store);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await Promise.all([db.terminate(), store.close()]);
    await expectTyped(calls, ['FAILED_PRECONDITION', 'UNAVAILABLE']);
  });

  it('a store whose client was terminated says so', async () => {
    const db = openDatabase();
    const store = new FirestoreSessionStore({ db });
    await db.terminate();
    for (const call of [store.getSnapshot({ sessionId: 'one' }), store.saveSnapshot('one', () => turn('one'))]) {
      await expect(call).rejects.toMatchObject({ status: 'FAILED_PRECONDITION', message: /was terminated/ });
    }
    await store.close();
  });

  it('while the database does not answer it takes no longer than the timeout of a request', async () => {
    const proxy = await Proxy.open();
    const db = openDatabase(newProject(), {}, `127.0.0.1:${proxy.port}`);
    const store = new FirestoreSessionStore({ db, requestTimeoutMs: 1500 });
    await store.saveSnapshot('first', () => turn('one'));
    proxy.mute();
    const calls = callAll(store);
    const order: string[] = [];
    const limit = new Promise<void>((resolve) => setTimeout(resolve, 2 * 1500)).then(() => order.push('limit'));
    await store.close().then(() => order.push('closed'));
    await expectTyped(calls, ['FAILED_PRECONDITION', 'UNAVAILABLE']);
    await limit;
    expect(order).toEqual(['closed', 'limit']);
    await proxy.cut();
    await db.terminate();
  });
});
