import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { formatOwner, newOwner } from '../../../../stores/file/disk/lock-owner.ts';
import { contentsBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { adding, ADA, openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

const NONCE = '0123456789ab';

/** Every folder inside the store's, by its path. */
const INNER = [
  '.tmp',
  '.locks',
  'global',
  'global/.sessions',
  `global/.sessions/${SESSION}`,
  'global/.scopes',
] as const;

/** A message without a path inside the directory. */
function refusalIn(folder: string): object {
  return { status: 'FAILED_PRECONDITION', message: expect.not.stringContaining(`${folder}/`) };
}

const OPTIONS = { checkpointInterval: 1 };

/** A folder with diffs, shards and a record, and a store that has saved to it. */
async function filled(): Promise<{ folder: string; store: Store }> {
  const folder = temporaryFolder();
  const first = openStore(folder, { checkpointInterval: 3 });
  await saveTurns(first, 4, true);
  await first.close();
  const store = openStore(folder, OPTIONS);
  await saveTurn(store, 5, { wide: true, scopes: [adding(ADA)] });
  for (const place of INNER) expect(existsSync(join(folder, place)), place).toBe(true);
  return { folder, store };
}

/** Replaces an inner folder by a link to a copy of it. The copy has files that the store would remove as its own. */
function exchange(folder: string, place: string): { outside: string } {
  const outside = join(temporaryFolder(), 'outside');
  mkdirSync(outside);
  if (existsSync(join(folder, place))) cpSync(join(folder, place), outside, { recursive: true });
  const dead = formatOwner({ ...newOwner(), pid: 4_194_305, nonce: NONCE });
  mkdirSync(join(outside, 'sub'));
  for (const name of ['sub/deep.txt', `${NONCE}-0`, `owner-${dead}`, 'a'.repeat(64)]) {
    writeFileSync(join(outside, name), dead);
  }
  rmSync(join(folder, place), { recursive: true, force: true });
  mkdirSync(dirname(join(folder, place)), { recursive: true });
  symlinkSync(outside, join(folder, place));
  return { outside };
}

/** Saves, rewrites, prunes and deletes. The save, which writes to every folder, is refused; other calls may be refused with the same error. */
async function expectRefusal(store: Store, refusal: object): Promise<void> {
  await expect(saveTurn(store, 6, { wide: true, scopes: [adding(ADA)] })).rejects.toMatchObject(refusal);
  const rest = [
    () => store.saveSnapshot('t5', (current) => ({ ...current!, state: { custom: { turn: 77 } } })),
    () => store.prune({ maxChainLength: 1 }),
    () => store.deleteSession({ sessionId: SESSION }),
  ];
  for (const call of rest) {
    await call().catch((error: unknown) => expect(error).toMatchObject(refusal));
  }
}

async function readAll(store: Store): Promise<unknown> {
  const reads = [
    () => store.getSnapshot({ sessionId: SESSION }),
    () => store.getSnapshot({ snapshotId: 't2' }),
    () => store.getSnapshot({ snapshotId: 'nothing' }),
    () => store.listSnapshots({ sessionId: SESSION }),
    () => store.listSessions(),
    () => store.readScopes({ scopes: [ADA] }),
    () => store.prune({ maxChainLength: 1 }, { dryRun: true }),
  ];
  const results: unknown[] = [];
  for (const read of reads) results.push(await read().catch((error: unknown) => error));
  return results;
}

describe('private files: a symbolic link in the place of an inner folder', () => {
  for (const place of INNER) {
    it(`${place}, when the store is opened, is not written or removed through, and saving is refused`, async () => {
      const { folder, store } = await filled();
      await store.close();
      const { outside } = exchange(folder, place);
      const before = contentsBelow(outside);
      const next = openStore(folder, OPTIONS);
      await expectRefusal(next, refusalIn(folder));
      await next.close();
      expect(contentsBelow(outside)).toEqual(before);
    });

    it(`${place}, put there while the store is open, is neither`, async () => {
      const { folder, store } = await filled();
      const { outside } = exchange(folder, place);
      const before = contentsBelow(outside);
      await expectRefusal(store, refusalIn(folder));
      await store.close();
      expect(contentsBelow(outside)).toEqual(before);
    });

    it(`${place} is not read through`, async () => {
      const { folder, store } = await filled();
      await store.close();
      exchange(folder, place);
      const opened: string[] = [];
      const fs: FileSystem = {
        ...nodeFileSystem,
        open: (path, flags) => (opened.push(path), nodeFileSystem.open(path, flags)),
        readdir: (path) => (opened.push(path), nodeFileSystem.readdir(path)),
      };
      await readAll(openStore(folder, OPTIONS, fs));
      await readAll(openStore(folder, { checkpointInterval: 3 }, fs));
      expect(opened.filter((path) => `${path}/`.startsWith(`${join(folder, place)}/`))).toEqual([]);
    });
  }

  for (const place of ['global', 'global/.sessions', `global/.sessions/${SESSION}`]) {
    it(`${place} is refused by what would read a state through it`, async () => {
      const { folder, store } = await filled();
      await store.close();
      exchange(folder, place);
      const next = openStore(folder, OPTIONS);
      for (const lookup of [{ snapshotId: 't4' }, { sessionId: SESSION }]) {
        await expect(next.getSnapshot(lookup)).rejects.toMatchObject(refusalIn(folder));
      }
    });
  }

  it('is not read through for a watcher', async () => {
    for (const place of ['global', 'global/.sessions']) {
      const { folder, store } = await filled();
      await store.close();
      exchange(folder, place);
      const opened: string[] = [];
      const told: unknown[] = [];
      let looked = 0;
      let end = (): void => {};
      const hasLooked = new Promise<void>((resolve) => (end = resolve));
      const fs: FileSystem = {
        ...nodeFileSystem,
        open: (path, flags) => (opened.push(path), nodeFileSystem.open(path, flags)),
        stat: (path) => {
          if (path === join(folder, 'global') && ++looked > 20) end();
          return nodeFileSystem.stat(path);
        },
      };
      const watcher = openStore(folder, { ...OPTIONS, snapshotWatchPollIntervalMs: 1 }, fs);
      watcher.onSnapshotStateChange('t5', (snapshot) => told.push(snapshot));
      await hasLooked;
      await watcher.close();
      expect({ opened, told }).toEqual({ opened: [], told: [] });
    }
  });
});

describe('a plain file in the place of an inner folder', () => {
  for (const place of INNER) {
    it(`${place} is refused and stays`, async () => {
      const { folder, store } = await filled();
      rmSync(join(folder, place), { recursive: true });
      writeFileSync(join(folder, place), 'mine');
      // If the store first reads below it, the system refuses.
      const refusal = { ...refusalIn(folder), status: expect.stringMatching(/^(?:FAILED_PRECONDITION|UNAVAILABLE)$/) };
      await expectRefusal(store, refusal);
      await store.close();
      await expectRefusal(openStore(folder, OPTIONS), refusal);
      expect(contentsBelow(folder)[place]).toBe('mine');
    });
  }
});
