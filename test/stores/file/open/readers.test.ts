import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

/** A store whose process also reads during every flush, which is every point at which a save waits. */
function openRead(folder: string, options: Parameters<typeof openStore>[1]): { store: Store; reads: () => number } {
  let reads = 0;
  const fs: FileSystem = {
    ...nodeFileSystem,
    flush: async (fd) => {
      for (const lookup of [{ sessionId: SESSION }, { snapshotId: 't1' }]) {
        await store.getSnapshot(lookup);
        reads++;
      }
      await nodeFileSystem.flush(fd);
    },
  };
  const store = openStore(folder, { durability: 'full', ...options }, fs);
  return { store, reads: () => reads };
}

function snapshotFiles(folder: string): string[] {
  return readdirSync(join(folder, 'global')).filter((name) => name.endsWith('.json'));
}

describe('readers in the process of a writer that flushes and prunes', () => {
  it('do not change what a save removes, and prune() keeps the rest intact', async () => {
    const folder = temporaryFolder();
    const { store, reads } = openRead(folder, { maxPersistedChainLength: 3, checkpointInterval: 25 });
    await saveTurns(store, 30, true);
    expect(reads()).toBeGreaterThan(30);
    expect(snapshotFiles(folder).toSorted()).toEqual(['t28.json', 't29.json', 't30.json']);
    await store.prune({ maxChainLength: 3 });
    await store.close();
    const cold = openStore(folder);
    for (const turn of [28, 29, 30]) {
      expect((await cold.getSnapshot({ snapshotId: `t${turn}` }))?.state?.custom?.turn).toBe(turn);
    }
  });

  it('do not change what prune() and deleteSession() remove', async () => {
    const folder = temporaryFolder();
    const { store } = openRead(folder, {});
    await saveTurns(store, 8, true);
    expect(await store.prune({ maxChainLength: 2 })).toMatchObject({ snapshots: 6 });
    expect(snapshotFiles(folder).toSorted()).toEqual(['t7.json', 't8.json']);
    expect((await openStore(folder).getSnapshot({ snapshotId: 't8' }))?.state?.custom?.turn).toBe(8);
    expect(await store.deleteSession({ sessionId: SESSION })).toMatchObject({ snapshots: 2 });
    expect(snapshotFiles(folder)).toEqual([]);
  });

  it('of another process’s commits count them once, however many read at the same time', async () => {
    const folder = temporaryFolder();
    const reader = openStore(folder);
    const looks: Promise<unknown>[] = [];
    const fs: FileSystem = {
      ...nodeFileSystem,
      rename: (from, to) => {
        nodeFileSystem.rename(from, to);
        for (let i = 0; i < 3; i++) looks.push(reader.getSnapshot({ sessionId: SESSION }));
      },
    };
    const writer = openStore(folder, { maxPersistedChainLength: 3 }, fs);
    for (let turn = 1; turn <= 12; turn++) {
      await saveTurn(writer, turn, { wide: true });
      await Promise.all(looks);
    }
    await saveTurn(reader, 13);
    expect((await reader.listSnapshots({ sessionId: SESSION })).items).toHaveLength(4);
    expect(snapshotFiles(folder)).toHaveLength(4);
  });
});

describe('the state of a removed snapshot', () => {
  it('is kept by prune() if other diffs start from it', async () => {
    const folder = temporaryFolder();
    let fails = false;
    const fs: FileSystem = {
      ...nodeFileSystem,
      rename: (from, to) => {
        // The file of the removed snapshot can't be moved to the place of kept states.
        if (fails && from.endsWith('/t1.json')) return;
        nodeFileSystem.rename(from, to);
      },
      unlink: (path) => {
        if (!(fails && path.endsWith('/t1.json'))) nodeFileSystem.unlink(path);
      },
    };
    const store = openStore(folder, { checkpointInterval: 25 }, fs);
    await saveTurns(store, 4, true);
    fails = true;
    await store.prune({ maxChainLength: 3 });
    expect(snapshotFiles(folder)).toContain('t1.json');
    await openStore(folder).prune({ maxChainLength: 3 });
    const cold = openStore(folder);
    for (const turn of [2, 3, 4]) {
      expect((await cold.getSnapshot({ snapshotId: `t${turn}` }))?.state?.custom?.turn).toBe(turn);
    }
    expect(snapshotFiles(folder)).not.toContain('t1.json');
  });
});
