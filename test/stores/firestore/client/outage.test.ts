import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SessionSnapshot } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort, startEmulator } from '../../../support/emulator.ts';
import { isTorture, scale } from '../../../support/scale.ts';
import { newProject, openDatabase } from '../support/database.ts';
import { Proxy } from '../support/proxy.ts';
import { makeTurn } from '../../make-turn.ts';

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

  const rounds = scale(1, 150);
  it(`with the database gone for ${rounds} rounds of all calls each ends as UNAVAILABLE, nothing is lost, and watchers come back`, async () => {
    const project = newProject();
    const settings = { 'grpc.max_reconnect_backoff_ms': 1000 };
    const db = openDatabase(project, settings, `127.0.0.1:${proxy.port}`);
    const direct = openDatabase(project);
    const store = new FirestoreSessionStore({ db, requestTimeoutMs: 3000 });
    const elsewhere = new FirestoreSessionStore({ db: direct });
    // A database that has just started may take longer than the timeout of the store under test.
    await elsewhere.saveSnapshot('one', () => makeTurn({}));
    await elsewhere.saveSnapshot('running', () => makeTurn({ parentId: 'one', status: 'pending' }));
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
      () => store.saveSnapshot('lost', () => makeTurn({ parentId: 'running' })),
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
    await store.saveSnapshot('next', () => makeTurn({ parentId: 'running' }));
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
  });
});

/** Makes the emulator export its data, which it does not keep otherwise. Returns the file to start it from. */
async function exported(host: string, project: string, folder: string): Promise<string> {
  const response = await fetch(`http://${host}/emulator/v1/projects/${project}:export`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      database: `projects/${project}/databases/(default)`,
      export_directory: folder,
      export_name: 'export',
    }),
  });
  expect(response.status).toBe(200);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return join(
    folder,
    files.find((file) => file.endsWith('.overall_export_metadata'))!,
  );
}

// Each start of an emulator takes many seconds of processor time.
if (isTorture) {
  it('outage: with the database restarted in the middle every acknowledged save exists, calls in between end with typed errors, watchers come back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-emulator-'));
    const port = await freePort();
    let emulator = await startEmulator({ port });
    const project = newProject();
    const db = openDatabase(project, { 'grpc.max_reconnect_backoff_ms': 1000 }, emulator.host);
    const store = new FirestoreSessionStore({ db, requestTimeoutMs: 3000 });
    const acknowledged: string[] = [];
    const statuses = new Set<unknown>();
    const createdAt = '2026-01-01T00:00:00.000Z';

    const saveTurns = async (count: number): Promise<void> => {
      for (const end = acknowledged.length + count; acknowledged.length < end;) {
        try {
          const leaf = await store.getSnapshot({ sessionId: 'chat' });
          const id = `turn ${acknowledged.length}`;
          const next = {
            sessionId: 'chat',
            createdAt,
            status: 'completed' as const,
            ...(leaf && { parentId: leaf.snapshotId }),
          };
          if (leaf?.snapshotId !== id)
            await store.saveSnapshot(id, () => next, { expectedLeafId: leaf?.snapshotId ?? null });
          acknowledged.push(id);
        } catch (error) {
          statuses.add((error as { status?: unknown }).status);
        }
      }
    };

    const told: unknown[] = [];
    await saveTurns(10);
    await store.saveSnapshot('running', () => ({ createdAt, status: 'pending' }));
    store.onSnapshotStateChange('running', (news) => told.push(news.status));
    while (told.length < 1) await new Promise((resolve) => setTimeout(resolve, 10));

    const file = await exported(emulator.host, project, folder);
    await emulator.stop();
    const during = saveTurns(10);
    while (statuses.size === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    emulator = await startEmulator({ port, args: [`--import-data=${file}`] });
    await during;
    await store.saveSnapshot('running', (current) => ({ ...current!, status: 'aborted' }));
    while (told.at(-1) !== 'aborted') await new Promise((resolve) => setTimeout(resolve, 10));

    // The import creates new documents, so watchers may be notified of the first status again.
    expect(told.filter((status, i) => status !== told[i - 1])).toEqual(['pending', 'aborted']);
    expect([...statuses]).toEqual(['UNAVAILABLE']);
    const { items } = await store.listSnapshots({ sessionId: 'chat' });
    expect(items.map((item) => item.snapshotId)).toEqual(acknowledged);
    expect(acknowledged).toHaveLength(20);
    await store.close();
    await db.terminate();
    await emulator.stop();
    rmSync(folder, { recursive: true, force: true });
  });
}
