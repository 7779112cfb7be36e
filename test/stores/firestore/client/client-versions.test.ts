import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ScopeId, SessionSnapshotInput } from 'genkitx-agents';
import type { FirestoreSessionStore, FirestoreSessionStoreOptions } from 'genkitx-agents/google-cloud';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { completedSnapshot, Workload } from '../../../../bench/workload.ts';
import { newProject } from '../support/database.ts';

type Client = typeof import('@google-cloud/firestore');

/** The supported versions of the client, by the names under which they are installed. */
const CLIENTS = ['@google-cloud/firestore', 'firestore8', 'firestore9'];

const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };

function versionOf(name: string): string {
  const path = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}

describe.each(CLIENTS.map((name) => ({ name, version: versionOf(name) })))(
  'with version $version of the client',
  ({ name }) => {
    const ends: (() => Promise<unknown>)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0)) await end();
      vi.doUnmock('@google-cloud/firestore');
      vi.resetModules();
    });

    /** Opens stores of one database. The client that they import and the client that they get have this version. */
    async function opener(): Promise<(options?: FirestoreSessionStoreOptions) => FirestoreSessionStore> {
      vi.resetModules();
      vi.doMock('@google-cloud/firestore', () => import(/* @vite-ignore */ name));
      const { Firestore } = (await import('@google-cloud/firestore')) as Client;
      expect(Firestore).toBe(((await import(/* @vite-ignore */ name)) as Client).Firestore);
      const stores = await import('genkitx-agents/google-cloud');
      const projectId = newProject();
      return (options) => {
        const db = new Firestore({ projectId });
        const store = new stores.FirestoreSessionStore({ db, checkpointInterval: 3, shardSize: 1024, ...options });
        ends.push(async () => {
          await store.close();
          await db.terminate();
        });
        return store;
      };
    }

    it('a conversation is saved, resumed by another process, branched, pruned and deleted', async () => {
      const open = await opener();
      const [a, b] = [open(), open()];
      const workload = new Workload({ sessionId: 'chat' });
      const states = Array.from({ length: 8 }, () => workload.next());
      for (const [i, state] of states.entries()) {
        const leaf = await (i % 2 === 0 ? a : b).getSnapshot({ sessionId: 'chat' });
        expect(leaf?.snapshotId).toBe(i === 0 ? undefined : `turn-${i - 1}`);
        const next = completedSnapshot(state, leaf?.snapshotId);
        await a.saveSnapshot(`turn-${i}`, () => next, { expectedLeafId: leaf?.snapshotId ?? null });
      }
      expect((await open().getSnapshot({ sessionId: 'chat' }))?.state).toEqual(states.at(-1));
      const stale = b.saveSnapshot('late', () => completedSnapshot(states[0]!, 'turn-0'), { expectedLeafId: 'turn-0' });
      await expect(stale).rejects.toMatchObject({ status: 'ABORTED' });
      await b.saveSnapshot('branch', () => completedSnapshot(states[0]!, 'turn-3'));
      expect((await a.listSessions()).items).toMatchObject([{ leafId: 'branch', leafCount: 2, snapshotCount: 9 }]);
      expect(await b.prune({ maxChainLength: 3 })).toMatchObject({ snapshots: 3 });
      expect((await a.listSnapshots({ sessionId: 'chat' })).items.map((item) => item.snapshotId)).toEqual([
        'turn-2',
        'turn-3',
        'turn-5',
        'turn-6',
        'turn-7',
        'branch',
      ]);
      for (const i of [3, 5, 7]) {
        expect((await open().getSnapshot({ snapshotId: `turn-${i}` }))?.state).toEqual(states[i]);
      }
      expect(await a.deleteSession({ sessionId: 'chat' })).toMatchObject({ snapshots: 6 });
      expect(await b.getSnapshot({ sessionId: 'chat' })).toBeUndefined();
    });

    it('a running turn is watched, kept alive, and aborted by another process', async () => {
      const open = await opener();
      const [a, b] = [open({ expireAfterMs: 60_000 }), open({ expireAfterMs: 60_000 })];
      await a.saveSnapshot('turn', () => running());
      const told: unknown[] = [];
      const end = a.onSnapshotStateChange('turn', ({ status }) => told.push(status));
      await vi.waitUntil(() => told.length === 1);
      await a.saveSnapshot('turn', (current) => ({ ...current!, heartbeatAt: '2026-01-01T00:00:01.000Z' }));
      await b.saveSnapshot('turn', (current) => ({ ...current!, status: 'aborted' }));
      await vi.waitUntil(() => told.at(-1) === 'aborted');
      end();
      const late = a.saveSnapshot('turn', (current) => ({ ...current!, status: 'completed' }));
      await expect(late).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    });

    it('records are changed by the saves of several processes, each once, and removed', async () => {
      const open = await opener();
      const stores = [open(), open(), open()];
      const change = (record: { n?: number }): { n: number } => ({ n: (record.n ?? 0) + 1 });
      const saves = Array.from({ length: 30 }, (_, i) =>
        stores[i % 3]!.saveSnapshot(`turn-${i}`, () => ({ ...running(), sessionId: `session-${i}` }), {
          scopes: [{ id: ADA, change }],
        }),
      );
      await Promise.all(saves);
      expect(await open().readScopes({ scopes: [ADA] })).toEqual([{ n: 30 }]);
      expect(await stores[0]!.deleteScope({ scope: ADA })).toBe(true);
      expect(await stores[1]!.erase()).toMatchObject({ sessions: 30, snapshots: 30, scopes: 0 });
    });
  },
);

it('a client of another version than the imported one is refused with a message that says what to do', async () => {
  const { FirestoreSessionStore } = await import('genkitx-agents/google-cloud');
  const { Firestore } = (await import(/* @vite-ignore */ CLIENTS[1]!)) as Client;
  const open = (): unknown => new FirestoreSessionStore({ db: new Firestore({ projectId: newProject() }) });
  expect(open).toThrow(/must show one version/);
});

function running(): SessionSnapshotInput {
  return { sessionId: 'run', createdAt: '2026-01-01T00:00:00.000Z', status: 'pending', state: { custom: [[1]] } };
}
