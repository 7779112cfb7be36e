/** Every kind of damage and orphan, created in a file store, and the findings of `check`. */
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { StoreFinding } from 'genkitx-agents';
import { scopeKey } from '../../../../src/store/records/record-scopes.ts';
import { nodeFileSystem } from '../../../../stores/file/disk/file-system.ts';
import { formatRecord } from '../../../../stores/file/format/scope-file.ts';
import { contentsBelow, entriesBelow, flip } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { ADA, adding, openStore, saveTurns, SESSION, stateOf } from '../support/scenarios.ts';

const HASH = 'ab'.repeat(32);

/** A session with shards and branches, records, and a snapshot without a session. */
async function makeWhole(): Promise<string> {
  const folder = temporaryFolder();
  const store = openStore(folder);
  await saveTurns(store, 6, true);
  await store.saveSnapshot(
    'o1',
    () => ({ sessionId: 'other', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed', state: stateOf(2) }),
    { scopes: [adding(ADA)] },
  );
  await store.saveSnapshot('alone', () => ({ createdAt: '2026-01-01T00:00:00.000Z', state: stateOf(1) }));
  await store.writeRecord({ sessionId: SESSION, kind: 'note', key: 'k', value: 'v' });
  await store.close();
  return folder;
}

/** The only entry below a folder whose path ends so. */
function entry(folder: string, pattern: RegExp): string {
  const found = entriesBelow(folder).filter((path) => pattern.test(path));
  expect(found.length, String(pattern)).toBeGreaterThan(0);
  return join(folder, found[0]!);
}

interface Planted {
  /** Damages the folder. */
  readonly plant: (folder: string) => void | Promise<void>;
  /** The findings; at least these if the damage causes others. */
  readonly found: Partial<StoreFinding>;
}

const DAMAGES: Readonly<Record<string, Planted>> = {
  'a missing snapshot': {
    plant: (folder) => rmSync(join(folder, 'global/t2.json')),
    found: { kind: 'damaged', sessionId: SESSION, snapshotId: 't2', place: 'global/t2.json' },
  },
  'half a snapshot': {
    plant: (folder) => truncateSync(join(folder, 'global/o1.json'), 40),
    found: { kind: 'damaged', sessionId: 'other', snapshotId: 'o1' },
  },
  'a flipped byte in a state': {
    plant: (folder) => flip(join(folder, 'global/t6.json')),
    found: { kind: 'damaged', snapshotId: 't6' },
  },
  'a missing shard': {
    plant: (folder) => rmSync(entry(folder, /a-session\/[0-9a-f]{64}$/)),
    found: { kind: 'damaged', sessionId: SESSION },
  },
  'a damaged snapshot without a session': {
    plant: (folder) =>
      truncateSync(join(folder, 'global/alone.json'), statSync(join(folder, 'global/alone.json')).size - 9),
    found: { kind: 'damaged', snapshotId: 'alone' },
  },
  'a missing log': {
    plant: (folder) => rmSync(join(folder, 'global/.sessions/a-session/log.jsonl')),
    found: { kind: 'damaged', sessionId: SESSION, place: 'global/.sessions/a-session' },
  },
  'a log that lost its end': {
    plant: (folder) => {
      const log = join(folder, 'global/.sessions/a-session/log.jsonl');
      writeFileSync(
        log,
        readFileSync(log, 'utf8')
          .split('\n')
          .slice(0, 3)
          .map((line) => `${line}\n`)
          .join(''),
      );
    },
    found: { kind: 'damaged', sessionId: SESSION, snapshotId: 't6', place: 'global/t6.json' },
  },
  'random bytes': {
    plant: (folder) => writeFileSync(join(folder, 'global/x.json'), Buffer.from([0, 255, 10, 1])),
    found: { kind: 'damaged', place: 'global/x.json' },
  },
  'a folder in the place of a snapshot': {
    plant: (folder) => mkdirSync(join(folder, 'global/x.json')),
    found: { kind: 'damaged', place: 'global/x.json' },
  },
  'a link in the place of a snapshot': {
    plant: (folder) => symlinkSync('/etc/hostname', join(folder, 'global/x.json')),
    found: { kind: 'damaged', place: 'global/x.json' },
  },
  'a copy under another name': {
    plant: (folder) => copyFileSync(join(folder, 'global/t6.json'), join(folder, 'global/copy.json')),
    found: { kind: 'damaged', place: 'global/copy.json' },
  },
  'a snapshot of a newer version': {
    plant: (folder) => {
      const path = join(folder, 'global/o1.json');
      writeFileSync(path, readFileSync(path, 'utf8').replace('"format":1', '"format":99'));
    },
    found: { kind: 'unreadable', sessionId: 'other', snapshotId: 'o1' },
  },
  'a damaged session record': {
    plant: (folder) => flip(entry(folder, /\.records\/a-session\/./)),
    found: { kind: 'damaged' },
  },
  'a damaged record of a user': {
    plant: (folder) => truncateSync(entry(folder, /\.scopes\/[0-9a-f]{64}\.json$/), 10),
    found: { kind: 'damaged' },
  },
};

const ORPHANS: Readonly<Record<string, Planted>> = {
  'a shard that no state needs': {
    plant: (folder) => writeFileSync(join(folder, 'global/.sessions/a-session', HASH), 'x'),
    found: { sessionId: SESSION, place: `global/.sessions/a-session/${HASH}` },
  },
  'the folder of an unknown session': {
    plant: (folder) => {
      mkdirSync(join(folder, 'global/.sessions/unknown'));
      writeFileSync(join(folder, 'global/.sessions/unknown', HASH), 'x');
    },
    found: { place: 'global/.sessions/unknown' },
  },
  'the file of a snapshot that was removed': {
    plant: async (folder) => {
      const path = join(folder, 'global/o1.json');
      copyFileSync(path, join(folder, 'kept'));
      const store = openStore(folder);
      await store.deleteSession({ sessionId: 'other' });
      await store.saveSnapshot('o2', () => ({
        sessionId: 'other',
        createdAt: '2026-02-01T00:00:00.000Z',
        state: stateOf(1),
      }));
      await store.close();
      copyFileSync(join(folder, 'kept'), path);
    },
    found: { sessionId: 'other', snapshotId: 'o1', place: 'global/o1.json' },
  },
  'a deletion that was interrupted': {
    plant: (folder) => {
      appendFileSync(join(folder, 'global/.sessions/other/log.jsonl'), '{"delete":true}\n');
      rmSync(join(folder, 'global/o1.json'));
    },
    found: { sessionId: 'other', place: 'global/.sessions/other' },
  },
  'records of a session without snapshots': {
    plant: async (folder) => {
      const store = openStore(folder);
      await store.writeRecord({ sessionId: 'never', kind: 'note', key: 'k', value: 1 });
      await store.close();
    },
    found: { sessionId: 'never', place: 'global/.records/never' },
  },
  'a draft of a record': {
    plant: async (folder) => {
      const path = entry(folder, /\.scopes\/[0-9a-f]{64}\.json$/).replace('.json', '.draft');
      const save = { snapshotId: 'never', commit: 'never' };
      writeFileSync(path, await formatRecord(scopeKey(ADA), { n: 7 }, { save, cipher: undefined }));
    },
    found: { place: expect.stringContaining('.draft') as string },
  },
};

/** Sets the age of all files below a folder. */
function age(folder: string, ms: number): void {
  const at = new Date(Date.now() - ms);
  for (const path of entriesBelow(folder)) {
    if (!path.endsWith('x.json')) utimesSync(join(folder, path), at, at);
  }
}

describe('check of a file store', () => {
  it('finds nothing in an intact store, counts its data, and changes nothing', async () => {
    const folder = await makeWhole();
    const before = contentsBelow(join(folder, 'global'));
    const store = openStore(folder);
    const seen: number[] = [];
    const result = await store.check({ repair: true, graceMs: 0, onProgress: ({ sessions }) => seen.push(sessions) });
    expect(result).toEqual({ sessions: 2, snapshots: 8, records: 1, scopes: 1, findings: [] });
    expect(seen).toEqual([1, 2]);
    expect(contentsBelow(join(folder, 'global'))).toEqual(before);
    await store.close();
  });

  it.each(Object.entries(DAMAGES))('finds and names %s, and repairs nothing of it', async (_name, { plant, found }) => {
    const folder = await makeWhole();
    await plant(folder);
    age(folder, 7_200_000);
    const before = contentsBelow(join(folder, 'global'));
    const store = openStore(folder);
    const { findings } = await store.check({ repair: true });
    expect(findings).toContainEqual(expect.objectContaining({ tenant: 'global', isRepaired: false, ...found }));
    expect(findings.every(({ kind, problem, advice }) => kind !== 'orphan' && problem !== '' && advice !== '')).toBe(
      true,
    );
    expect(contentsBelow(join(folder, 'global'))).toEqual(before);
    await store.close();
  });

  it.each(Object.entries(ORPHANS))(
    'finds %s, and repairs it once it is older than the grace',
    async (_name, { plant, found }) => {
      const folder = await makeWhole();
      await plant(folder);
      const orphan = { tenant: 'global', kind: 'orphan', ...found };
      const store = openStore(folder);
      const young = await store.check({ repair: true });
      expect(young.findings).toEqual([expect.objectContaining({ ...orphan, isRepaired: false })]);
      age(folder, 7_200_000);
      expect((await store.check()).findings).toEqual([expect.objectContaining({ ...orphan, isRepaired: false })]);
      expect((await store.check({ repair: true })).findings).toEqual([
        expect.objectContaining({ ...orphan, isRepaired: true }),
      ]);
      expect((await store.check()).findings).toEqual([]);
      expect((await store.getSnapshot({ sessionId: SESSION }))?.state).toEqual(stateOf(6, true));
      await store.close();
    },
  );

  it('names exactly the snapshots that can not be read, whichever file is damaged', async () => {
    const whole = await makeWhole();
    const files = entriesBelow(join(whole, 'global')).filter((path) => statSync(join(whole, 'global', path)).isFile());
    const ids = [...Array.from({ length: 6 }, (_, i) => `t${i + 1}`), 'o1', 'alone'];
    // Nothing names a missing snapshot without a session.
    const isTold = (id: string, file: string): boolean => id !== 'alone' || file !== 'alone.json';
    for (const file of files) {
      for (const damage of [
        flip,
        (path: string) => truncateSync(path, statSync(path).size >> 1),
        (path: string) => rmSync(path),
      ]) {
        const folder = temporaryFolder();
        cpSync(whole, folder, { recursive: true });
        damage(join(folder, 'global', file));
        const store = openStore(folder);
        const lost: string[] = [];
        for (const snapshotId of ids) {
          const read = await store.getSnapshot({ snapshotId }).catch((error: { status: string }) => error.status);
          if ((read === undefined && isTold(snapshotId, file)) || read === 'DATA_LOSS') lost.push(snapshotId);
        }
        const { findings } = await store.check();
        const named = findings.flatMap(({ kind, snapshotId, place, problem }) => {
          if (kind !== 'damaged' || problem.includes('lost the snapshot')) return [];
          const byPlace = /^global\/(\w+)\.json$/.exec(place ?? '')?.[1];
          return (snapshotId ?? byPlace) === undefined ? [] : [(snapshotId ?? byPlace)!];
        });
        expect(named.toSorted(), `${file}, ${damage.name}`).toEqual(lost.toSorted());
        await store.close();
      }
    }
  });

  it('does not report data as damaged if the system failed to read it', async () => {
    const folder = await makeWhole();
    let opens = 0;
    const open = (path: string, flags: number): number => {
      // The first time only the head is read.
      if (!path.endsWith('alone.json') || opens++ === 0) return nodeFileSystem.open(path, flags);
      throw Object.assign(new Error('EMFILE'), { code: 'EMFILE', syscall: 'open' });
    };
    const store = openStore(folder, {}, { ...nodeFileSystem, open });
    await expect(store.check()).rejects.toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    await store.close();
  });

  it('checks only one tenant, and accepts a missing one', async () => {
    const folder = await makeWhole();
    rmSync(join(folder, 'global/t2.json'));
    const store = openStore(folder, { snapshotPathPrefix: () => 'team' });
    expect(await store.check()).toEqual({ sessions: 0, snapshots: 0, records: 0, scopes: 0, findings: [] });
    await expect(store.check({ graceMs: -1 })).rejects.toThrow('INVALID_ARGUMENT');
    await store.close();
  });
});
