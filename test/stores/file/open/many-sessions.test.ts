import { afterEach, describe, expect, it, vi } from 'vitest';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, SESSION } from '../support/scenarios.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('calls on many sessions', () => {
  it('let other work of the process run in between', async () => {
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

describe('a clock that was centuries ahead for one save', () => {
  it('changes no order: the leaf is the one saved last, and sessions are listed by their last saves', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { durability: 'fast' });
    const now = vi.spyOn(Date, 'now');
    now.mockReturnValue(Date.UTC(2700, 0));
    await saveTurn(store, 1);
    now.mockRestore();
    await saveTurn(store, 2);
    await store.saveSnapshot('other', () => ({ sessionId: 'other', createdAt: 'x', state: {} }));
    for (const reader of [store, openStore(folder)]) {
      expect((await reader.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t2');
      expect((await reader.listSnapshots({ sessionId: SESSION })).items.map((item) => item.snapshotId)).toEqual([
        't1',
        't2',
      ]);
      expect((await reader.listSessions()).items.map((item) => item.sessionId)).toEqual(['other', SESSION]);
    }
  });
});

describe('many tenants', () => {
  const context = (tenant: string): { context: { auth: { uid: string } } } => ({ context: { auth: { uid: tenant } } });

  it('do not make a listener miss saves of its own store', async () => {
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
});

describe('the facts about a session', () => {
  it('are those of the last write, of any of its snapshots', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { durability: 'fast' });
    await store.saveSnapshot('t0', () => ({ sessionId: SESSION, createdAt: 'x', status: 'completed' }), {
      session: { ownerId: 'ada', agent: 'support' },
    });
    await saveTurn(store, 1, { parent: 't0' });
    await store.saveSnapshot('t0', (current) => ({ ...current!, note: 'seen' }), { session: { title: 'Shoes' } });
    const facts = { ownerId: 'ada', agent: 'support', title: 'Shoes' };
    expect((await openStore(folder).listSessions()).items).toMatchObject([facts]);
    await saveTurn(openStore(folder), 2);
    expect((await store.listSessions({ ownerId: 'ada' })).items).toMatchObject([facts]);
  });
});
