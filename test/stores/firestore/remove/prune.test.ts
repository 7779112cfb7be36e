import type { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeEach, describe, expect, it } from 'vitest';
import { Random } from '../../../support/random.ts';
import { scale, seed } from '../../../support/scale.ts';
import { openDatabase } from '../support/database.ts';
import { makeTurn } from '../../make-turn.ts';

interface Custom {
  n: number;
  text?: string;
}

/** Text that is stored in shards, and that packing makes little shorter. */
const TEXT = Array.from({ length: 3000 }, (_, i) => `${i} ${Math.sin(i)}`).join();

const turn = (n: number, rest: Partial<SessionSnapshotInput<Custom>> = {}): SessionSnapshotInput<Custom> =>
  makeTurn({ status: 'pending', state: { custom: { n, text: `${TEXT} of ${n % 3}` } }, ...rest });

/** A policy that removes no snapshot. */
const KEEPS_ALL = { idleMs: 1e12, maxChainLength: 100_000 };

describe('the data after pruning reads as before', () => {
  let db: Firestore;
  beforeEach(() => void (db = openDatabase()));
  const open = (): FirestoreSessionStore<Custom> => new FirestoreSessionStore<Custom>({ db });

  for (const { who, storeOf } of [
    { who: 'one store', storeOf: (one: FirestoreSessionStore<Custom>) => one },
    { who: 'a new store for each call', storeOf: () => open() },
  ]) {
    it(`snapshots whose status was changed, by ${who}`, async () => {
      const one = open();
      const store = (): FirestoreSessionStore<Custom> => storeOf(one);
      const settle = (id: string): Promise<string | null> =>
        store().saveSnapshot(id, (current) => ({ ...current!, status: 'completed' }));
      await store().saveSnapshot('root', () => turn(0));
      await store().saveSnapshot('child', () => turn(1, { parentId: 'root' }));
      await store().saveSnapshot('other', () => turn(2));
      await store().saveSnapshot('root', (current) => ({
        ...current!,
        state: { custom: { n: 9, text: `${TEXT} anew` } },
      }));
      await store().saveSnapshot('alone', () => turn(3, { sessionId: undefined }));
      for (const id of ['root', 'other', 'alone']) await settle(id);
      const read = async (): Promise<unknown[]> =>
        Promise.all(['root', 'child', 'other', 'alone'].map((snapshotId) => open().getSnapshot({ snapshotId })));
      const before = await read();
      const dryRun = await store().prune(KEEPS_ALL, { dryRun: true });
      expect(await store().prune(KEEPS_ALL)).toEqual({ ...dryRun, dryRun: false });
      expect(await read()).toEqual(before);
      expect(await open().prune(KEEPS_ALL)).toMatchObject({ snapshots: 0, shards: 0 });
    });
  }

  it('an agent’s session of 30 turns, each of them pending first', async () => {
    const store = open();
    const messages: { role: 'user'; content: { text: string }[] }[] = [];
    for (let n = 0; n < 30; n++) {
      messages.push({ role: 'user', content: [{ text: `${n} ${TEXT.slice(n * 100, n * 100 + 2500)}` }] });
      const state = { messages: [...messages], custom: { n } };
      await store.saveSnapshot(`turn-${n}`, () => turn(n, { state, ...(n > 0 && { parentId: `turn-${n - 1}` }) }));
      await store.saveSnapshot(`turn-${n}`, (current) => ({ ...current!, status: 'completed' }));
    }
    await store.prune({ maxChainLength: 1000 });
    for (let n = 0; n < 30; n++) {
      const snapshot = await open().getSnapshot({ snapshotId: `turn-${n}` });
      expect([snapshot?.state?.custom, snapshot?.state?.messages?.length]).toEqual([{ n }, n + 1]);
    }
  });

  it('one damaged session is reported, and the others are pruned', async () => {
    for (const sessionId of ['a', 'b', 'c']) {
      for (let n = 0; n < 3; n++) {
        const parent = n > 0 ? { parentId: `${sessionId}-${n - 1}` } : {};
        const state = { custom: { n, text: TEXT } };
        await open().saveSnapshot(`${sessionId}-${n}`, () =>
          turn(n, { sessionId, state, status: 'completed', ...parent }),
        );
      }
    }
    const lost = (await db.doc('genkit-sessions/global/snapshots/b-0').get()).get('shards') as string[];
    for (const name of lost) await db.doc(`genkit-sessions-shards/global/shards/${name}`).delete();
    await expect(open().prune({ maxChainLength: 1 })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    for (const sessionId of ['a', 'c']) {
      const { items } = await open().listSnapshots({ sessionId });
      expect(items.map(({ snapshotId }) => snapshotId)).toEqual([`${sessionId}-2`]);
    }
  });

  it('during other prunes and a deletion no data is lost or reported as lost', async () => {
    const stores = [1, 2, 3].map(() => open());
    for (let round = 0; round < scale(1, 50); round++) {
      const sessionId = `chat ${round}`;
      const id = (n: number): string => `${round}-${n}`;
      for (let n = 0; n < 12; n++) {
        await stores[0]!.saveSnapshot(id(n), () =>
          turn(n, { sessionId, status: 'completed', ...(n > 0 && { parentId: id(n - 1) }) }),
        );
      }
      const isDeleted = round % 2 === 0;
      await Promise.all([
        ...stores.map((store, i) => store.prune({ maxChainLength: 3 + i })),
        ...(isDeleted ? [open().deleteSession({ sessionId })] : []),
      ]);
      const { items } = await open().listSnapshots({ sessionId });
      expect(items.map(({ snapshotId }) => snapshotId)).toEqual(isDeleted ? [] : [id(9), id(10), id(11)]);
      for (const { snapshotId } of items) expect((await open().getSnapshot({ snapshotId }))?.state).toBeDefined();
    }
  });

  const rounds = scale(1, 60);
  it(`${rounds} random sessions of saves, rewrites and prunes (seed ${seed})`, async () => {
    const random = new Random(seed);
    for (let round = 0; round < rounds; round++) {
      const expected = new Map<string, Custom>();
      const ids = (): string[] => [...expected.keys()];
      const stores = [open(), open()];
      for (let step = 0; step < 25; step++) {
        const store = random.below(3) === 0 ? open() : stores[random.below(2)]!;
        const known = ids();
        const id = known.length > 0 && random.below(2) === 0 ? known[random.below(known.length)]! : `${round}-${step}`;
        const parentId = known.length > 0 && random.below(4) > 0 ? known[random.below(known.length)]! : undefined;
        const custom = { n: step, text: random.below(3) === 0 ? `${TEXT} of ${step % 4}` : `${step}` };
        const keepsState = random.below(2) === 0;
        const status = random.below(2) === 0 ? 'completed' : 'pending';
        const rest = { sessionId: `chat ${round}`, status, state: { custom }, ...(parentId && { parentId }) } as const;
        const save = store.saveSnapshot(id, (current) => {
          if (!current) return turn(0, rest);
          return keepsState ? { ...current, finishReason: 'stop' } : { ...current, state: { custom } };
        });
        const isSaved = await save.then(
          () => true,
          (error: { status?: string }) => error.status !== 'FAILED_PRECONDITION',
        );
        if (isSaved && (!expected.has(id) || !keepsState)) expected.set(id, custom);
        if (random.below(6) === 0) await stores[random.below(2)]!.prune(KEEPS_ALL);
        if (random.below(12) === 0) await stores[random.below(2)]!.prune({ maxChainLength: 4 });
        for (const snapshotId of ids())
          if (!(await store.getSnapshotMetadata({ snapshotId }))) expected.delete(snapshotId);
      }
      for (const [snapshotId, custom] of expected) {
        expect((await open().getSnapshot({ snapshotId }))?.state?.custom).toEqual(custom);
      }
    }
  });
});
