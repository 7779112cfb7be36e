import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { envelope, eraseUser, holdSession, localKeys, releaseSession } from 'genkitx-agents/privacy';
import { beforeEach, describe, expect, it } from 'vitest';
import { unpackBoth } from '../../../stores/firestore/format/packed-text.ts';
import { allDocuments } from '../../stores/firestore/support/at-rest.ts';
import { openDatabase } from '../../stores/firestore/support/database.ts';
import { applyTtlPolicy, DAY, passTime } from '../../stores/firestore/support/time.ts';
import { makeTurn } from '../../stores/make-turn.ts';
import { secret } from '../encryption/support.ts';

const turn = (sessionId: string, n: number) => () =>
  makeTurn({ sessionId, ...(n > 0 && { parentId: `${sessionId} ${n - 1}` }), state: { custom: { n } } });

describe('a session on hold, where sessions expire', () => {
  let db: Firestore;
  const encryption = envelope({ keys: localKeys(secret('a')) });
  const open = () => new FirestoreSessionStore({ db, expireAfterMs: DAY, encryption });
  const pointer = (): Promise<DocumentSnapshot> => db.doc('genkit-sessions-pointers/global/pointers/held').get();
  const session = { sessionId: 'held' };

  /** The data left after this time, when Firestore's TTL policy and `prune` have run. */
  async function after(ms: number): Promise<unknown[]> {
    await passTime(db, ms);
    await applyTtlPolicy(db);
    await open().prune({ idleMs: 1e12 });
    const store = open();
    const { items } = await store.listSessions();
    return Promise.all(
      items.map(async ({ sessionId, title }) => {
        const { items: snapshots } = await store.listSnapshots({ sessionId });
        const all = await Promise.all(snapshots.map(({ snapshotId }) => open().getSnapshot({ snapshotId })));
        return [sessionId, title, all.map((one) => (one?.state?.custom as { n: number } | undefined)?.n)];
      }),
    );
  }

  beforeEach(async () => {
    db = openDatabase();
    for (const sessionId of ['held', 'free']) {
      for (const n of [0, 1]) {
        await open().saveSnapshot(`${sessionId} ${n}`, turn(sessionId, n), {
          session: { title: sessionId, ownerId: 'ada' },
        });
      }
      await open().writeRecord({ sessionId, kind: 'summary', key: 'latest', value: 'all of it' });
    }
  });

  it('stays with all that it has, and its pointer carries no expiry, until the last hold is released', async () => {
    await holdSession(open(), session);
    await holdSession(open(), { ...session, key: 'audit' });
    expect((await pointer()).get('expireAt')).toBeNull();
    expect(await after(3 * DAY)).toEqual([['held', 'held', [0, 1]]]);
    const records = await open().readRecords(session);
    expect(records.map(({ kind, key }) => [kind, key])).toEqual([
      ['hold', 'audit'],
      ['hold', 'hold'],
      ['summary', 'latest'],
    ]);
    await releaseSession(open(), session);
    expect((await pointer()).get('expireAt')).toBeNull();
    await releaseSession(open(), { ...session, key: 'audit' });
    expect(await after(DAY - 60_000)).toEqual([['held', 'held', [0, 1]]]);
    expect(await after(120_000)).toEqual([]);
    expect(await allDocuments(db)).toEqual([]);
  });

  it('continues: turns, in a process that does not know of the hold too, put no expiry back', async () => {
    const early = open();
    await early.getSnapshot(session);
    await holdSession(open(), session);
    await early.saveSnapshot('held 2', turn('held', 2));
    await open().saveSnapshot('held 3', turn('held', 3));
    await open().prune({ maxChainLength: 3 });
    expect((await pointer()).get('expireAt')).toBeNull();
    // The client's metadata of the document is not its content.
    const content = Object.keys(unpackBoth((await pointer()).get('info') as Buffer).clear as object);
    expect(content.filter((name) => ['ref', 'updateTime', 'written'].includes(name))).toEqual([]);
    expect(await after(3 * DAY)).toEqual([['held', 'held', [1, 2, 3]]]);
  });

  it('is held by the last of ten holds and releases at once, and continues beside turns', async () => {
    const keys = Array.from({ length: 5 }, (_, n) => `${n}`);
    for (const key of keys) await holdSession(open(), { ...session, key });
    const turns = async (): Promise<void> => {
      for (let n = 2; n < 8; n++) await open().saveSnapshot(`held ${n}`, turn('held', n));
    };
    const store = open();
    await Promise.all([
      turns(),
      ...keys.map((key) => releaseSession(store, { ...session, key })),
      ...keys.map((key) => holdSession(open(), { ...session, key: `more ${key}` })),
    ]);
    expect(await store.readRecords({ ...session, kind: 'hold' })).toHaveLength(5);
    expect((await pointer()).get('expireAt')).toBeNull();
    await Promise.all(keys.map((key) => releaseSession(open(), { ...session, key: `more ${key}` })));
    expect((await pointer()).get('expireAt')).not.toBeNull();
  });

  it('is deleted and erased as any other, and begun again it expires', async () => {
    await holdSession(open(), session);
    expect(await eraseUser(open(), { userId: 'ada' })).toMatchObject({ sessions: 2, records: 3 });
    await expect(holdSession(open(), session)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    await open().saveSnapshot('anew', turn('held', 0));
    expect((await pointer()).get('expireAt')).not.toBeNull();
  });
});
