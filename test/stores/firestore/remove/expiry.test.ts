import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { allDocuments } from '../support/at-rest.ts';
import { openDatabase } from '../support/database.ts';
import { applyTtlPolicy, DAY, passTime } from '../support/time.ts';
import { trafficOf } from '../support/transport.ts';
import { makeTurn } from '../../make-turn.ts';

const turn = (n: number, rest: Partial<SessionSnapshotInput> = {}): SessionSnapshotInput =>
  makeTurn({
    state: { custom: { n, text: `${n} `.repeat(10_000) } },
    ...(n > 0 && { parentId: `turn-${n - 1}` }),
    ...rest,
  });

describe('a session expires as a whole', () => {
  let db: Firestore;
  let store: FirestoreSessionStore;
  const open = (): FirestoreSessionStore =>
    new FirestoreSessionStore({ db, expireAfterMs: DAY, checkpointInterval: 3 });
  const numbersOf = async (of: FirestoreSessionStore): Promise<unknown[]> => {
    const found = await Promise.all([0, 1, 2, 3].map((n) => of.getSnapshot({ snapshotId: `turn-${n}` })));
    return found.map((snapshot) => (snapshot?.state?.custom as { n: number } | undefined)?.n);
  };
  beforeEach(async () => {
    db = openDatabase();
    store = open();
    for (let n = 0; n < 4; n++) await store.saveSnapshot(`turn-${n}`, () => turn(n));
  });
  afterEach(() => void vi.useRealTimers());

  it('it reads as absent at once, everywhere, with or without its pointer', async () => {
    const told: unknown[] = [];
    const ends: (() => void)[] = [];
    await passTime(db, DAY - 60_000);
    for (const reader of [store, open()]) expect(await numbersOf(reader)).toEqual([0, 1, 2, 3]);
    await passTime(db, 60_000);
    for (const isRemoved of [false, true]) {
      if (isRemoved) await applyTtlPolicy(db);
      for (const reader of [store, open()]) {
        expect(await numbersOf(reader)).toEqual([undefined, undefined, undefined, undefined]);
        expect(await reader.getSnapshot({ sessionId: 'chat' })).toBeUndefined();
        expect(await reader.getSnapshotMetadata({ sessionId: 'chat' })).toBeUndefined();
        expect(await reader.getSnapshotMetadata({ snapshotId: 'turn-3' })).toBeUndefined();
        expect((await reader.listSessions()).items).toEqual([]);
        expect((await reader.listSnapshots({ sessionId: 'chat' })).items).toEqual([]);
        ends.push(reader.onSnapshotStateChange('turn-3', (news) => told.push(news)));
      }
    }
    await store.saveSnapshot('other', () => turn(0, { sessionId: 'other', status: 'pending' }));
    const hears = new Promise((resolve) => store.onSnapshotStateChange('other', resolve));
    await hears;
    expect(told).toEqual([]);
    for (const end of ends) end();
    await store.close();
  });

  it('a write prolongs the life of all its snapshots; a read by id reads the pointer only if the snapshot’s own expiry has passed', async () => {
    await passTime(db, DAY / 2);
    await store.saveSnapshot('turn-4', () => turn(4));
    await passTime(db, DAY / 2 + 60_000);
    const other = open();
    const reads = async (snapshotId: string): Promise<number> =>
      (await trafficOf(() => other.getSnapshotMetadata({ snapshotId }))).reads;
    expect([await reads('turn-0'), await reads('turn-4')]).toEqual([2, 1]);
    expect(await numbersOf(other)).toEqual([0, 1, 2, 3]);
    expect((await other.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('turn-4');
  });

  it('heartbeats of a running turn keep it alive', async () => {
    await store.saveSnapshot('turn-4', () => turn(4, { status: 'pending' }));
    for (let beat = 0; beat < 4; beat++) {
      await passTime(db, 0.4 * DAY);
      await store.saveSnapshot('turn-4', (current) => ({ ...current!, heartbeatAt: `${beat}` }));
    }
    expect((await open().getSnapshot({ sessionId: 'chat' }))?.heartbeatAt).toBe('3');
  });

  it.each([false, true])(
    'after it begins again with the same ids, it never reads the old snapshots (pointer removed: %s)',
    async (isRemoved) => {
      await passTime(db, 2 * DAY);
      if (isRemoved) await applyTtlPolicy(db);
      const expectedLeafId = 'turn-3';
      const late = store.saveSnapshot('turn-9', () => turn(9, { parentId: 'turn-3' }), { expectedLeafId });
      await expect(late).rejects.toMatchObject({ status: 'ABORTED' });
      await open().saveSnapshot('turn-2', (current) => turn(22, { parentId: 'turn-1', note: !!current } as object));
      for (const reader of [store, open()]) {
        expect(await numbersOf(reader)).toEqual([undefined, undefined, 22, undefined]);
        const { items } = await reader.listSnapshots({ sessionId: 'chat' });
        expect(items).toMatchObject([{ snapshotId: 'turn-2', parentId: 'turn-1', note: false }]);
      }
      await store.saveSnapshot('turn-1', () => turn(11, { parentId: 'turn-0' }));
      expect((await open().getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('turn-2');
      expect(await store.prune({ idleMs: 1e12 })).toMatchObject({ sessions: 0, snapshots: 2 });
      expect(await numbersOf(open())).toEqual([undefined, 11, 22, undefined]);
      expect((await allDocuments(db)).filter(({ ref }) => ref.parent.id === 'snapshots')).toHaveLength(2);
    },
  );

  it('prune removes the rest of an expired session; so does the function on the deletion of its pointer', async () => {
    await store.saveSnapshot('kept', () => turn(0, { sessionId: 'kept' }));
    await passTime(db, 2 * DAY);
    await store.saveSnapshot('kept', () => turn(0, { sessionId: 'kept' }));
    const pointer: DocumentSnapshot = await db.doc('genkit-sessions-pointers/global/pointers/chat').get();
    expect(await store.prune({ idleMs: 1e12 }, { dryRun: true })).toMatchObject({ sessions: 1, snapshots: 4 });
    await applyTtlPolicy(db);
    expect(await store.removeExpired(pointer)).toMatchObject({ snapshots: 4 });
    expect(await store.prune({ idleMs: 1e12 })).toMatchObject({ sessions: 0, snapshots: 0 });
    const left = (await allDocuments(db)).map(({ ref }) => ref.parent.id);
    expect(left.toSorted()).toEqual(['pointers', 'snapshots']);
    expect((await open().getSnapshot({ sessionId: 'kept' }))?.state).toEqual(turn(0).state);
    await passTime(db, 2 * DAY);
    await applyTtlPolicy(db);
    expect(await open().prune({ idleMs: 1e12 })).toMatchObject({ sessions: 0, snapshots: 1 });
    expect(await allDocuments(db)).toEqual([]);
  });

  it('a snapshot without a session expires by itself', async () => {
    await store.saveSnapshot('alone', () => turn(0, { sessionId: undefined }));
    await passTime(db, DAY / 2);
    await store.saveSnapshot('alone', (current) => ({ ...current!, heartbeatAt: 'now' }));
    await passTime(db, DAY / 2);
    expect(await open().getSnapshot({ snapshotId: 'alone' })).toBeDefined();
    await passTime(db, DAY);
    expect(await open().getSnapshot({ snapshotId: 'alone' })).toBeUndefined();
    expect(await open().saveSnapshot('alone', (current) => turn(current ? 1 : 7, { sessionId: undefined }))).toBe(
      'alone',
    );
    expect((await open().getSnapshot({ snapshotId: 'alone' }))?.state?.custom).toMatchObject({ n: 7 });
  });

  it('a clock that is set back during a turn does not hide the session', async () => {
    const leaf = await store.getSnapshot({ sessionId: 'chat' });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3 * DAY });
    await store.saveSnapshot('turn-4', () => turn(4, { parentId: leaf!.snapshotId }));
    vi.useRealTimers();
    expect((await open().getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('turn-4');
  });

  it('a machine with a wrong clock neither hides sessions nor keeps them forever', async () => {
    for (const days of [-3000, 3000]) {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * DAY });
      const off = open();
      const leaf = await off.getSnapshot({ sessionId: 'chat' });
      await off.saveSnapshot(`turn of ${days}`, () => turn(4, { parentId: leaf?.snapshotId ?? 'none' }));
      vi.useRealTimers();
      expect((await open().getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe(`turn of ${days}`);
    }
    expect((await open().listSnapshots({ sessionId: 'chat' })).items).toHaveLength(6);
    await passTime(db, DAY + 60_000);
    expect(await open().getSnapshot({ sessionId: 'chat' })).toBeUndefined();
  });
});

it('without expireAfterMs a missing pointer is DATA_LOSS; with it the session counts as expired', async () => {
  const db = openDatabase();
  await new FirestoreSessionStore({ db }).saveSnapshot('turn-0', () => turn(0));
  await db.doc('genkit-sessions-pointers/global/pointers/chat').delete();
  const lookup = { sessionId: 'chat' };
  const lost = new FirestoreSessionStore({ db }).getSnapshot(lookup);
  await expect(lost).rejects.toMatchObject({ status: 'DATA_LOSS' });
  expect(await new FirestoreSessionStore({ db, expireAfterMs: DAY }).getSnapshot(lookup)).toBeUndefined();
  const pruned = new FirestoreSessionStore({ db }).prune({ idleMs: 0 });
  await expect(pruned).rejects.toMatchObject({ status: 'DATA_LOSS' });
  expect(await new FirestoreSessionStore({ db }).getSnapshot({ snapshotId: 'turn-0' })).toBeDefined();
});
