/** Files of one session that can't be opened or read: the calls of the tenant still work, and `check` names the files. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { FileSessionStore } from 'genkitx-agents';
import { applyRetention } from 'genkitx-agents/privacy';
import { describe, expect, it, vi } from 'vitest';
import { nodeFileSystem } from '../../../../stores/file/disk/file-system.ts';
import type { FileTenantStore } from '../../../../stores/file/file-tenant-store.ts';
import { contentsBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const createdAt = '2026-01-01T00:00:00.000Z';
const DAY = 86_400_000;

/** Session `one` of `a` and `b` with a record, and session `two` of `c` and `d`. */
async function plant(): Promise<string> {
  const folder = temporaryFolder();
  const store = new FileSessionStore(folder, { durability: 'fast' });
  const tree = { a: ['one'], b: ['one', 'a'], c: ['two'], d: ['two', 'c'] } as const;
  for (const [id, [sessionId, parentId]] of Object.entries(tree)) {
    const parent = parentId !== undefined && { parentId };
    await store.saveSnapshot(id, () => ({
      sessionId,
      createdAt,
      status: 'completed',
      state: { custom: id },
      ...parent,
    }));
  }
  await store.writeRecord({ sessionId: 'one', kind: 'k', key: 'k', value: 1 });
  await store.close();
  return folder;
}

const SNAPSHOT = 'global/b.json';
const LOG = 'global/.sessions/one/log.jsonl';

interface Refusal {
  /** Makes the store refuse the file. Returns the path that the process may not open, if there is one. */
  readonly plant: (folder: string) => string | void;
  readonly place: string;
}

function newer(path: string): Refusal {
  return {
    plant: (folder) =>
      writeFileSync(join(folder, path), readFileSync(join(folder, path), 'utf8').replace('"format":1', '"format":99')),
    place: path,
  };
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a snapshot of a newer version': newer(SNAPSHOT),
  'a log of a newer version': { ...newer(LOG), place: 'global/.sessions/one' },
  'a snapshot that the process may not open': { plant: (folder) => join(folder, SNAPSHOT), place: SNAPSHOT },
  'a log that the process may not open': { plant: (folder) => join(folder, LOG), place: 'global/.sessions/one' },
  'a link in the place of the session’s folder': {
    plant: (folder) => {
      const outside = join(temporaryFolder(), 'one');
      renameSync(join(folder, 'global/.sessions/one'), outside);
      symlinkSync(outside, join(folder, 'global/.sessions/one'));
    },
    place: 'global/.sessions/one',
  },
};

describe('lists, prune, retention and check of a tenant with', () => {
  for (const [name, { plant: refuse, place }] of Object.entries(REFUSALS)) {
    it(`${name} still work; check reports it as unreadable, and it is not changed`, async () => {
      const folder = await plant();
      const closed = refuse(folder);
      const open = (path: string, flags: number): number => {
        if (path !== closed) return nodeFileSystem.open(path, flags);
        throw Object.assign(new Error('EACCES'), { code: 'EACCES', syscall: 'open' });
      };
      const store = new FileSessionStore(folder, { durability: 'fast' }, { ...nodeFileSystem, open });
      const before = Object.entries(contentsBelow(folder)).filter(([path]) => /one|[ab]\.json/.test(path));
      const { items, unreadable = [] } = await store.listSessions();
      expect(new Set([...items, ...unreadable].map(({ sessionId }) => sessionId))).toEqual(new Set(['one', 'two']));
      const { findings } = await store.check({ repair: true, graceMs: 0 });
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'unreadable', place }));
      expect(findings.filter(({ sessionId }) => sessionId === 'two')).toEqual([]);
      expect(await applyRetention(store, { maxChainLength: 1 }, { dryRun: true })).toMatchObject({ snapshots: 1 });
      expect(await store.prune({ maxChainLength: 1 }, { dryRun: true })).toMatchObject({ snapshots: 1 });
      expect(await store.prune({ maxChainLength: 1 })).toMatchObject({ snapshots: 1 });
      expect(await store.prune({ idleMs: DAY })).toMatchObject({ sessions: 1 });
      expect(Object.entries(contentsBelow(folder)).filter(([path]) => /one|[ab]\.json/.test(path))).toEqual(before);
      await store.close();
    });
  }
});

it('a link in the place of a folder is named by its place in the directory', async () => {
  const folder = await plant();
  REFUSALS['a link in the place of the session’s folder']!.plant(folder);
  const store = new FileSessionStore(folder);
  await expect(store.getSnapshot({ sessionId: 'one' })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
    message: expect.stringContaining('"global/.sessions/one"'),
  });
  await store.close();
});

describe('in the place of a file', () => {
  const shapes: Readonly<Record<string, (path: string) => void>> = {
    'a FIFO': (path) => {
      rmSync(path);
      execFileSync('/usr/bin/mkfifo', [path]);
    },
    'a file of 3 GB': (path) => truncateSync(path, 3e9),
  };
  for (const [shape, harm] of Object.entries(shapes)) {
    for (const place of [SNAPSHOT, LOG]) {
      it(`${shape} at ${place} is damage: each call ends, and the session can be deleted`, async () => {
        const folder = await plant();
        harm(join(folder, place));
        const store = new FileSessionStore(folder, { durability: 'fast' });
        const leaf = await store.getSnapshot({ sessionId: 'one' }).catch((error: { status: unknown }) => error);
        // A log is rebuilt from the snapshots.
        expect(leaf).toMatchObject(place === LOG ? { snapshotId: 'b' } : { status: 'DATA_LOSS' });
        expect((await store.listSessions()).items).toHaveLength(2);
        const { findings } = await store.check();
        expect(findings).toMatchObject([{ kind: 'damaged', sessionId: 'one' }]);
        expect(await store.deleteSession({ sessionId: 'one' })).toMatchObject({ snapshots: 2 });
        expect(existsSync(join(folder, SNAPSHOT))).toBe(false);
        expect((await store.check()).findings).toEqual([]);
        await store.close();
      });
    }
  }
});

it('the empty folder of a failed write of a record is an orphan', async () => {
  const folder = await plant();
  const store = new FileSessionStore(folder);
  for (const session of ['two', 'none']) {
    const empty = join(folder, 'global/.records', session);
    const age = new Date(Date.now() - 7_200_000);
    const make = () => {
      mkdirSync(empty);
      utimesSync(empty, age, age);
    };
    make();
    const orphan = { kind: 'orphan', place: `global/.records/${session}` };
    expect((await store.check()).findings).toMatchObject([orphan]);
    expect((await store.check({ repair: true })).findings).toMatchObject([{ ...orphan, isRepaired: true }]);
    expect(existsSync(empty)).toBe(false);
    make();
    await store.prune({ idleMs: Number.MAX_SAFE_INTEGER });
    expect(existsSync(empty)).toBe(false);
  }
  await store.close();
});

it('the folder of a killed deletion is removed by the next deletion', async () => {
  const folder = await plant();
  const store = new FileSessionStore(folder);
  await store.deleteSession({ sessionId: 'one' });
  const left = join(folder, 'global/.sessions/one');
  mkdirSync(left);
  expect(await store.deleteSession({ sessionId: 'one' })).toMatchObject({ snapshots: 0 });
  expect(existsSync(left)).toBe(false);
  await store.close();
});

it('a store with a relative directory says that the working directory was removed', () => {
  const cwd = vi.spyOn(process, 'cwd').mockImplementation(() => {
    throw Object.assign(new Error('ENOENT'), { code: 'ENOENT', syscall: 'uv_cwd' });
  });
  try {
    expect(() => new FileSessionStore('relative')).toThrow(/FAILED_PRECONDITION.*working directory/);
  } finally {
    cwd.mockRestore();
  }
});

describe('the process keeps no data of', () => {
  /** Shows what the store keeps in memory. */
  class OpenStore extends FileSessionStore {
    get sessions() {
      return (this.tenant('global') as FileTenantStore<unknown>).tenant;
    }
  }

  async function collected(refs: readonly WeakRef<object>[]): Promise<void> {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await vi.waitFor(() => {
      collect();
      expect(refs.filter((ref) => ref.deref())).toEqual([]);
    });
  }

  it('deleted sessions, and of sessions that the cache has dropped', async () => {
    const store = new OpenStore(temporaryFolder(), { durability: 'fast' });
    const refs: WeakRef<object>[] = [];
    for (let i = 0; i < 20; i++) {
      const sessionId = `s${i}`;
      await store.saveSnapshot(`n${i}`, () => ({ sessionId, createdAt, state: {} }));
      refs.push(new WeakRef(store.sessions.session(sessionId)));
      if (i < 10) await store.deleteSession({ sessionId });
    }
    await collected(refs.slice(0, 10));
    store.sessions.shared.caches.sessions.clear();
    await collected(refs);
    expect(await store.getSnapshotMetadata({ snapshotId: 'n15' })).toMatchObject({ sessionId: 's15' });
    await store.close();
  });
});
