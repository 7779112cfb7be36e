import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { entriesBelow, killOwners, leftovers } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, saveTurns, SESSION } from '../support/scenarios.ts';

describe('close()', () => {
  it('waits until the running saves have ended, refuses later ones, and leaves no mark', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { durability: 'full' });
    await saveTurn(store, 1);
    const saves = Array.from({ length: 20 }, (_, i) => saveTurn(store, 2 + i, { parent: 't1' }));
    const first = store.close();
    const second = store.close();
    await expect(saveTurn(store, 30)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await second;
    expect(readdirSync(join(folder, 'global')).filter((name) => name.endsWith('.json'))).toHaveLength(21);
    await Promise.all([first, ...saves]);
    expect(entriesBelow(join(folder, '.locks'))).toEqual([]);
    expect(leftovers(folder)).toEqual([]);
    const { items } = await openStore(folder).listSnapshots({ sessionId: SESSION });
    expect(items).toHaveLength(21);
  });

  it('waits for a removal as well', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    await saveTurns(store, 3);
    const deletion = store.deleteSession({ sessionId: SESSION });
    await store.close();
    expect(readdirSync(join(folder, 'global')).filter((name) => name.endsWith('.json'))).toEqual([]);
    expect(await deletion).toMatchObject({ snapshots: 3 });
  });
});

describe('a thread', () => {
  it('that is ended while it holds a lock does not keep it', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { lockTimeoutMs: 200 });
    await saveTurn(store, 1);
    const script = new URL('../support/holding-thread.ts', import.meta.url).href;
    const start = `import('tsx/esm/api').then(({ register }) => (register(), import(${JSON.stringify(script)})));`;
    const thread = new Worker(start, { eval: true, workerData: folder });
    await once(thread, 'message');
    await expect(saveTurn(store, 2)).rejects.toMatchObject({ status: 'ABORTED' });
    await thread.terminate();
    await saveTurn(store, 2);
    expect(await store.getSnapshot({ snapshotId: 'held' })).toBeUndefined();
    await store.close();
    const later = openStore(folder);
    await saveTurn(later, 3);
    await later.close();
    expect(entriesBelow(join(folder, '.locks'))).toEqual([]);
    expect(leftovers(folder)).toEqual([]);
  });
});

describe('a file system without hard links', () => {
  it('is refused with a message, and nothing is saved', async () => {
    const folder = temporaryFolder();
    const fs: FileSystem = {
      ...nodeFileSystem,
      link: () => {
        throw Object.assign(new Error('EPERM'), { code: 'EPERM', syscall: 'link' });
      },
    };
    await expect(saveTurn(openStore(folder, {}, fs), 1)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('its file system has no hard links (EPERM)'),
    });
    expect(leftovers(folder)).toEqual([]);
    expect(await openStore(folder).getSnapshot({ sessionId: SESSION })).toBeUndefined();
  });
});

describe('a reader', () => {
  it('creates no file, not even after the holder of a lock was killed', async () => {
    const folder = temporaryFolder();
    let dead = false;
    const fs: FileSystem = {
      ...nodeFileSystem,
      unlink: (path) => {
        if (dead) throw new Error('killed');
        nodeFileSystem.unlink(path);
      },
    };
    const dying = openStore(folder, {}, fs);
    await saveTurns(dying, 2);
    dead = true;
    await saveTurn(dying, 3).catch(() => {});
    killOwners(folder);
    expect(entriesBelow(join(folder, '.locks')).length).toBeGreaterThan(1);
    const made: string[] = [];
    const watching: FileSystem = { ...nodeFileSystem };
    for (const call of ['link', 'mkdir', 'rename', 'write'] as const) {
      Object.assign(watching, { [call]: (...args: unknown[]) => made.push(`${call} ${String(args[1])}`) });
    }
    const reader = openStore(folder, {}, watching);
    await reader.getSnapshot({ sessionId: SESSION });
    await reader.getSnapshotMetadata({ snapshotId: 't1' });
    await reader.listSessions();
    await reader.close();
    expect(made).toEqual([]);
  });
});
