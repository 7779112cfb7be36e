import type { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeEach, describe, expect, it } from 'vitest';
import { Workload } from '../../../../bench/workload.ts';
import { Random } from '../../../support/random.ts';
import { scale, seed } from '../../../support/scale.ts';
import { allDocuments } from '../support/at-rest.ts';
import { afterReads, beforeCommits } from '../support/between-calls.ts';
import { newProject, openDatabase } from '../support/database.ts';
import { makeTurn } from '../../make-turn.ts';

const SESSION = 'contended';
/** More documents than one commit of a deletion removes. */
const MANY = 350;

/** Large enough to be stored in shards, whose names are the same for every writer. */
const STATE = stateWithShards();

const turn = (extra: Partial<SessionSnapshotInput> = {}): SessionSnapshotInput =>
  makeTurn({ sessionId: SESSION, state: STATE, ...extra });

describe('deletions that race saves of other clients', () => {
  let project: string;
  const client = (): Firestore => openDatabase(project);
  beforeEach(() => void (project = newProject()));

  const rounds = scale(5, 400);
  it(`of a missing session, ${rounds} rounds: its first save comes completely before or after the deletion (seed ${seed})`, async () => {
    const [a, b, reader] = [1, 2, 3].map(() => new FirestoreSessionStore({ db: client() }));
    const random = new Random(seed);
    const seen = { before: 0, after: 0 };
    for (let round = 0; round < rounds; round++) {
      const [sessionId, id] = [`session ${round}`, `snapshot ${round}`];
      // The first save of a session that is known to be absent is one request.
      await b!.getSnapshot({ sessionId });
      const deletion = a!.deleteSession({ sessionId });
      await pause(random.below(20));
      const state = round % 2 === 0 ? STATE : { custom: { round } };
      const [removed] = await Promise.all([deletion, b!.saveSnapshot(id, () => turn({ sessionId, state }))]);
      const isThere = await isWhole(reader!, sessionId, id);
      expect(removed.snapshots).toBe(isThere ? 0 : 1);
      seen[isThere ? 'after' : 'before']++;
    }
    console.log('first saves beside the deletion', seen);
  });

  it('of a session that begins right after the deletion found none: it is kept or removed completely', async () => {
    const db = client();
    const [a, b] = [new FirestoreSessionStore({ db }), new FirestoreSessionStore({ db: client() })];
    await b.saveSnapshot('other', () => turn({ sessionId: 'other' }));
    afterReads(db, async (read) => void (read === 1 && (await b.saveSnapshot('first', () => turn()))));
    const { snapshots } = await a.deleteSession({ sessionId: SESSION });
    expect(await isWhole(b, SESSION, 'first')).toBe(snapshots === 0);
  });

  it('of the rest of a session without a pointer, while the session begins: its new snapshots are kept', async () => {
    const db = client();
    const [a, b] = [new FirestoreSessionStore({ db }), new FirestoreSessionStore({ db: client(), expireAfterMs: 1e9 })];
    await b.saveSnapshot('old', () => turn());
    await removeDocuments(db, ['pointers']);
    beforeCommits(db, async (commit) => void (commit === 1 && (await b.saveSnapshot('new', () => turn()))));
    expect(await a.deleteSession({ sessionId: SESSION })).toMatchObject({ snapshots: 1 });
    expect(await isWhole(b, SESSION, 'new')).toBe(true);
    expect(await a.deleteSession({ sessionId: SESSION })).toMatchObject({ snapshots: 1 });
    expect(await allDocuments(db)).toEqual([]);
  });

  it('of snapshots whose pointer was lost removes them', async () => {
    const db = client();
    const store = new FirestoreSessionStore({ db });
    await store.saveSnapshot('one', () => turn());
    await store.saveSnapshot('two', () => turn({ parentId: 'one' }));
    await removeDocuments(db, ['pointers']);
    const other = new FirestoreSessionStore({ db });
    await expect(other.getSnapshot({ sessionId: SESSION })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    expect(await other.deleteSession({ sessionId: SESSION })).toMatchObject({ snapshots: 2 });
    expect(await allDocuments(db)).toEqual([]);
    await other.saveSnapshot('anew', () => turn());
    expect(await isWhole(other, SESSION, 'anew')).toBe(true);
  });

  for (const commit of [2, 3]) {
    it(`a session that begins again before commit ${commit} of its deletion is not changed`, async () => {
      const db = client();
      const [a, b] = [new FirestoreSessionStore({ db }), new FirestoreSessionStore({ db: client() })];
      await a.saveSnapshot('old', () => turn());
      await addShards(db, MANY);
      beforeCommits(db, async (number) => void (number === commit && (await b.saveSnapshot('new', () => turn()))));
      expect(await a.deleteSession({ sessionId: SESSION })).toMatchObject({ snapshots: 1 });
      const reader = new FirestoreSessionStore({ db: client() });
      expect(await isWhole(reader, SESSION, 'new')).toBe(true);
      expect((await reader.getSnapshot({ sessionId: SESSION }))?.state).toEqual(STATE);
      expect(await reader.getSnapshot({ snapshotId: 'old' })).toBeUndefined();
      await reader.deleteSession({ sessionId: SESSION });
      expect(await allDocuments(db)).toEqual([]);
    });
  }

  it('an outdated mark, which other calls have ended, removes nothing of the current session', async () => {
    const db = client();
    const [a, b, late] = [db, client(), client()].map((one) => new FirestoreSessionStore({ db: one }));
    await a!.saveSnapshot('old', () => turn());
    beforeCommits(db, async (commit) => void (commit === 2 && (await late!.getSnapshot({ sessionId: SESSION }))));
    await a!.deleteSession({ sessionId: SESSION });
    await b!.saveSnapshot('new', () => turn());
    await late!.saveSnapshot('newer', () => turn({ parentId: 'new' }));
    const { items } = await b!.listSnapshots({ sessionId: SESSION });
    expect(items.map(({ snapshotId }) => snapshotId)).toEqual(['new', 'newer']);
    expect(await isWhole(b!, SESSION, 'newer')).toBe(true);
  });

  it('several at once end together, and each document is counted once', async () => {
    const db = client();
    const all = [db, client(), client()].map((one) => new FirestoreSessionStore({ db: one }));
    await all[0]!.saveSnapshot('old', () => turn());
    await addShards(db, MANY);
    const shards = (await allDocuments(db)).length - 2;
    const removed = await Promise.all(all.map((store) => store.deleteSession({ sessionId: SESSION })));
    expect(await allDocuments(db)).toEqual([]);
    const sum = (key: 'snapshots' | 'shards'): number => removed.reduce((total, one) => total + one[key], 0);
    expect({ snapshots: sum('snapshots'), shards: sum('shards') }).toEqual({ snapshots: 1, shards });
  });

  it(`of an existing session, two against a save, ${rounds} rounds: completely before or after (seed ${seed})`, async () => {
    const [a, b, c, reader] = [1, 2, 3, 4].map(() => new FirestoreSessionStore({ db: client() }));
    const random = new Random(seed);
    const seen = { before: 0, after: 0 };
    for (let round = 0; round < rounds; round++) {
      const [sessionId, id] = [`session ${round}`, `new ${round}`];
      await a!.saveSnapshot(`old ${round}`, () => turn({ sessionId }));
      const work = [
        () => a!.deleteSession({ sessionId }),
        () => c!.deleteSession({ sessionId }),
        () => b!.saveSnapshot(id, () => turn({ sessionId })),
      ];
      await Promise.all(
        random.shuffled(work).map(async (one) => {
          await pause(random.below(30));
          return one();
        }),
      );
      const isThere = await isWhole(reader!, sessionId, id);
      expect(await reader!.getSnapshot({ snapshotId: `old ${round}` })).toBeUndefined();
      seen[isThere ? 'after' : 'before']++;
    }
    console.log('saves beside two deletions', seen);
  });
});

/** Whether the session consists of the snapshot. Otherwise, neither exists. */
async function isWhole(store: FirestoreSessionStore, sessionId: string, snapshotId: string): Promise<boolean> {
  const byId = await store.getSnapshot({ snapshotId });
  expect(await store.getSnapshot({ sessionId })).toEqual(byId);
  return byId !== undefined;
}

async function removeDocuments(db: Firestore, collections: readonly string[]): Promise<void> {
  for (const { ref } of await allDocuments(db)) if (collections.includes(ref.parent.id)) await ref.delete();
}

/** Gives the only session of the database more shards, like interrupted saves. */
async function addShards(db: Firestore, count: number): Promise<void> {
  const known = (await allDocuments(db)).find(({ ref }) => ref.parent.id === 'shards')!;
  const batch = db.batch();
  for (let i = 0; i < count; i++) {
    const name = known.id.slice(0, -22) + String(i).padStart(22, '0');
    batch.set(known.ref.parent.doc(name), { v: 1, data: Buffer.from('spare') });
  }
  await batch.commit();
}

function stateWithShards(): Record<string, unknown> {
  const workload = new Workload();
  for (let i = 0; i < 10; i++) workload.next();
  return workload.state() as Record<string, unknown>;
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
