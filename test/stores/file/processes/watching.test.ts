import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SessionSnapshot, SnapshotStatus } from '../../../../src/store/contract.ts';
import { FileSessionStore, type FileSessionStoreOptions } from '../../../../stores/file/file-session-store.ts';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { scale } from '../../../support/scale.ts';
import { Fleet, type Child } from './support/fleet.ts';
import { pending } from './support/snapshots.ts';
import { FAST } from './support/stores.ts';

const HOUR_MS = 3_600_000;

/** A system that does not report changes. */
const unwatchable: FileSystem = {
  ...nodeFileSystem,
  watch() {
    throw Object.assign(new Error('no watches left'), { code: 'ENOSPC', syscall: 'watch' });
  },
};

interface Way {
  readonly name: string;
  readonly options: FileSessionStoreOptions;
  readonly fileSystem: FileSystem;
}

const POLLING: Way = { name: 'polling', options: { snapshotWatchPollIntervalMs: 5 }, fileSystem: unwatchable };
const TOLD: Way = { name: 'the system', options: { snapshotWatchPollIntervalMs: HOUR_MS }, fileSystem: nodeFileSystem };

/** Polls only on a new subscription. */
const SELDOM: Way = { name: 'nothing', options: TOLD.options, fileSystem: unwatchable };

/** The notifications of a listener about a snapshot. */
class Ear {
  readonly heard: SessionSnapshot[] = [];
  #waiting: { isEnough: () => boolean; resolve: () => void } | undefined;

  readonly listener = (snapshot: SessionSnapshot): void => {
    this.heard.push(snapshot);
    if (this.#waiting?.isEnough()) this.#waiting.resolve();
  };

  /** The statuses of the notifications, without rewrites that kept the status. */
  get statuses(): (SnapshotStatus | undefined)[] {
    return this.heard.map((s) => s.status).filter((status, i, all) => i === 0 || status !== all[i - 1]);
  }

  until(isEnough: () => boolean): Promise<void> {
    if (isEnough()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = { isEnough, resolve };
    });
  }

  untilTold(status: SnapshotStatus): Promise<void> {
    return this.until(() => this.heard.at(-1)?.status === status);
  }
}

describe('watching saves of another process', () => {
  const processes = new Fleet();
  const folders = new Fleet();
  const stores: FileSessionStore[] = [];
  let other: Child;

  function open(folder: string, { options, fileSystem }: Way): FileSessionStore {
    const store = new FileSessionStore(folder, { ...FAST, ...options }, fileSystem);
    stores.push(store);
    return store;
  }

  beforeAll(async () => {
    [other] = (await processes.launch(1)) as [Child];
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await folders.end();
  });
  afterAll(() => processes.end());

  for (const way of [POLLING, TOLD]) {
    it(`notifies of each status once and in order, by ${way.name}`, async () => {
      const folder = folders.folder();
      const store = open(folder, way);
      await store.saveSnapshot('first', () => pending('other'));
      const ears = Array.from({ length: scale(20, 200) }, () => new Ear());
      ears.forEach((ear, i) => store.onSnapshotStateChange(`s${i}`, ear.listener));
      // Watchers get the current snapshot first. When this one has it, the missing ones were checked as well.
      const last = new Ear();
      store.onSnapshotStateChange('first', last.listener);
      await last.untilTold('pending');
      const statuses: SnapshotStatus[] = ['pending', 'pending', 'expired', 'pending', 'completed'];
      for (const i of ears.keys()) await other.call('walk', { store: { folder }, id: `s${i}`, statuses });
      for (const ear of ears) {
        await ear.untilTold('completed');
        expect(ear.statuses).toEqual(['pending', 'expired', 'pending', 'completed']);
      }
    });

    it(`does not notify after the end of a subscription, by ${way.name}`, async () => {
      const folder = folders.folder();
      const store = open(folder, way);
      const [early, late] = [new Ear(), new Ear()];
      const end = store.onSnapshotStateChange('left', early.listener);
      await store.saveSnapshot('left', () => pending('watched'));
      await early.untilTold('pending');
      store.onSnapshotStateChange('left', late.listener);
      end();
      await other.call('walk', { store: { folder }, id: 'left', statuses: ['completed'] });
      await late.untilTold('completed');
      expect(early.statuses).toEqual(['pending']);
    });

    it(`notifies of a snapshot that another process saved before, by ${way.name}`, async () => {
      const folder = folders.folder();
      await other.call('walk', { store: { folder }, id: 'settled', statuses: ['pending', 'failed'] });
      const ear = new Ear();
      open(folder, way).onSnapshotStateChange('settled', ear.listener);
      await ear.untilTold('failed');
      expect(ear.statuses).toEqual(['failed']);
    });
  }

  const changes = Array.from({ length: 15 }, () => ['expired', 'pending'] as const).flat();
  it(`notifies of each of ${changes.length} statuses that a snapshot had between two polls`, async () => {
    const folder = folders.folder();
    const store = open(folder, SELDOM);
    const ear = new Ear();
    await store.saveSnapshot('busy', () => pending('watched'));
    store.onSnapshotStateChange('busy', ear.listener);
    await ear.untilTold('pending');
    await other.call('walk', { store: { folder }, id: 'busy', statuses: [...changes, 'aborted'] });
    // A new subscription reads its snapshot.
    store.onSnapshotStateChange('busy', () => {});
    await ear.untilTold('aborted');
    expect(ear.statuses).toEqual(['pending', ...changes, 'aborted']);
  });

  for (const isCompacted of [false, true]) {
    it(`does not notify of statuses that the snapshot never had, after overtaken writes${isCompacted ? ', in a rewritten index' : ''}`, async () => {
      const folder = folders.folder();
      const [store, writer] = [open(folder, SELDOM), open(folder, SELDOM)];
      const written: SessionSnapshot[] = [];
      const write = async (status: SnapshotStatus, more: Partial<SessionSnapshot> = {}): Promise<void> => {
        await writer.saveSnapshot('busy', (current) => ({
          ...(current ?? pending('watched')),
          status,
          state: { ...current?.state, custom: { n: written.length } },
          ...more,
        }));
        written.push((await writer.getSnapshot({ snapshotId: 'busy' }))!);
      };
      await write('pending');
      const ear = new Ear();
      store.onSnapshotStateChange('busy', ear.listener);
      await ear.untilTold('pending');
      for (let i = 0; i < (isCompacted ? 60 : 1); i++) {
        await write('expired');
        await write('pending', { updatedAt: new Date(1.7e12 + i).toISOString() });
      }
      await write('completed', { finishReason: 'stop' });
      await write('completed', { finishReason: 'other' });
      store.onSnapshotStateChange('busy', () => {});
      await ear.untilTold('completed');
      expect(ear.statuses).toEqual(written.map(({ status }) => status).slice(0, -1));
      expect(ear.heard.at(-1)).toEqual(written.at(-1));
      for (const heard of ear.heard) expect(written).toContainEqual(expect.objectContaining({ ...heard }));
    });
  }

  // The log of a session is rewritten when it has many lines about few snapshots.
  it('notifies of each of 200 statuses although the log was rewritten between two polls', async () => {
    const folder = folders.folder();
    const store = open(folder, SELDOM);
    const ear = new Ear();
    await store.saveSnapshot('busy', () => pending('watched'));
    store.onSnapshotStateChange('busy', ear.listener);
    await ear.untilTold('pending');
    const log = join(folder, 'global/.sessions/watched/log.jsonl');
    const header = (): string | undefined => readFileSync(log, 'utf8').split('\n')[0];
    const before = header();
    const many = Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? ('expired' as const) : ('pending' as const)));
    await other.call('walk', { store: { folder }, id: 'busy', statuses: [...many, 'aborted'] });
    expect(header(), 'it is another log').not.toBe(before);
    store.onSnapshotStateChange('busy', () => {});
    await ear.untilTold('aborted');
    expect(ear.statuses).toEqual(['pending', ...many, 'aborted']);
  });

  it('notifies of each status between two polls of a snapshot that was missing before', async () => {
    const folder = folders.folder();
    const store = open(folder, SELDOM);
    await store.saveSnapshot('first', () => pending('other'));
    const [ear, last] = [new Ear(), new Ear()];
    store.onSnapshotStateChange('new', ear.listener);
    // When this one was checked, the one subscribed to before was checked too, and was missing.
    store.onSnapshotStateChange('first', last.listener);
    await last.untilTold('pending');
    await other.call('walk', { store: { folder }, id: 'new', statuses: ['pending', 'expired', 'pending', 'failed'] });
    store.onSnapshotStateChange('new', () => {});
    await ear.untilTold('failed');
    expect(ear.statuses).toEqual(['pending', 'expired', 'pending', 'failed']);
  });

  for (const code of ['EACCES', 'ENOTDIR', 'EIO', 'ESTALE']) {
    it(`continues after the folder could not be read for a while (${code})`, async () => {
      const folder = folders.folder();
      let isFailing = false;
      let failures = 0;
      const fileSystem: FileSystem = {
        ...unwatchable,
        stat(path) {
          if (!isFailing) return nodeFileSystem.stat(path);
          failures++;
          throw Object.assign(new Error(`${code}, lstat '${path}'`), { code, syscall: 'lstat' });
        },
      };
      const store = open(folder, { ...POLLING, fileSystem });
      await store.saveSnapshot('one', () => pending('watched'));
      const [before, during] = [new Ear(), new Ear()];
      store.onSnapshotStateChange('one', before.listener);
      await before.untilTold('pending');
      isFailing = true;
      store.onSnapshotStateChange('one', during.listener);
      const seen = failures;
      await expect.poll(() => failures).toBeGreaterThan(seen + 3);
      isFailing = false;
      await other.call('walk', { store: { folder }, id: 'one', statuses: ['aborted'] });
      for (const ear of [before, during]) await ear.untilTold('aborted');
    });
  }

  for (const way of [POLLING, { ...POLLING, name: 'polling and the system', fileSystem: nodeFileSystem }]) {
    it(`works without a directory, and does not create it, by ${way.name}`, async () => {
      const folder = join(folders.folder(), 'not', 'yet');
      const ear = new Ear();
      open(folder, way).onSnapshotStateChange('early', ear.listener);
      await other.call('ready', {});
      expect(existsSync(folder)).toBe(false);
      await other.call('walk', { store: { folder }, id: 'early', statuses: ['pending', 'completed'] });
      await ear.untilTold('completed');
      expect(ear.statuses.at(-1)).toBe('completed');
      expect(['pending', 'completed']).toEqual(expect.arrayContaining(ear.statuses));
    });
  }

  it('works in an empty directory, by the system', async () => {
    const folder = folders.folder();
    const ear = new Ear();
    open(folder, TOLD).onSnapshotStateChange('early', ear.listener);
    await other.call('walk', { store: { folder }, id: 'early', statuses: ['pending', 'completed'] });
    await ear.untilTold('completed');
    expect(ear.statuses.at(-1)).toBe('completed');
  });

  it('still notifies of everything when the system stops reporting', async () => {
    const folder = folders.folder();
    const failing: FileSystem = {
      ...nodeFileSystem,
      watch(path, onEvent, onEnd) {
        const watch = nodeFileSystem.watch(path, onEvent, onEnd);
        setImmediate(() => {
          watch.close();
          onEnd();
        });
        return watch;
      },
    };
    const ear = new Ear();
    open(folder, { ...POLLING, fileSystem: failing }).onSnapshotStateChange('left alone', ear.listener);
    await other.call('walk', { store: { folder }, id: 'left alone', statuses: ['pending', 'completed'] });
    await ear.untilTold('completed');
  });
});
