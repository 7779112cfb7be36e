import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore as GenkitFileSessionStore } from 'genkit/beta';
import { describe, expect, it } from 'vitest';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { entriesBelow, readJson, temporaryFolder } from './support/folders.ts';

interface Custom {
  n: number;
}

const A = '11111111-1111-4111-8111-111111111111';
const B = '22222222-2222-4222-8222-222222222222';

const FIRST = { createdAt: '2026-01-01T00:00:00.000Z', status: 'completed', state: { custom: { n: 0 } } } as const;

type AnyStore = Pick<FileSessionStore<Custom>, 'getSnapshot' | 'saveSnapshot'>;

async function save(store: AnyStore, id: string, n: number, parentId?: string, sessionId = A): Promise<void> {
  await store.saveSnapshot(id, () => ({
    sessionId,
    createdAt: new Date(1.7e12 + n * 1000).toISOString(),
    status: 'completed',
    ...(parentId !== undefined && { parentId }),
    state: { sessionId, custom: { n }, messages: [{ role: 'user', content: [{ text: `message ${n}` }] }] },
  }));
}

/** A folder of Genkit's own store: a session of four snapshots with a branch, and one of a single snapshot. */
async function genkitFolder(): Promise<{ folder: string; genkit: GenkitFileSessionStore<Custom> }> {
  const folder = temporaryFolder();
  const genkit = new GenkitFileSessionStore<Custom>(folder);
  await save(genkit, 'a1', 1);
  await save(genkit, 'a2', 2, 'a1');
  await save(genkit, 'a3', 3, 'a2');
  await save(genkit, 'a2b', 4, 'a1');
  await save(genkit, 'b1', 5, undefined, B);
  return { folder, genkit };
}

describe('a folder that Genkit’s own store wrote', () => {
  it('is opened: every snapshot by its id, the latest leaf, the lists', async () => {
    const { folder, genkit } = await genkitFolder();
    const before = entriesBelow(folder);
    const store = new FileSessionStore<Custom>(folder);
    for (const id of ['a1', 'a2', 'a3', 'a2b', 'b1']) {
      expect(await store.getSnapshot({ snapshotId: id })).toEqual(await genkit.getSnapshot({ snapshotId: id }));
    }
    expect((await store.getSnapshot({ sessionId: A }))?.snapshotId).toBe('a2b');
    expect((await store.getSnapshotMetadata({ sessionId: B }))?.snapshotId).toBe('b1');
    const { items } = await store.listSnapshots({ sessionId: A });
    expect(items.map((item) => item.snapshotId)).toEqual(['a1', 'a2', 'a3', 'a2b']);
    const sessions = (await store.listSessions()).items;
    expect(sessions.map(({ sessionId, leafId, leafCount }) => [sessionId, leafId, leafCount])).toEqual([
      [B, 'b1', 1],
      [A, 'a2b', 2],
    ]);
    expect(entriesBelow(folder), 'reading writes nothing').toEqual(before);
  });

  it('goes on with our saves; nothing of ours starts from its files', async () => {
    const { folder } = await genkitFolder();
    const store = new FileSessionStore<Custom>(folder);
    await save(store, 'a4', 10, 'a3');
    await save(store, 'a5', 11, 'a4');
    rmSync(join(folder, 'global/a3.json'));
    const cold = new FileSessionStore<Custom>(folder);
    expect((await cold.getSnapshot({ sessionId: A }))?.state?.custom).toEqual({ n: 11 });
    expect((await cold.getSnapshot({ snapshotId: 'a4' }))?.state?.custom).toEqual({ n: 10 });
    await expect(cold.getSnapshot({ snapshotId: 'a3' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    expect((await cold.getSnapshot({ sessionId: B }))?.snapshotId).toBe('b1');
    expect((await cold.listSessions()).items).toHaveLength(2);
  });

  it('its snapshots can be rewritten, pruned and deleted by our store', async () => {
    const { folder } = await genkitFolder();
    const store = new FileSessionStore<Custom>(folder);
    await store.saveSnapshot('a3', (current) => ({ ...current!, state: { ...current!.state, custom: { n: 33 } } }));
    expect((await new FileSessionStore<Custom>(folder).getSnapshot({ snapshotId: 'a3' }))?.state?.custom).toEqual({
      n: 33,
    });
    expect(await store.prune({ maxChainLength: 1 })).toMatchObject({ snapshots: 2 });
    expect((await store.listSnapshots({ sessionId: A })).items.map((item) => item.snapshotId)).toEqual(['a3', 'a2b']);
    expect(await store.deleteSession({ sessionId: A })).toMatchObject({ snapshots: 2 });
    // Names of locks are random: any letters may be in them.
    const left = entriesBelow(folder).filter((path) => !path.startsWith('.locks/'));
    expect(left.filter((path) => path.includes('a2') || path.includes(A))).toEqual([]);
  });

  it('a session that our store names differently is deleted with its pointer, and no other one’s', async () => {
    const folder = temporaryFolder();
    const genkit = new GenkitFileSessionStore<Custom>(folder);
    await save(genkit, 'a1', 1, undefined, 'My Session');
    await save(genkit, 'b1', 2, undefined, 'my session');
    const store = new FileSessionStore<Custom>(folder);
    await save(store, 'a2', 3, 'a1', 'My Session');
    expect(await store.deleteSession({ sessionId: 'My Session' })).toMatchObject({ snapshots: 2 });
    expect(readdirSync(join(folder, 'global', '.pointers'))).toEqual(['my session.json']);
    expect((await genkit.getSnapshot({ sessionId: 'my session' }))?.snapshotId).toBe('b1');
    await store.deleteSession({ sessionId: 'my session' });
    expect(entriesBelow(folder).filter((entry) => entry.endsWith('.json'))).toEqual([]);
  });

  it('a snapshot under a name that our store would write differently is found, with the right case only', async () => {
    const folder = temporaryFolder();
    const genkit = new GenkitFileSessionStore<Custom>(folder, { snapshotPathPrefix: () => 'Tenant One' });
    await save(genkit, 'Snapshot.1', 1);
    const store = new FileSessionStore<Custom>(folder, { snapshotPathPrefix: () => 'Tenant One' });
    expect((await store.getSnapshot({ snapshotId: 'Snapshot.1' }))?.state?.custom).toEqual({ n: 1 });
    expect(await store.getSnapshot({ snapshotId: 'snapshot.1' })).toBeUndefined();
    const other = new FileSessionStore<Custom>(folder, { snapshotPathPrefix: () => 'tenant one' });
    expect(await other.getSnapshot({ snapshotId: 'Snapshot.1' })).toBeUndefined();
    // A rewrite gives it the store's own name.
    await store.saveSnapshot('Snapshot.1', (current) => ({ ...current!, updatedAt: '2026-01-01T00:00:00.000Z' }));
    expect(readdirSync(join(folder, 'Tenant One')).filter((name) => name.endsWith('.json'))).toEqual([
      '%0053napshot%002e1.json',
    ]);
    expect((await store.getSnapshot({ sessionId: A }))?.updatedAt).toBe('2026-01-01T00:00:00.000Z');
  });

  it('what Genkit’s store adds later is noticed through its pointer', async () => {
    const { folder, genkit } = await genkitFolder();
    const store = new FileSessionStore<Custom>(folder);
    await save(store, 'b2', 20, 'b1', B);
    await save(genkit, 'a6', 30, 'a2b');
    await save(genkit, 'a7', 31, 'a6');
    expect((await store.getSnapshot({ sessionId: A }))?.snapshotId).toBe('a7');
    await save(store, 'a8', 32, 'a7');
    const cold = new FileSessionStore<Custom>(folder);
    expect((await cold.listSnapshots({ sessionId: A })).items.map((item) => item.snapshotId).slice(-3)).toEqual([
      'a6',
      'a7',
      'a8',
    ]);
    await save(genkit, 'c1', 40, undefined, randomUUID());
    expect((await cold.listSessions()).items).toHaveLength(3);
  });

  it('what it adds on a branch that its pointer has left can be rewritten by ours', async () => {
    const { folder, genkit } = await genkitFolder();
    const store = new FileSessionStore<Custom>(folder, { checkpointInterval: 1 });
    await save(store, 'a6', 30, 'a3');
    await save(genkit, 'a7', 31, 'a2');
    await save(genkit, 'a8', 32, 'a3');
    await store.saveSnapshot('a7', (current) => ({ ...current!, updatedAt: '2026-01-01T00:00:00.000Z' }));
    const cold = new FileSessionStore<Custom>(folder, { checkpointInterval: 1 });
    expect(await cold.getSnapshot({ snapshotId: 'a7' })).toMatchObject({
      updatedAt: '2026-01-01T00:00:00.000Z',
      state: { custom: { n: 31 } },
    });
    expect((await cold.getSnapshot({ snapshotId: 'a8' }))?.state?.custom).toEqual({ n: 32 });
  });

  it('when its latest snapshot is gone or broken, the session answers DATA_LOSS instead of an older one, and no turn follows that', async () => {
    for (const damage of [rmSync, (path: string) => writeFileSync(path, '{"snapshotId":"b2","sta')]) {
      const { folder, genkit } = await genkitFolder();
      await save(genkit, 'b2', 6, 'b1', B);
      damage(join(folder, 'global/b2.json'));
      const store = new FileSessionStore<Custom>(folder);
      const loss = { status: 'DATA_LOSS', message: expect.stringContaining('"b2"') as string };
      await expect(store.getSnapshot({ sessionId: B })).rejects.toMatchObject(loss);
      for (const expectedLeafId of ['b1', 'b2', null]) {
        const next = store.saveSnapshot('b3', () => ({ ...FIRST, sessionId: B, parentId: 'b1' }), { expectedLeafId });
        await expect(next, String(expectedLeafId)).rejects.toMatchObject(loss);
      }
      expect((await store.getSnapshot({ sessionId: A }))?.snapshotId).toBe('a2b');
    }
  });
});

describe('what Genkit’s store rewrites in a directory that both use, with checkpointInterval 1', () => {
  async function shared(): Promise<{
    ours: FileSessionStore<Custom>;
    genkit: GenkitFileSessionStore<Custom>;
    folder: string;
  }> {
    const folder = temporaryFolder();
    const ours = new FileSessionStore<Custom>(folder, { checkpointInterval: 1, durability: 'fast' });
    await ours.saveSnapshot('a', () => ({
      sessionId: A,
      createdAt: '2026-01-01T00:00:00.000Z',
      status: 'pending',
      state: { custom: { n: 0 } },
    }));
    return { ours, genkit: new GenkitFileSessionStore<Custom>(folder), folder };
  }

  it('is read, though the new file may have the inode of the old one', async () => {
    for (let round = 0; round < 5; round++) {
      const { ours, genkit } = await shared();
      for (let n = 1; n <= 4; n++) {
        await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n } } }));
        expect((await ours.getSnapshot({ snapshotId: 'a' }))?.state?.custom?.n).toBe(n);
      }
    }
  });

  it('is what metadata tell, also of a store that has just been opened', async () => {
    const { ours, genkit, folder } = await shared();
    expect((await ours.getSnapshotMetadata({ snapshotId: 'a' }))?.status).toBe('pending');
    await genkit.saveSnapshot('a', (current) => ({ ...current!, status: 'aborted' }));
    await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n: 2 } } }));
    for (const store of [ours, new FileSessionStore<Custom>(folder)]) {
      expect((await store.getSnapshotMetadata({ snapshotId: 'a' }))?.status).toBe('aborted');
      expect((await store.getSnapshotMetadata({ sessionId: A }))?.status).toBe('aborted');
    }
  });

  it('is what the mutator sees, its status stays when it is final, and its state when ours only touches it', async () => {
    const { ours, genkit } = await shared();
    const touched = '2026-01-02T00:00:00.000Z';
    await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n: 1 } } }));
    await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n: 2 } } }));
    await ours.saveSnapshot('a', (current) => ({ ...current!, updatedAt: touched }));
    expect(await genkit.getSnapshot({ snapshotId: 'a' })).toMatchObject({
      updatedAt: touched,
      state: { custom: { n: 2 } },
    });
    await genkit.saveSnapshot('a', (current) => ({ ...current!, status: 'aborted' }));
    await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n: 3 } } }));
    let seen: unknown;
    const complete = ours.saveSnapshot('a', (current) => {
      seen = current?.status;
      return { ...current!, status: 'completed' };
    });
    await expect(complete).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(seen).toBe('aborted');
    expect(await genkit.getSnapshot({ snapshotId: 'a' })).toMatchObject({
      status: 'aborted',
      state: { custom: { n: 3 } },
    });
  });

  it('in the very moment of our save is asked about once more', async () => {
    const { genkit, folder } = await shared();
    const ours = new FileSessionStore<Custom>(folder, { checkpointInterval: 1 });
    await ours.getSnapshot({ snapshotId: 'a' });
    const path = join(folder, 'global/a.json');
    await genkit.saveSnapshot('a', (current) => ({ ...current!, state: { custom: { n: 7 } } }));
    const theirs = readFileSync(path);
    const { ours: again, folder: other } = await shared();
    const seen: unknown[] = [];
    await again.saveSnapshot('a', (current) => {
      seen.push(current?.state?.custom?.n);
      if (seen.length === 1) writeFileSync(join(other, 'global/a.json'), theirs);
      return { ...current!, updatedAt: 'later' };
    });
    expect(seen).toEqual([0, 7]);
    expect((await again.getSnapshot({ snapshotId: 'a' }))?.state?.custom).toEqual({ n: 7 });
  });
});

describe('with checkpointInterval 1', () => {
  it('Genkit’s own store reads every snapshot and the right leaf', async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore<Custom>(folder, { checkpointInterval: 1 });
    await save(store, 's1', 1);
    await save(store, 's2', 2, 's1');
    await save(store, 's1b', 0, 's1');
    const genkit = new GenkitFileSessionStore<Custom>(folder);
    expect((await genkit.getSnapshot({ sessionId: A }))?.snapshotId).toBe('s1b');
    for (const id of ['s1', 's2', 's1b']) {
      const { state } = (await store.getSnapshot({ snapshotId: id }))!;
      expect((await genkit.getSnapshot({ snapshotId: id }))?.state).toEqual(state);
    }
    // What Genkit's store rewrites in place, ours reads.
    await genkit.saveSnapshot('s2', (current) => ({ ...current!, state: { custom: { n: 99 } } }));
    expect((await store.getSnapshot({ snapshotId: 's2' }))?.state?.custom).toEqual({ n: 99 });
    await store.saveSnapshot('s2', (current) => ({ ...current!, updatedAt: '2026-01-01T00:00:00.000Z' }));
    const { state, updatedAt } = (await new FileSessionStore<Custom>(folder).getSnapshot({ snapshotId: 's2' }))!;
    expect({ state, updatedAt }).toEqual({ state: { custom: { n: 99 } }, updatedAt: '2026-01-01T00:00:00.000Z' });
  });

  it('each file is a snapshot that can be read by itself', async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore<Custom>(folder, { checkpointInterval: 1 });
    await save(store, 's1', 1);
    await save(store, 's2', 2, 's1');
    const file = readJson(join(folder, 'global/s2.json'));
    expect(file).toMatchObject(JSON.parse(JSON.stringify(await store.getSnapshot({ snapshotId: 's2' }))) as object);
    expect(readdirSync(join(folder, 'global'))).not.toContain('.shards');
  });
});

describe('faults of Genkit’s file store that this one has not', () => {
  it('50 concurrent increments of one snapshot give 50', async () => {
    const store = new FileSessionStore<Custom>(temporaryFolder());
    await save(store, 'counter', 0);
    const increments = Array.from({ length: 50 }, () =>
      store.saveSnapshot('counter', (current) => ({
        ...current!,
        state: { custom: { n: current!.state!.custom!.n + 1 } },
      })),
    );
    await Promise.all(increments);
    expect((await store.getSnapshot({ snapshotId: 'counter' }))?.state?.custom).toEqual({ n: 50 });
  });

  it('a sessionId with a slash is an id like any other', async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore<Custom>(folder);
    await save(store, 'x', 1, undefined, 'a/../b');
    expect((await store.getSnapshot({ sessionId: 'a/../b' }))?.snapshotId).toBe('x');
  });

  it('its watcher reads no file outside', async () => {
    const parent = temporaryFolder();
    writeFileSync(
      join(parent, 'secret.json'),
      JSON.stringify({ snapshotId: '../../secret', createdAt: 'x', status: 'completed' }),
    );
    const store = new FileSessionStore<Custom>(join(parent, 'store'), { snapshotWatchPollIntervalMs: 5 });
    await save(store, 'x', 1);
    const told: unknown[] = [];
    const heard = new Promise<void>((resolve) => store.onSnapshotStateChange('x', () => resolve()));
    store.onSnapshotStateChange('../../secret', (snapshot) => told.push(snapshot));
    await heard;
    await store.saveSnapshot('x', (current) => ({ ...current!, updatedAt: 'later' }));
    expect(told).toEqual([]);
    await store.close();
  });

  it('the same record round-trips through both stores’ files', async () => {
    const { folder } = await genkitFolder();
    const text = readFileSync(join(folder, 'global/a1.json'), 'utf8');
    const store = new FileSessionStore<Custom>(folder);
    expect(await store.getSnapshot({ snapshotId: 'a1' })).toEqual(JSON.parse(text));
  });
});
