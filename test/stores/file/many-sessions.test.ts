import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WatchHub } from '../../../src/store/watch-hub.ts';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { nodeFileSystem, type FileSystem } from '../../../stores/file/file-system.ts';
import type { Session } from '../../../stores/file/session.ts';
import { StoreFolder } from '../../../stores/file/store-folder.ts';
import { KnownSessions, Tenant } from '../../../stores/file/tenant.ts';
import { TenantWatch } from '../../../stores/file/tenant-watch.ts';
import { temporaryFolder } from './support/folders.ts';
import { openStore, saveTurn, SESSION } from './support/scenarios.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('calls on many sessions', () => {
  it('let others of the process run in between', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { durability: 'fast' });
    for (let i = 0; i < 60; i++) {
      await store.saveSnapshot(`n${i}`, () => ({
        sessionId: `s${i}`,
        createdAt: '2026-01-01T00:00:00.000Z',
        state: {},
      }));
    }
    let clock = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => clock++);
    const calls: Record<string, () => Promise<unknown>> = {
      listSessions: () => store.listSessions(),
      'prune, tried': () => store.prune({ maxChainLength: 1 }, { dryRun: true }),
      prune: () => store.prune({ maxChainLength: 1 }),
    };
    for (const [name, call] of Object.entries(calls)) {
      let turns = 0;
      const turn = (): void => {
        turns++;
        next = setImmediate(turn);
      };
      let next = setImmediate(turn);
      await call();
      clearImmediate(next);
      expect(turns, name).toBeGreaterThan(5);
    }
  });
});

describe('the time of a save', () => {
  it('is later than that of the one before in its session, though the clock was set back in between', async () => {
    const folder = temporaryFolder();
    const log = join(folder, 'global/.sessions/a-session.jsonl');
    await saveTurn(openStore(folder), 1);
    const ahead = (Date.now() + 3_600_000) * 1000;
    writeFileSync(log, readFileSync(log, 'utf8').replaceAll(/"t":\d+/g, `"t":${ahead}`));
    const store = openStore(folder);
    await store.saveSnapshot('other', () => ({ sessionId: 'other', createdAt: 'x', state: {} }));
    await saveTurn(store, 2);
    const times = [...readFileSync(log, 'utf8').matchAll(/"t":(\d+)/g)].map((match) => Number(match[1]));
    expect(times.at(-1)).toBeGreaterThan(ahead);
    expect((await store.listSessions()).items.map((item) => item.sessionId)).toEqual([SESSION, 'other']);
  });
});

describe('many tenants', () => {
  const context = (tenant: string): { context: { auth: { uid: string } } } => ({ context: { auth: { uid: tenant } } });

  it('do not make a listener miss what its own store saves', async () => {
    const fs: FileSystem = {
      ...nodeFileSystem,
      watch: () => {
        throw new Error('this system tells of nothing');
      },
    };
    const store = new FileSessionStore<number>(
      temporaryFolder(),
      {
        durability: 'fast',
        snapshotWatchPollIntervalMs: 1e9,
        snapshotPathPrefix: ({ context: caller } = {}) => String(caller?.auth?.uid),
      },
      fs,
    );
    const save = (custom: number): Promise<string | null> =>
      store.saveSnapshot(
        'w',
        () => ({ sessionId: 's', createdAt: 'x', status: 'pending', state: { custom } }),
        context('one'),
      );
    await save(0);
    const told: unknown[] = [];
    let hear = (): void => {};
    const heard = (): Promise<void> => new Promise((resolve) => (hear = resolve));
    const first = heard();
    const unsubscribe = store.onSnapshotStateChange(
      'w',
      (snapshot) => {
        told.push(snapshot.state?.custom);
        hear();
      },
      context('one'),
    );
    await first;
    for (let i = 0; i < 1100; i++) await store.getSnapshot({ snapshotId: 'x', ...context(`other ${i}`) });
    const second = heard();
    await save(1);
    await second;
    expect(told).toEqual([0, 1]);
    unsubscribe();
    await store.close();
  });

  it('are forgotten by who watches when the last listener has left', () => {
    const folder = new StoreFolder(nodeFileSystem, temporaryFolder(), { durability: 'fast', lockTimeoutMs: 0 });
    const tenant = new Tenant(folder, 'one', new KnownSessions());
    const onIdle = vi.fn();
    const watch = new TenantWatch(tenant, new WatchHub(), { read: async () => undefined, pollIntervalMs: 1e9, onIdle });
    const ends = ['x', 'x', 'y'].map((id) => watch.subscribe(id, () => {}));
    ends[0]!();
    ends[2]!();
    expect(onIdle).not.toHaveBeenCalled();
    ends[1]!();
    expect(onIdle).toHaveBeenCalledTimes(1);
    expect(tenant.onEntry).toBeUndefined();
  });

  it('have no more than 100,000 snapshots in memory together, or one session that has more', () => {
    const known = new KnownSessions();
    const session = (name: string, size: number): Session =>
      ({ name, index: { tree: { size } } }) as unknown as Session;
    const growing = session('growing', 1);
    known.keep(0, growing);
    known.keep(1, session('other', 60_000));
    expect(known.get(0, 'growing')).toBe(growing);
    known.keep(2, session('more', 50_000));
    expect(known.get(1, 'other')).toBeUndefined();
    known.keep(0, session('growing', 70_000));
    expect(known.get(2, 'more')).toBeUndefined();
    known.keep(3, session('huge', 1_000_000));
    expect(known.get(3, 'huge')).toBeDefined();
    expect(known.get(0, 'growing')).toBeUndefined();
  });
});
