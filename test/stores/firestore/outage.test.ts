import type { SessionSnapshot, SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scale } from '../../support/scale.ts';
import { newProject, openDatabase } from './support/database.ts';
import { Proxy } from './support/proxy.ts';

const turn = (extra: Partial<SessionSnapshotInput>): SessionSnapshotInput => ({
  sessionId: 'chat',
  createdAt: '2026-01-01T00:00:00.000Z',
  status: 'completed',
  state: { messages: [] },
  ...extra,
});

async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 10));
}

describe('outage:', () => {
  let proxy: Proxy;
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);

  beforeEach(async () => {
    proxy = await Proxy.open();
    process.on('unhandledRejection', note);
  });
  afterEach(async () => {
    process.off('unhandledRejection', note);
    await proxy.cut();
  });

  const rounds = scale(2, 150);
  it(`with the database gone for ${rounds} rounds of all calls each ends as UNAVAILABLE, nothing is lost, and watchers come back`, async () => {
    const project = newProject();
    const settings = { 'grpc.max_reconnect_backoff_ms': 1000 };
    const db = openDatabase(project, settings, `127.0.0.1:${proxy.port}`);
    const direct = openDatabase(project);
    const store = new FirestoreSessionStore({ db, requestTimeoutMs: 3000 });
    const elsewhere = new FirestoreSessionStore({ db: direct });
    // A database that has just begun may take longer than the store under test waits.
    await elsewhere.saveSnapshot('one', () => turn({}));
    await elsewhere.saveSnapshot('running', () => turn({ parentId: 'one', status: 'pending' }));
    const isReached = () =>
      store.getSnapshot({ snapshotId: 'one' }).then(
        () => true,
        () => false,
      );
    while (!(await isReached())) await new Promise((resolve) => setTimeout(resolve, 10));
    const told: SessionSnapshot[] = [];
    store.onSnapshotStateChange('running', (news) => told.push(news));
    await until(() => told.length === 1);

    await proxy.cut();
    const calls: (() => Promise<unknown>)[] = [
      () => store.getSnapshot({ sessionId: 'chat' }),
      () => store.getSnapshot({ snapshotId: 'one' }),
      () => store.getSnapshotMetadata({ sessionId: 'chat' }),
      () => store.saveSnapshot('lost', () => turn({ parentId: 'running' })),
      () => store.saveSnapshot('running', (current) => ({ ...current!, status: 'completed' })),
      () => store.listSessions(),
      () => store.listSnapshots({ sessionId: 'chat' }),
      () => store.deleteSession({ sessionId: 'other' }),
      () => store.prune({ maxAgeMs: 1 }),
    ];
    for (let round = 0; round < rounds; round++) {
      const outcomes = await Promise.allSettled(calls.map((call) => call()));
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { status: 'UNAVAILABLE' } });
      }
    }
    await elsewhere.saveSnapshot('running', (current) => ({ ...current!, status: 'aborted' }));
    await proxy.restore();

    await until(() => told.length === 2);
    expect(told.map((news) => news.status)).toEqual(['pending', 'aborted']);
    expect((await store.getSnapshot({ sessionId: 'chat' }))?.status).toBe('aborted');
    await store.saveSnapshot('next', () => turn({ parentId: 'running' }));
    expect((await elsewhere.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('next');
    expect(rejections).toEqual([]);
    await Promise.all([store.close(), elsewhere.close()]);
    await Promise.all([db.terminate(), direct.terminate()]);
  });

  it('bad ids are refused before anything is sent, and leave no rejection behind', async () => {
    const db = openDatabase();
    const store = new FirestoreSessionStore({ db });
    for (const id of ['.', '..', '__x__', '\uD800', 'a/b', 'x'.repeat(1024)]) {
      expect(await store.getSnapshot({ snapshotId: id })).toBeUndefined();
      expect(await store.getSnapshot({ sessionId: id })).toBeUndefined();
    }
    for (const id of ['', ' ', 'x'.repeat(1025)]) {
      await expect(store.getSnapshot({ snapshotId: id })).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(rejections).toEqual([]);
    await db.terminate();
  });
});
