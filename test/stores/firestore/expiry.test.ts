import type { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { allDocuments } from './support/at-rest.ts';
import { openDatabase } from './support/database.ts';
import { DAY, removeExpired, withClock } from './support/time.ts';

const createdAt = '2026-01-01T00:00:00.000Z';

type Custom = { n: number; text?: string };
type Store = FirestoreSessionStore<Custom>;

/** The turn `n` of a session, with a text that makes the state as large as is wanted. */
const turn = (
  n: number,
  rest: Partial<SessionSnapshotInput<Custom>> = {},
  text = '',
): SessionSnapshotInput<Custom> => ({
  sessionId: 'chat',
  createdAt,
  status: 'completed',
  state: { custom: { n, text } },
  ...rest,
});

/** Text that packing makes little shorter. */
const longText = (length: number): string => {
  let text = '';
  for (let i = 0; text.length < length; i++) text += `${i} ${Math.sin(i)} `;
  return text;
};

describe('expiry', () => {
  let db: Firestore;
  const opened: Firestore[] = [];
  beforeEach(() => void opened.push((db = openDatabase())));
  afterAll(async () => void (await Promise.all(opened.map((one) => one.terminate()))));

  const open = (expireAfterMs: number | undefined = DAY): Store =>
    new FirestoreSessionStore<Custom>({ db, ...(expireAfterMs > 0 && { expireAfterMs }), checkpointInterval: 4 });
  /** A store whose snapshots never expire. */
  const forEver = (): Store => open(0);
  const leafOf = async (store: Store): Promise<string | undefined> =>
    (await store.getSnapshot({ sessionId: 'chat' }))?.snapshotId;
  const numberOf = async (store: Store, snapshotId: string): Promise<number | undefined> =>
    (await store.getSnapshot({ snapshotId }))?.state?.custom?.n;

  it('what has expired counts as gone, carries a time for the TTL policy, and strands no session when it is removed', async () => {
    await withClock(async (clock) => {
      for (let n = 0; n < 20; n++) {
        await open().saveSnapshot(`turn-${n}`, () =>
          turn(n, n > 0 ? { parentId: `turn-${n - 1}` } : {}, 'x'.repeat(2000)),
        );
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
      expect(await allDocuments(db)).toEqual([]);
    });
  });

  it('who is named as parent without a session is known as long as the one that names it lives, and no longer', async () => {
    await withClock(async (clock) => {
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
      expect(await allDocuments(db)).toEqual([]);
    });
  });

  for (const { what, length } of [
    { what: 'in its document', length: 0 },
    { what: 'in shards', length: 300_000 },
    { what: 'in several commits', length: 9_000_000 },
  ]) {
    it(`a snapshot that is written again and again keeps its state, ${what}, whatever becomes of its parent`, async () => {
      const text = longText(length);
      await withClock(async (clock) => {
        for (const [n, id] of ['root', 'branch', 'leaf'].entries()) {
          await open().saveSnapshot(id, () => turn(n, { status: 'pending', ...(n > 0 && { parentId: 'root' }) }, text));
        }
        const alone = { createdAt, status: 'pending', state: { custom: { n: 3, text } } } as const;
        await open().saveSnapshot('alone', () => alone);
        for (let step = 1; step <= 16; step++) {
          clock.now += 0.3 * DAY;
          await removeExpired(db, clock.now);
          for (const [n, id] of [
            [1, 'branch'],
            [2, 'leaf'],
            [3, 'alone'],
          ] as const) {
            await open().saveSnapshot(id, (current) => ({
              ...current!,
              heartbeatAt: new Date(clock.now).toISOString(),
            }));
            expect(await numberOf(open(), id)).toBe(n);
          }
        }
        expect(await numberOf(open(), 'root')).toBeUndefined();
        expect(await leafOf(open())).toBe('leaf');
      });
    });
  }

  it('an id that counts as gone can be saved again, also while its document is there', async () => {
    await withClock(async (clock) => {
      for (const of of [{ sessionId: undefined }, { sessionId: 'chat' }]) {
        const id = `again of ${of.sessionId}`;
        await open().saveSnapshot(id, () => turn(1, of));
        clock.now += 1.5 * DAY;
        const seen: unknown[] = [];
        await open().saveSnapshot(id, (current) => {
          seen.push(current);
          return turn(2, of);
        });
        expect(seen.every((current) => current === undefined)).toBe(true);
        expect(await numberOf(open(), id)).toBe(2);
      }
      expect(await leafOf(open())).toBe('again of chat');
      expect((await open().listSessions()).items).toMatchObject([{ snapshotCount: 1, leafCount: 1 }]);
    });
  });

  it('a run that ends after its snapshot counts as gone is saved anew', async () => {
    await withClock(async (clock) => {
      const store = open();
      await store.saveSnapshot('run', () => turn(1, { status: 'pending' }));
      clock.now += 1.01 * DAY;
      await store.saveSnapshot('run', (current) => (current ? { ...current, status: 'completed' } : turn(2)));
      expect(await numberOf(open(), 'run')).toBe(2);
    });
  });

  it('a parent that counts as gone is a parent that is not there, be it a leaf or not', async () => {
    await withClock(async (clock) => {
      await open().saveSnapshot('root', () => turn(0));
      await open().saveSnapshot('old', () => turn(1, { parentId: 'root' }));
      clock.now += 0.9 * DAY;
      await open().saveSnapshot('new', () => turn(2, { parentId: 'root' }));
      clock.now += 0.5 * DAY;
      await open().saveSnapshot('on old', () => turn(3, { parentId: 'old' }));
      await open().saveSnapshot('on root', () => turn(4, { parentId: 'root' }));
      expect(await leafOf(open())).toBe('on root');
      expect((await open().listSessions()).items).toMatchObject([{ leafCount: 3 }]);
      clock.now += 2 * DAY;
      await open().saveSnapshot('last', () => turn(5, { parentId: 'on root' }));
      expect((await open().getSnapshot({ sessionId: 'chat' }))?.parentId).toBe('on root');
    });
  });

  it('who is named as parent in a session is known when Firestore has removed it: it is no leaf, and closes no circle', async () => {
    await withClock(async (clock) => {
      await open().saveSnapshot('one', () => turn(1));
      clock.now += 0.9 * DAY;
      await open().saveSnapshot('two', () => turn(2, { parentId: 'one', status: 'pending' }));
      clock.now += 0.8 * DAY;
      await open().saveSnapshot('two', (current) => ({ ...current!, status: 'completed' }));
      clock.now += 0.5 * DAY;
      await removeExpired(db, clock.now);
      const closing = open().saveSnapshot('one', () => turn(1, { parentId: 'two' }));
      await expect(closing).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
      await open().saveSnapshot('one', () => turn(3));
      expect(await leafOf(open())).toBe('two');
      expect((await open().listSessions()).items).toMatchObject([{ leafId: 'two', leafCount: 1 }]);
    });
  });

  for (const { what, before } of [
    { what: 'set later', before: 0 },
    { what: 'made shorter', before: 30 * DAY },
  ]) {
    it(`when expireAfterMs is ${what}, what lives longer stays, with its state, and the session goes on`, async () => {
      const text = longText(300_000);
      await withClock(async (clock) => {
        for (let n = 0; n < 3; n++) {
          await open(before).saveSnapshot(`turn-${n}`, () => turn(n, n > 0 ? { parentId: `turn-${n - 1}` } : {}, text));
        }
        await open().saveSnapshot('turn-3', () => turn(3, { parentId: 'turn-2' }, text));
        expect(await leafOf(open())).toBe('turn-3');
        for (let day = 1; day <= 6; day++) {
          clock.now += 1.1 * DAY;
          await removeExpired(db, clock.now);
          expect(await leafOf(open())).toBe('turn-2');
          expect((await open().listSessions()).items).toMatchObject([{ leafId: 'turn-2' }]);
          for (let n = 0; n < 3; n++) expect(await numberOf(open(), `turn-${n}`)).toBe(n);
        }
        const next = turn(4, { parentId: 'turn-2' }, text);
        await open().saveSnapshot('turn-4', () => next, { expectedLeafId: 'turn-2' });
        expect(await leafOf(open())).toBe('turn-4');
        expect(await numberOf(forEver(), 'turn-4')).toBe(4);
      });
    });
  }

  for (const { what, after } of [
    { what: 'taken away', after: 0 },
    { what: 'made longer', after: 30 * DAY },
  ]) {
    it(`when expireAfterMs is ${what}, what is written from then on lives as long as it is to`, async () => {
      const text = longText(300_000);
      await withClock(async (clock) => {
        await open().saveSnapshot('turn-0', () => turn(0, {}, text));
        await open().saveSnapshot('turn-1', () => turn(1, { parentId: 'turn-0', status: 'pending' }, text));
        await open(after).saveSnapshot('turn-1', (current) => ({ ...current!, status: 'completed' }));
        await open(after).saveSnapshot('turn-2', () => turn(2, { parentId: 'turn-1' }, text));
        await open(after).saveSnapshot('branch', () => turn(3, { parentId: 'turn-0' }, text));
        for (let day = 1; day <= 6; day++) {
          clock.now += 1.1 * DAY;
          await removeExpired(db, clock.now);
          expect(await numberOf(open(after), 'turn-0')).toBeUndefined();
          expect(await numberOf(open(after), 'turn-1')).toBe(1);
          expect(await numberOf(open(after), 'turn-2')).toBe(2);
          expect(await leafOf(open(after))).toBe('branch');
        }
        await open(after).saveSnapshot('turn-4', () => turn(4, { parentId: 'branch' }, text));
        expect(await leafOf(open(after))).toBe('turn-4');
      });
    });
  }

  it('a rewrite never shortens a life that others count on', async () => {
    const text = longText(300_000);
    await withClock(async (clock) => {
      for (const [before, chat] of [
        [0, 'chat'],
        [30 * DAY, 'another'],
      ] as const) {
        for (let n = 0; n < 4; n++) {
          const rest = { sessionId: chat, ...(n > 0 && { parentId: `${chat}-${n - 1}` }) };
          await open(before).saveSnapshot(`${chat}-${n}`, () => turn(n, rest, text));
        }
        await open(before).saveSnapshot(`${chat} aside`, () => turn(9, { sessionId: chat }, text));
        await open().saveSnapshot(`${chat}-1`, (current) => ({ ...current!, heartbeatAt: createdAt }));
        await open().saveSnapshot(`${chat}-2`, (current) => ({
          ...current!,
          state: { custom: { n: 2, text: 'new' } },
        }));
      }
      for (let day = 1; day <= 6; day++) {
        clock.now += 1.1 * DAY;
        await removeExpired(db, clock.now);
        for (const chat of ['chat', 'another']) {
          for (let n = 0; n < 4; n++) expect(await numberOf(open(), `${chat}-${n}`)).toBe(n);
          const { items } = await open().listSnapshots({ sessionId: chat });
          expect(items).toHaveLength(5);
        }
        await open().prune({ maxChainLength: 100 });
      }
    });
  });

  it('a heartbeat by a store without expireAfterMs keeps a run for ever', async () => {
    await withClock(async (clock) => {
      await open().saveSnapshot('run', () => turn(1, { status: 'pending' }));
      for (let step = 0; step < 12; step++) {
        clock.now += 0.25 * DAY;
        await removeExpired(db, clock.now);
        await forEver().saveSnapshot('run', (current) => ({
          ...current!,
          heartbeatAt: new Date(clock.now).toISOString(),
        }));
      }
      expect(await leafOf(open())).toBe('run');
    });
  });

  it('what nobody stands on any more may be gone: the session goes on, and is pruned', async () => {
    await withClock(async (clock) => {
      const settled = { status: 'aborted' } as const;
      await open().saveSnapshot('first', () => turn(0));
      clock.now += 0.9 * DAY;
      await open().saveSnapshot('second', () => turn(1, { parentId: 'first' }));
      await open().saveSnapshot('third', () => turn(2, { parentId: 'second', status: 'pending' }));
      await open().saveSnapshot('child', () => turn(3, { parentId: 'third' }));
      await open().saveSnapshot('aside', () => turn(4));
      clock.now += 0.6 * DAY;
      await open().saveSnapshot('third', (current) => ({ ...current!, ...settled, state: { custom: { n: 5 } } }));
      clock.now += 0.55 * DAY;
      await removeExpired(db, clock.now);
      await open().saveSnapshot('next', () => turn(6, { parentId: 'third' }));
      expect(await leafOf(open())).toBe('next');
      await open().saveSnapshot('root', () => turn(7));
      await open().prune({ maxChainLength: 50 });
      expect(await numberOf(open(), 'third')).toBe(5);
    });
  });

  it('snapshots of a session that is begun anew over expired ones are listed, whatever the page', async () => {
    await withClock(async (clock) => {
      for (let n = 0; n < 3; n++) await open().saveSnapshot(`old ${n}`, () => turn(n));
      clock.now += 1.5 * DAY;
      await removeExpired(db, clock.now);
      const news = ['new 0', 'new 1', 'new 2'];
      for (const id of news) await open().saveSnapshot(id, () => turn(0));
      for (const limit of [1, 2, 100]) {
        const listed: string[] = [];
        for (let cursor: string | undefined, more = true; more;) {
          const page = await open().listSnapshots({ sessionId: 'chat', limit, ...(cursor && { cursor }) });
          listed.push(...page.items.map(({ snapshotId }) => snapshotId));
          cursor = page.nextCursor;
          more = cursor !== undefined;
        }
        expect(listed).toEqual(news);
      }
    });
  });

  it('a parent whose last child counts as gone is a leaf again, also beside other leaves', async () => {
    await withClock(async (clock) => {
      await forEver().saveSnapshot('root', () => turn(0));
      await forEver().saveSnapshot('aside', () => turn(1, { parentId: 'root' }));
      await forEver().saveSnapshot('parent', () => turn(2, { parentId: 'root', status: 'pending' }));
      await open().saveSnapshot('child', () => turn(3, { parentId: 'parent' }));
      clock.now += 1.1 * DAY;
      expect(await leafOf(open())).toBe('parent');
      expect((await open().listSessions()).items).toMatchObject([{ leafId: 'parent', leafCount: 2 }]);
      const strict = new FirestoreSessionStore<Custom>({ db, rejectBranchingSessions: true });
      await expect(leafOf(strict)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
      const settle = (current?: SessionSnapshotInput<Custom>) => ({ ...current!, status: 'completed' as const });
      await forEver().saveSnapshot('parent', settle, { expectedLeafId: 'parent' });
      await open().saveSnapshot('next', () => turn(4, { parentId: 'parent' }), { expectedLeafId: 'parent' });
      expect(await leafOf(open())).toBe('next');
    });
  });

  it('who is named as parent only by what counts as gone is a leaf', async () => {
    await withClock(async (clock) => {
      await open().saveSnapshot('one', () => turn(1));
      clock.now += 0.9 * DAY;
      await open().saveSnapshot('two', () => turn(2, { parentId: 'one' }));
      clock.now += 0.6 * DAY;
      await open().saveSnapshot('three', () => turn(3));
      clock.now += 0.6 * DAY;
      await removeExpired(db, clock.now);
      await open().saveSnapshot('one', () => turn(4));
      expect(await leafOf(open())).toBe('one');
      expect((await open().listSessions()).items).toMatchObject([{ leafId: 'one', leafCount: 2, snapshotCount: 2 }]);
    });
  });

  it('pruning by a store with another expireAfterMs leaves what stays its state for as long as it lives', async () => {
    const text = longText(300_000);
    await withClock(async (clock) => {
      for (let n = 0; n < 4; n++) {
        const parent = n > 0 ? { parentId: `turn-${n - 1}` } : {};
        await forEver().saveSnapshot(`turn-${n}`, () => turn(n, parent, text));
      }
      expect(await open().prune({ maxChainLength: 2 })).toMatchObject({ snapshots: 2 });
      for (let day = 1; day <= 6; day++) {
        clock.now += 1.1 * DAY;
        await removeExpired(db, clock.now);
        for (const n of [2, 3]) expect(await numberOf(forEver(), `turn-${n}`)).toBe(n);
      }
      expect(await leafOf(forEver())).toBe('turn-3');
    });
  });
});
