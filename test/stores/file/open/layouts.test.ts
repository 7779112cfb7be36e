import { mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore as GenkitFileSessionStore } from 'genkit/beta';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { contentsBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, saveTurns, SESSION, stateOf } from '../support/scenarios.ts';

const turn = { sessionId: SESSION, createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' as const, state: {} };

const REFUSAL = { status: 'FAILED_PRECONDITION', message: expect.stringContaining('migratingStore({ from, to })') };

/** Every call of a store that reads the directory. */
function callsOf(store: FileSessionStore): Record<string, () => Promise<unknown>> {
  return {
    'getSnapshot by id': () => store.getSnapshot({ snapshotId: 'one' }),
    'getSnapshot by session': () => store.getSnapshot({ sessionId: SESSION }),
    getSnapshotMetadata: () => store.getSnapshotMetadata({ snapshotId: 'one' }),
    saveSnapshot: () => store.saveSnapshot('new', () => turn),
    listSnapshots: () => store.listSnapshots({ sessionId: SESSION }),
    listSessions: () => store.listSessions(),
    deleteSession: () => store.deleteSession({ sessionId: SESSION }),
    prune: () => store.prune({ maxChainLength: 1 }),
    readScopes: () => store.readScopes({ scopes: [{ scope: 'app', appName: 'shop' }] }),
    listScopes: () => store.listScopes(),
  };
}

describe('a directory of Genkit’s own store', () => {
  const prefixes: Readonly<Record<string, (() => string) | undefined>> = {
    'no prefix': undefined,
    'a prefix': () => 'user-7',
    'a prefix of several folders': () => 'team/Ada',
  };
  for (const [name, prefix] of Object.entries(prefixes)) {
    it(`with ${name} is not changed; each call names migratingStore and asks for another directory`, async () => {
      const folder = temporaryFolder();
      const options = prefix && { snapshotPathPrefix: prefix };
      const genkit = new GenkitFileSessionStore(folder, options);
      await genkit.saveSnapshot('one', () => turn);
      const before = contentsBelow(folder);
      for (const [call, run] of Object.entries(callsOf(new FileSessionStore(folder, options)))) {
        await expect(run(), call).rejects.toMatchObject(REFUSAL);
      }
      expect(contentsBelow(folder)).toEqual(before);
      expect((await genkit.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('one');
    });
  }

  it('is also recognized in a tenant’s folder, next to data of this store', async () => {
    const folder = temporaryFolder();
    const prefix = ({ context } = {} as { context?: Record<string, unknown> }): string => String(context?.['tenant']);
    const store = new FileSessionStore(folder, { snapshotPathPrefix: prefix });
    await store.saveSnapshot('own', () => turn, { context: { tenant: 'ours' } });
    await new GenkitFileSessionStore(folder, { snapshotPathPrefix: () => 'theirs' }).saveSnapshot('one', () => turn);
    const read = (tenant: string) => store.getSnapshot({ sessionId: SESSION, context: { tenant } });
    await expect(read('theirs')).rejects.toMatchObject(REFUSAL);
    expect((await read('ours'))?.snapshotId).toBe('own');
  });
});

describe('a directory with files that are not snapshots', () => {
  it('is used', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'notes'));
    writeFileSync(join(folder, 'notes', 'settings.json'), '{"theme":"dark"}');
    writeFileSync(join(folder, 'README.md'), 'mine');
    const store = openStore(folder);
    await saveTurn(store, 1);
    expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t1');
  });
});

describe('a directory of this store whose folder of sessions is lost', () => {
  it('reads as before, except states in shards, and is restored by the next change', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    await saveTurns(store, 5);
    await saveTurn(store, 6, { parent: 't2' });
    await store.saveSnapshot('o1', () => ({ ...turn, sessionId: 'other' }));
    await store.close();
    rmSync(join(folder, 'global/.sessions'), { recursive: true });
    const expectWhole = async (): Promise<void> => {
      const cold = openStore(folder);
      expect((await cold.getSnapshot({ sessionId: SESSION }))?.state).toEqual(stateOf(6));
      const { items } = await cold.listSnapshots({ sessionId: SESSION });
      expect(items.map((item) => item.snapshotId)).toEqual(['t1', 't2', 't3', 't4', 't5', 't6']);
      expect((await cold.listSessions()).items.map((item) => item.sessionId).toSorted()).toEqual([SESSION, 'other']);
    };
    await expectWhole();
    expect(readdirSync(join(folder, 'global'))).not.toContain('.sessions');
    await openStore(folder).saveSnapshot('o2', () => ({ ...turn, sessionId: 'other', parentId: 'o1' }));
    expect(readdirSync(join(folder, 'global/.sessions')).toSorted()).toEqual([SESSION, 'other']);
    await expectWhole();
    expect((await openStore(folder).getSnapshot({ sessionId: 'other' }))?.snapshotId).toBe('o2');
  });

  it('is read again after a read for which the process had too many files open', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 2);
    rmSync(join(folder, 'global/.sessions'), { recursive: true });
    // What was read of a folder that has just changed is not kept.
    utimesSync(join(folder, 'global'), 1, 1);
    let isFull = true;
    const open: FileSystem['open'] = (path, flags) => {
      if (!isFull || !path.endsWith('.json')) return nodeFileSystem.open(path, flags);
      throw Object.assign(new Error('EMFILE'), { code: 'EMFILE', syscall: 'open' });
    };
    const store = new FileSessionStore(folder, { durability: 'fast' }, { ...nodeFileSystem, open });
    const read = (): Promise<unknown> => store.getSnapshot({ sessionId: SESSION });
    await expect(read()).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    isFull = false;
    expect(await read()).toMatchObject({ snapshotId: 't2' });
    await store.close();
  });
});
