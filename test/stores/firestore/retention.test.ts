import type { Firestore } from '@google-cloud/firestore';
import type { ScopeId, SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { completedSnapshot, Workload } from '../../../bench/workload.ts';
import { allDocuments } from './support/at-rest.ts';
import { openDatabase } from './support/database.ts';
import { beforeCommit } from './support/transport.ts';

const CANARY = 'canary-7f3a';
const DAY = 86_400_000;
const ADA: ScopeId = { scope: 'user', appName: CANARY, userId: 'ada' };
const SHOP: ScopeId = { scope: 'app', appName: CANARY };

/** Where the canary is to be seen, unpacked or not, and which documents there are. */
async function trace(db: Firestore): Promise<string[]> {
  return (await allDocuments(db)).map((document) => document.ref.path);
}

async function play(store: FirestoreSessionStore, turns: number, context?: Record<string, unknown>): Promise<void> {
  const workload = new Workload({ sessionId: CANARY });
  for (let i = 0; i < turns; i++) {
    const next = completedSnapshot(workload.next(), i > 0 ? `${CANARY}-${i - 1}` : undefined);
    await store.saveSnapshot(`${CANARY}-${i}`, () => next, context && { context });
  }
}

describe('retention', () => {
  let db: Firestore;
  const opened: Firestore[] = [];
  beforeEach(() => void opened.push((db = openDatabase())));
  afterAll(async () => void (await Promise.all(opened.map((one) => one.terminate()))));

  it('deleteSession leaves nothing in any collection', async () => {
    const store = new FirestoreSessionStore({ db, checkpointInterval: 3 });
    await play(store, 12);
    await store.saveSnapshot(`${CANARY}-3`, (current) => ({ ...current!, state: { custom: { rewritten: CANARY } } }));
    expect(await store.deleteSession({ sessionId: CANARY })).toMatchObject({ snapshots: 12 });
    expect(await trace(db)).toEqual([]);
  });

  it('erase removes all of one tenant, records included, and nothing of another', async () => {
    const store = new FirestoreSessionStore({
      db,
      snapshotPathPrefix: (options) => String(options?.context?.['tenant']),
    });
    for (const tenant of [CANARY, 'other']) {
      await play(store, 4, { tenant });
      const alone = { createdAt: '2026-01-01T00:00:00.000Z', parentId: 'elsewhere', state: { custom: CANARY } };
      await store.saveSnapshot('alone', () => alone, {
        context: { tenant },
        scopes: [ADA, SHOP].map((id) => ({ id, change: () => ({ note: `${CANARY} of ${tenant}` }) })),
      });
    }
    expect((await trace(db)).filter((path) => path.includes(`-scopes/${CANARY}/`))).toHaveLength(2);
    const erased = await store.erase({ context: { tenant: CANARY } });
    expect(erased).toMatchObject({ sessions: 1, snapshots: 5, scopes: 2 });
    const paths = await trace(db);
    expect(paths.filter((path) => path.includes(CANARY) && !path.includes('/other/'))).toEqual([]);
    const [note] = await store.readScopes({ scopes: [ADA], context: { tenant: 'other' } });
    expect(note).toEqual({ note: `${CANARY} of other` });
    expect(await store.readScopes({ scopes: [ADA, SHOP], context: { tenant: CANARY } })).toEqual([{}, {}]);
    expect(paths.length).toBeGreaterThan(5);
    const kept = await store.getSnapshot({ sessionId: CANARY, context: { tenant: 'other' } });
    expect(kept?.snapshotId).toBe(`${CANARY}-3`);
  });

  it('deleteScope leaves nothing of a record, and deleting its sessions leaves it', async () => {
    const store = new FirestoreSessionStore({ db, expireAfterMs: 1000 });
    await store.saveSnapshot('turn', () => ({ sessionId: CANARY, createdAt: '2026-01-01T00:00:00.000Z' }), {
      scopes: [{ id: ADA, change: () => ({ note: CANARY }) }],
    });
    await store.deleteSession({ sessionId: CANARY });
    const [record, ...others] = await allDocuments(db);
    expect(others).toEqual([]);
    expect(record?.get('expireAt')).toBeUndefined();
    expect(await store.deleteScope({ scope: ADA })).toBe(true);
    expect(await trace(db)).toEqual([]);
  });

  it('a deletion that is interrupted has removed the session, and is ended by the next', async () => {
    const store = new FirestoreSessionStore({ db });
    await play(store, 5);
    let isBroken = true;
    let commits = 0;
    beforeCommit(() => {
      if (isBroken && ++commits === 2) throw Object.assign(new Error('interrupted'), { code: 13 });
    });
    await expect(store.deleteSession({ sessionId: CANARY })).rejects.toThrow();
    isBroken = false;
    const other = new FirestoreSessionStore({ db });
    expect(await other.getSnapshot({ sessionId: CANARY })).toBeUndefined();
    expect((await other.listSessions()).items).toEqual([]);
    await other.saveSnapshot('anew', () => ({ sessionId: CANARY, createdAt: '2026-01-01T00:00:00.000Z' }));
    expect(await other.listSnapshots({ sessionId: CANARY })).toMatchObject({ items: [{ snapshotId: 'anew' }] });
    expect(await trace(db)).toHaveLength(2);
  });

  it('prune tells how far it is', async () => {
    const store = new FirestoreSessionStore({ db });
    for (const sessionId of ['a', 'b', 'c']) {
      await store.saveSnapshot(sessionId, () => ({
        sessionId,
        createdAt: '2020-01-01T00:00:00.000Z',
        status: 'completed',
      }));
    }
    const told: number[] = [];
    const result = await store.prune({ idleMs: 1000 }, { onProgress: ({ examined }) => told.push(examined) });
    expect(result).toMatchObject({ sessions: 3, snapshots: 3 });
    expect(told).toEqual([1, 2, 3, 3]);
    expect(await trace(db)).toEqual([]);
  });

  it('what has expired counts as gone, carries a time for the TTL policy, and strands no session when it is removed', async () => {
    await withClock(async (clock) => {
      const open = (): FirestoreSessionStore =>
        new FirestoreSessionStore({ db, expireAfterMs: DAY, checkpointInterval: 4 });
      const turn = (n: number, parentId?: string): SessionSnapshotInput => ({
        sessionId: 'chat',
        createdAt: new Date(clock.now).toISOString(),
        ...(parentId !== undefined && { parentId }),
        state: { custom: { n, text: 'x'.repeat(2000) } },
      });
      for (let n = 0; n < 20; n++) {
        await open().saveSnapshot(`turn-${n}`, () => turn(n, n > 0 ? `turn-${n - 1}` : undefined));
        clock.now += DAY / 8;
        await removeExpired(db, clock.now);
        const leaf = await open().getSnapshot({ sessionId: 'chat' });
        expect(leaf?.state?.custom).toMatchObject({ n });
        for (let i = 0; i <= n; i++) {
          const found = await open().getSnapshot({ snapshotId: `turn-${i}` });
          expect(found?.snapshotId).toBe(n - i < 7 ? `turn-${i}` : undefined);
        }
      }
      clock.now += 2 * DAY;
      expect(await open().getSnapshot({ sessionId: 'chat' })).toBeUndefined();
      expect((await open().listSessions()).items).toEqual([]);
      await open().saveSnapshot('again', () => turn(99), { expectedLeafId: null });
      expect((await open().getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('again');
      clock.now += 10 * DAY;
      await removeExpired(db, clock.now);
      expect(await trace(db)).toEqual([]);
    });
  });

  it('who is named as parent without a session is known as long as the one that names it lives, and no longer', async () => {
    await withClock(async (clock) => {
      const open = (): FirestoreSessionStore => new FirestoreSessionStore({ db, expireAfterMs: DAY });
      const createdAt = new Date(clock.now).toISOString();
      await open().saveSnapshot('child', () => ({ createdAt, parentId: 'parent' }));
      for (let half = 0; half < 8; half++) {
        clock.now += DAY / 2;
        await open().saveSnapshot('child', (current) => ({ ...current!, heartbeatAt: createdAt }));
        await removeExpired(db, clock.now);
      }
      const closing = open().saveSnapshot('parent', () => ({ createdAt, parentId: 'child' }));
      await expect(closing).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
      clock.now += 3 * DAY;
      await removeExpired(db, clock.now);
      expect(await trace(db)).toEqual([]);
    });
  });
});

/** Runs `work` in a time of its own, which passes when it says so. */
async function withClock(work: (clock: { now: number }) => Promise<void>): Promise<void> {
  const clock = { now: Date.parse('2026-01-01T00:00:00.000Z') };
  const real = Date.now;
  Date.now = () => clock.now;
  try {
    await work(clock);
  } finally {
    Date.now = real;
  }
}

/** What Firestore's TTL policy does, at the earliest moment that it may. */
async function removeExpired(db: Firestore, now: number): Promise<void> {
  for (const document of await allDocuments(db)) {
    const expireAt = document.get('expireAt') as { toMillis(): number } | undefined;
    if (expireAt && expireAt.toMillis() <= now) await document.ref.delete();
  }
}
