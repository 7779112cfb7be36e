import { lstatSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { fileNameOf } from '../../../../stores/file/format/names.ts';
import { entriesBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, saveTurns } from '../support/scenarios.ts';

describe('private files:', () => {
  for (const umask of [0o000, 0o022, 0o077, 0o277, 0o777]) {
    it(`folders are 0700 and files 0600 under the umask 0${umask.toString(8)}`, async () => {
      const folder = join(temporaryFolder(), 'made', 'by the store');
      const before = process.umask(umask);
      try {
        const store = openStore(folder, { maxPersistedChainLength: 3, checkpointInterval: 2 });
        await saveTurns(store, 7, true);
        await saveTurns(openStore(folder, { checkpointInterval: 1, snapshotPathPrefix: () => 'another' }), 2);
      } finally {
        process.umask(before);
      }
      const modes = new Set<string>();
      for (const path of ['', ...entriesBelow(folder)]) {
        const found = lstatSync(join(folder, path));
        modes.add(`${found.isDirectory() ? 'folder' : 'file'} ${(found.mode & 0o777).toString(8)}`);
      }
      expect([...modes].toSorted()).toEqual(['file 600', 'folder 700']);
    });
  }

  it('a symbolic link in the place of a snapshot is not followed', async () => {
    const folder = temporaryFolder();
    const outside = join(temporaryFolder(), 'secret.json');
    const secret = JSON.stringify({
      snapshotId: 'linked',
      sessionId: 'secret',
      createdAt: 'x',
      state: { custom: 'secret' },
    });
    writeFileSync(outside, secret);
    const store = new FileSessionStore(folder);
    await saveTurn(store as never, 1);
    symlinkSync(outside, join(folder, 'global/linked.json'));
    await expect(store.getSnapshot({ snapshotId: 'linked' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    expect(await store.getSnapshot({ sessionId: 'secret' })).toBeUndefined();
  });

  it('the directory itself may be a link', async () => {
    const folder = temporaryFolder();
    const link = join(temporaryFolder(), 'link');
    symlinkSync(folder, link);
    await saveTurn(openStore(link), 1);
    expect((await openStore(folder).getSnapshot({ snapshotId: 't1' }))?.snapshotId).toBe('t1');
  });
});

describe('tenant fence:', () => {
  it('no prefix leads out of the directory, and different prefixes have different data', async () => {
    const parent = temporaryFolder();
    const folder = join(parent, 'store');
    const prefixes = [
      '../x',
      '..',
      '.',
      '/etc',
      'a/b',
      'a\\b',
      'A',
      'a',
      'é',
      'e\u0301',
      'con',
      'CON',
      'a.',
      'a ',
      '%0041',
      '~',
      '.locks',
      '.tmp',
      '\uD800',
      '\uDC00',
    ];
    for (const [i, prefix] of prefixes.entries()) {
      const store = new FileSessionStore<number>(folder, { snapshotPathPrefix: () => prefix, durability: 'fast' });
      expect(await store.getSnapshot({ snapshotId: 'same' }), prefix).toBeUndefined();
      await store.saveSnapshot('same', () => ({ sessionId: 'same', createdAt: 'x', state: { custom: i } }));
    }
    for (const [i, prefix] of prefixes.entries()) {
      const store = new FileSessionStore<number>(folder, { snapshotPathPrefix: () => prefix });
      expect((await store.getSnapshot({ sessionId: 'same' }))?.state?.custom, prefix).toBe(i);
      expect((await store.listSessions()).items).toHaveLength(1);
    }
    expect(entriesBelow(parent).filter((path) => !path.startsWith('store'))).toEqual([]);
    const names = entriesBelow(folder).filter((path) => !path.includes('/'));
    expect(new Set(names.map((name) => name.toLowerCase().normalize('NFKC'))).size).toBe(names.length);
  });
});

describe('names of files', () => {
  it('are lower-case ASCII, never hidden, and of bounded length', () => {
    const ids = [
      'a',
      'A',
      '.',
      '..',
      '.a',
      'a/b',
      'nul',
      'NUL',
      'com1',
      '\0',
      '\u2028',
      'x'.repeat(1024),
      '🙂'.repeat(512),
      '~',
      '%',
      ' ',
    ];
    const names = ids.map(fileNameOf);
    for (const name of names) expect(name).toMatch(/^[a-z0-9_%-][a-z0-9_%~-]{0,200}$/);
    expect(new Set(names).size).toBe(ids.length);
    expect(fileNameOf('550e8400-e29b-41d4-a716-446655440000')).toBe('550e8400-e29b-41d4-a716-446655440000');
    expect(fileNameOf(`${'x'.repeat(1000)}1`)).not.toBe(fileNameOf(`${'x'.repeat(1000)}2`));
    expect(fileNameOf('\uD800'.repeat(100))).not.toBe(fileNameOf('\uD801'.repeat(100)));
  });
});

describe('reading', () => {
  it('creates no file and no folder, not even the directory', async () => {
    const parent = temporaryFolder();
    const folder = join(parent, 'store');
    const store = new FileSessionStore(folder);
    const unwatch = store.onSnapshotStateChange('../../secret', () => {});
    await store.getSnapshot({ sessionId: 'a/b' });
    await store.getSnapshot({ snapshotId: '../x' });
    await store.getSnapshotMetadata({ snapshotId: 'x' });
    await store.listSessions();
    await store.listSnapshots({ sessionId: 'x' });
    await store.deleteSession({ sessionId: 'x' });
    await store.prune({ idleMs: 0 });
    await store.saveSnapshot('skipped', () => null);
    await expect(
      store.saveSnapshot('bad', () => ({ createdAt: 'x', state: { custom: () => 1 } })),
    ).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
    unwatch();
    await store.close();
    expect(entriesBelow(parent)).toEqual([]);
  });
});

describe('a call without its argument', () => {
  it('is refused with a message', async () => {
    const store = new FileSessionStore(temporaryFolder());
    for (const method of ['listSnapshots', 'deleteSession', 'getSnapshot', 'getSnapshotMetadata'] as const) {
      const call = store[method].bind(store) as () => Promise<unknown>;
      await expect(call(), method).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
  });
});

describe('an unusable directory', () => {
  it('is refused with one clear message when the store is created', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'file');
    writeFileSync(file, '');
    expect(() => new FileSessionStore(file)).toThrow(/FileSessionStore can't use .*: it is not a directory/);
    expect(() => new FileSessionStore(join(file, 'below'))).toThrow(/a part of its path is not a directory/);
    for (const bad of ['', ' ', 'a\0b', undefined, 7]) {
      expect(() => new FileSessionStore(bad as string)).toThrow(/needs the path of a directory/);
    }
    expect(() => new FileSessionStore(folder, { durabilty: 'fast' } as never)).toThrow(/has no option 'durabilty'/);
    expect(() => new FileSessionStore(folder, { snapshotWatchPollIntervalMs: 2 ** 31 })).toThrow(
      /from 1 to 2147483647/,
    );
    expect(() => new FileSessionStore(folder, { maxPersistedChainLength: 0 })).toThrow(/a whole number of at least 1/);
  });
});
