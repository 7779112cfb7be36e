import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copySessions, FileSessionStore, type SessionSnapshot, type SnapshotStore } from 'genkitx-agents';
import { beforeAll, describe, expect, it } from 'vitest';
import { itemsOf } from '../../src/store/list/items-of.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { childScript } from '../support/child-script.ts';
import { Random } from '../support/random.ts';
import { scale, seed } from '../support/scale.ts';

const SESSIONS = scale(60, 1000);
const KILLS = scale(3, 20);
const STATUSES = ['completed', 'failed', 'aborted', 'pending'] as const;

let script: string;
beforeAll(async () => {
  script = await childScript(new URL('copying.ts', import.meta.url), { isWhole: true });
});

/** Trees of one to five snapshots with branches, records of sessions, and of a user. */
async function fill(store: FileSessionStore): Promise<void> {
  const random = new Random(seed);
  const scope = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
  for (let i = 0; i < SESSIONS; i++) {
    const sessionId = `s${i}`;
    const ids: string[] = [];
    for (let turn = 0; turn <= random.below(5); turn++) {
      const snapshotId = `${sessionId}-${turn}`;
      const parentId = ids.length > 0 ? random.pick(ids) : undefined;
      const status = turn === 0 ? 'completed' : random.pick([...STATUSES]);
      const state = { custom: { turn, note: 'x'.repeat(random.below(400)) }, messages: [] };
      await store.saveSnapshot(
        snapshotId,
        () => ({ sessionId, parentId, createdAt: new Date(i * 1000 + turn).toISOString(), status, state }),
        { session: { ownerId: 'ada', title: `Session ${i}` }, scopes: [{ id: scope, change: () => ({ last: i }) }] },
      );
      if (status === 'completed') ids.push(snapshotId);
    }
    if (i % 3 === 0) await store.writeRecord({ sessionId, kind: 'note', key: 'k', value: i });
  }
}

/** The data of a store: sessions in their order, each with its snapshots in their order, and its records. */
async function contentOf(store: SnapshotStore & FileSessionStore): Promise<unknown> {
  const sessions: unknown[] = [];
  for await (const session of itemsOf((page) => store.listSessions(page), { limit: 1000 })) {
    const { sessionId } = session;
    const { items } = await store.listSnapshots({ sessionId, limit: 1000 });
    const snapshots: (SessionSnapshot | undefined)[] = [];
    for (const { snapshotId } of items) snapshots.push(await store.getSnapshot({ snapshotId }));
    const records = (await store.readRecords({ sessionId })).map(({ kind, key, value }) => ({ kind, key, value }));
    sessions.push({ session, snapshots, records });
  }
  const { items: scopes } = await store.listScopes();
  return { sessions, scopes, values: await store.readScopes({ scopes }) };
}

describe(`copy under kills: (seed ${seed})`, () => {
  it(
    `of ${SESSIONS} sessions, killed ${KILLS} times, ends with the same trees, ids, order and states, and nothing twice`,
    async () => {
      const [from, to] = [temporaryFolder(), temporaryFolder()];
      const source = new FileSessionStore(from, { durability: 'fast' });
      await fill(source);
      const random = new Random(seed + 1);
      let kills = 0;
      while (kills < KILLS) {
        const call = 1 + random.below(Math.ceil((SESSIONS * 15) / KILLS));
        const child = spawn(process.execPath, [script, from, to, String(call)], { stdio: 'inherit' });
        const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
        expect([code, signal]).toEqual([null, 'SIGKILL']);
        kills++;
      }
      const target = new FileSessionStore(to, { durability: 'fast' });
      const before = await target.listSessions({ limit: 1000 });
      expect(before.items.length).toBeGreaterThan(0);
      const result = await copySessions(source, target);
      expect(result).toMatchObject({ sessions: SESSIONS, diverged: [] });
      expect(await contentOf(target)).toEqual(await contentOf(source));
      await Promise.all([source.close(), target.close()]);
    },
    scale(120_000, 3_600_000),
  );
});
