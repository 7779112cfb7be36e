import type { Firestore } from '@google-cloud/firestore';
import { z } from 'genkit';
import {
  defineCustomAgent,
  genkit,
  type AgentStateOptions,
  type ScopedState,
  type SessionSnapshot,
  type SnapshotLookup,
} from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeAll, describe, expect, it } from 'vitest';
import { completedSnapshot, Workload } from '../../../../bench/workload.ts';
import { scale } from '../../../support/scale.ts';
import { measureAtRest } from '../support/at-rest.ts';
import { newProject, openDatabase } from '../support/database.ts';
import { trafficOf, trafficSoFar, type Traffic } from '../support/transport.ts';

const TURNS = scale(60, 200);
/** The turns of the session whose stored size is measured. */
const LONG = scale(200, 1000);
/** A busy machine takes longer for a thousand turns than other tests have. */
const THOUSAND_TURNS_MS = 400_000;
const STATE_PER_SHARD = 512 * 1024;

/** A turn of the workload: its usage, and the size of the state. */
interface Turn extends Traffic {
  readonly stateBytes: number;
}

/** Plays the standard workload, each turn a resume and a save. */
async function play(
  turns: number,
  options: { storeOf: (turn: number) => FirestoreSessionStore; by: 'sessionId' | 'snapshotId' },
): Promise<Turn[]> {
  const workload = new Workload();
  const played: Turn[] = [];
  let leaf: string | undefined;
  for (let turn = 1; turn <= turns; turn++) {
    const store = options.storeOf(turn);
    const lookup: SnapshotLookup =
      options.by === 'sessionId' || leaf === undefined ? { sessionId: workload.sessionId } : { snapshotId: leaf };
    const used = await trafficOf(async () => {
      const before: SessionSnapshot | undefined = await store.getSnapshot(lookup);
      expect(before?.snapshotId).toBe(leaf);
      const next = completedSnapshot(workload.next(), leaf);
      await store.saveSnapshot(`turn-${turn}`, () => next);
    });
    leaf = `turn-${turn}`;
    played.push({ ...used, stateBytes: JSON.stringify(workload.state()).length });
  }
  return played;
}

function mean(turns: readonly Turn[], of: (turn: Turn) => number): number {
  return turns.reduce((sum, turn) => sum + of(turn), 0) / turns.length;
}

function shardsFor({ stateBytes }: Turn): number {
  return Math.ceil(stateBytes / STATE_PER_SHARD);
}

describe(`the cost of a turn, counted on the wire over ${TURNS} turns of the standard workload`, () => {
  let db: Firestore;
  const open = (collection: string): FirestoreSessionStore => new FirestoreSessionStore({ db, collection });

  beforeAll(async () => {
    trafficSoFar();
    db = openDatabase();
    // A client's first request sets up its connection.
    await db.doc('warm/up').get();
  });

  for (const by of ['sessionId', 'snapshotId'] as const) {
    it(`warm, by ${by}: 2 reads, 2.2 writes, 2.2 requests in the mean, and never more than 8 reads and the shards`, async () => {
      const store = open(`warm-${by}`);
      const turns = await play(TURNS, { storeOf: () => store, by });
      const figures = {
        reads: mean(turns, (turn) => turn.reads),
        writes: mean(turns, (turn) => turn.writes),
        rpcs: mean(turns, (turn) => turn.rpcs),
        worst: Math.max(...turns.map((turn) => turn.reads - shardsFor(turn))),
        deletes: mean(turns, (turn) => turn.deletes),
      };
      console.log(`warm by ${by}`, figures);
      expect(figures.reads).toBeLessThanOrEqual(2);
      expect(figures.writes).toBeLessThanOrEqual(2.2);
      expect(figures.rpcs).toBeLessThanOrEqual(2.2);
      expect(figures.worst).toBeLessThanOrEqual(8);
      expect(figures.deletes).toBe(0);
    });

    it(`cold, by ${by}: 4 reads and one for each 512 KiB of state in the mean, and never more than 8 and the shards`, async () => {
      const turns = await play(TURNS, { storeOf: () => open(`cold-${by}`), by });
      const above = mean(turns, (turn) => turn.reads - turn.stateBytes / STATE_PER_SHARD);
      const worst = Math.max(...turns.map((turn) => turn.reads - shardsFor(turn)));
      console.log(`cold by ${by}`, { reads: mean(turns, (turn) => turn.reads), above, worst });
      expect(above).toBeLessThanOrEqual(4);
      expect(worst).toBeLessThanOrEqual(8);
    });
  }

  it('a heartbeat of a running turn with a state of 2 MB, 23 turns after a whole state, is 1 read and 1 write', async () => {
    const store = open('heartbeat');
    const big = { messages: [{ role: 'user' as const, content: [{ text: 'x'.repeat(1_000_000) }] }] };
    const messages = [...big.messages, ...big.messages];
    let parentId: string | undefined;
    for (let turn = 0; turn <= 23; turn++) {
      const state = { sessionId: 'beat', messages, custom: { turn } };
      const status = turn === 23 ? 'pending' : 'completed';
      await store.saveSnapshot(`beat-${turn}`, () => ({ ...completedSnapshot(state as never, parentId), status }));
      parentId = `beat-${turn}`;
    }
    const used = await trafficOf(() =>
      store.saveSnapshot('beat-23', (current) => ({ ...current!, heartbeatAt: new Date().toISOString() })),
    );
    expect(used).toMatchObject({ reads: 1, writes: 1, deletes: 0 });
    const leaf = await store.getSnapshot({ sessionId: 'beat' });
    expect(leaf?.heartbeatAt).toBeDefined();
  });

  it('a running turn without a state is stored as a diff from its parent when it is completed', async () => {
    const store = open('stateless');
    const workload = new Workload();
    for (let i = 0; i < 40; i++) workload.next();
    const { messages } = workload.state();
    const save = async (turn: number, status: 'pending' | 'completed', withState = true): Promise<number> => {
      const before = store.stats().bytesWritten;
      const parentId = turn > 0 ? `stateless-${turn - 1}` : undefined;
      const state = { sessionId: 'stateless', messages, custom: { turn } };
      const { state: _, ...bare } = completedSnapshot(state as never, parentId);
      const next = { ...bare, sessionId: 'stateless', status, ...(withState && { state }) };
      await store.saveSnapshot(`stateless-${turn}`, () => next);
      return store.stats().bytesWritten - before;
    };
    const whole = await save(0, 'completed');
    for (let turn = 1; turn <= 3; turn++) {
      await save(turn, 'pending', false);
      expect((await open('stateless').getSnapshot({ sessionId: 'stateless' }))?.state).toBeUndefined();
      expect(await save(turn, 'completed')).toBeLessThan(whole / 2);
      for (const lookup of [{ sessionId: 'stateless' }, { snapshotId: `stateless-${turn}` }]) {
        expect((await open('stateless').getSnapshot(lookup))?.state?.custom).toEqual({ turn });
      }
    }
  });

  it('a watcher pays one read for a change of the status', async () => {
    const [store, other] = [open('watch'), open('watch')];
    const workload = new Workload();
    await store.saveSnapshot('turn', () => ({ ...completedSnapshot(workload.next(), undefined), status: 'pending' }));
    const told: (string | undefined)[] = [];
    const until = async (count: number): Promise<void> => {
      while (told.length < count) await new Promise((resolve) => setTimeout(resolve, 2));
    };
    const end = store.onSnapshotStateChange('turn', (news) => told.push(news.status));
    await until(1);
    const before = store.stats().reads;
    await other.saveSnapshot('turn', (current) => ({ ...current!, status: 'aborted' }));
    await until(2);
    expect(told).toEqual(['pending', 'aborted']);
    expect(store.stats().reads - before).toBe(1);
    end();
  });

  it('a snapshot without a session is one write, whatever its parentId names', async () => {
    const store = open('alone');
    const save = (id: string, parentId?: string): Promise<Traffic> =>
      trafficOf(() =>
        store.saveSnapshot(id, () => ({ createdAt: new Date().toISOString(), ...(parentId && { parentId }) })),
      );
    // Once for each tenant the store checks whether the collection is its own.
    for (let i = 0; i < 2; i++) await save(`first ${i}`);
    expect(await save('root')).toMatchObject({ reads: 0, writes: 1 });
    expect(await save('child', 'root')).toMatchObject({ reads: 0, writes: 1 });
  });

  it('prune reads of each session its pointer twice, its snapshots, and the first of them again', async () => {
    const store = open('pruned');
    const reads = async (): Promise<number> => (await trafficOf(() => store.prune({ idleMs: 1e12 }))).reads;
    const counts: number[] = [];
    for (let session = 0; session < 3; session++) {
      for (let turn = 0; turn < 4; turn++) {
        const state = { sessionId: `pruned-${session}`, messages: [], custom: { turn } };
        const parentId = turn > 0 ? `pruned-${session}-${turn - 1}` : undefined;
        await store.saveSnapshot(`pruned-${session}-${turn}`, () => completedSnapshot(state as never, parentId));
      }
      // The first call checks once that the collection is the store's own.
      if (session === 0) await reads();
      counts.push(await reads());
    }
    expect([counts[1]! - counts[0]!, counts[2]! - counts[1]!]).toEqual([2 + 4 + 1, 2 + 4 + 1]);
  });

  it('stats() equals the traffic on the wire', async () => {
    const store = open('stats');
    const used = await trafficOf(() => play(30, { storeOf: () => store, by: 'sessionId' }));
    const { reads, writes, deletes, rpcs } = store.stats();
    expect({ reads, writes, deletes, rpcs }).toEqual({
      reads: used.reads,
      writes: used.writes,
      deletes: used.deletes,
      rpcs: used.rpcs,
    });
  });
});

describe('the cost of an agent’s turn with scopes, counted on the wire, warm', () => {
  let db: Firestore;
  beforeAll(async () => {
    trafficSoFar();
    db = openDatabase(newProject());
    await db.doc('warm/up').get();
  });

  type Work = (state: ScopedState) => void;
  const count: Work = (state) => state.update('user:turns', (turns) => Number(turns ?? 0) + 1);
  const counts = z.record(z.string(), z.number());

  /** An agent like in a separate process, with the cost of a turn in one session. */
  function shop(scopes?: AgentStateOptions['scopes']): (work: Work, sessionId?: string) => Promise<Partial<Traffic>> {
    let work: Work = () => {};
    const store = new FirestoreSessionStore({ db });
    const config = { name: 'shop', store, ...(scopes && { scopes }) };
    const agent = defineCustomAgent(genkit({}), config, async (session) => {
      await session.run(async () => {
        work(session.state);
        session.addMessages([{ role: 'model', content: [{ text: 'done' }] }]);
      });
      return {};
    });
    const message = { role: 'user' as const, content: [{ text: 'go on' }] };
    return async (next, sessionId = 'monday') => {
      work = next;
      const { reads, writes, deletes } = await trafficOf(async () => {
        const { result } = await agent.run({ message }, { init: { sessionId }, context: { auth: { uid: 'ada' } } });
        expect(result.error).toBeUndefined();
      });
      return { reads, writes, deletes };
    };
  }

  it('is that of any turn without scopes, one read more for a read one, a read and a write more for a changed one', async () => {
    const plain = shop();
    await plain(() => {}, 'plain');
    const base = await plain(() => {}, 'plain');
    expect(base).toEqual({ reads: 2, writes: 2, deletes: 0 });
    const turn = shop({ user: counts });
    await turn(count);
    expect(await turn((state) => state.get('user:turns'))).toEqual({ reads: 3, writes: 2, deletes: 0 });
    expect(await turn(count)).toEqual({ reads: 3, writes: 3, deletes: 0 });
    expect(await turn((state) => state.delete('user:turns'))).toEqual({ reads: 3, writes: 2, deletes: 1 });
    expect(await turn(count)).toEqual({ reads: 3, writes: 3, deletes: 0 });
    const both = shop({ user: counts, app: counts });
    await both(count);
    const all: Work = (state) => ['user:turns', 'app:turns'].forEach((key) => state.set(key, Math.random()));
    expect(await both(all)).toEqual({ reads: 4, writes: 4, deletes: 0 });
    expect(await both(count)).toEqual({ reads: 4, writes: 3, deletes: 0 });
  });

  it('is the same where another process, or another session, has changed the record between two turns', async () => {
    const [here, there] = [shop({ user: counts }), shop({ user: counts })];
    await here(count, 'here');
    await there(count, 'there');
    for (let round = 0; round < 3; round++) {
      expect(await here(count, 'here')).toEqual({ reads: 3, writes: 3, deletes: 0 });
      expect(await there(count, 'there')).toEqual({ reads: 3, writes: 3, deletes: 0 });
    }
  });

  it('is the same if a turn’s change keeps the record: the commit must check that it is unchanged', async () => {
    const turn = shop({ user: counts });
    const keep: Work = (state) => state.set('user:kept', 1);
    await turn(keep);
    expect(await turn(keep)).toEqual({ reads: 3, writes: 3, deletes: 0 });
  });

  it('is one more read and one more deletion of a missing document for the first turn of a user’s session', async () => {
    const turn = shop();
    await turn(() => {}, 'known');
    expect(await turn(() => {}, 'begun')).toEqual({ reads: 3, writes: 2, deletes: 1 });
    expect(await turn(() => {}, 'begun')).toEqual({ reads: 2, writes: 2, deletes: 0 });
  });
});

describe(`size: a session of ${LONG} turns of the standard workload`, () => {
  it(
    'takes at most 5.4 kB a turn at rest and 8 index entries; a turn in its middle sends at most 100 KB',
    async () => {
      const db = openDatabase(newProject());
      const store = new FirestoreSessionStore({ db });
      const turns = await play(LONG, { storeOf: () => store, by: 'sessionId' });
      const atRest = await measureAtRest(db);
      const wire = mean(turns.slice(LONG / 2 - 25, LONG / 2 + 25), (turn) => turn.bytes);
      const reads = mean(turns, (turn) => turn.reads);
      const writes = mean(turns, (turn) => turn.writes);
      const cold = await trafficOf(() =>
        new FirestoreSessionStore({ db }).getSnapshot({ sessionId: 'standard-workload' }),
      );
      console.log(`${LONG} turns`, {
        ...atRest,
        wire,
        reads,
        writes,
        coldReads: cold.reads,
        stateBytes: turns.at(-1)!.stateBytes,
      });
      expect(atRest.bytes).toBeLessThanOrEqual(5400 * LONG);
      expect(atRest.indexEntries).toBeLessThanOrEqual(8 * LONG);
      expect(wire).toBeLessThanOrEqual(100_000);
      expect(cold.reads).toBeLessThanOrEqual(4 + shardsFor(turns.at(-1)!));
    },
    THOUSAND_TURNS_MS,
  );
});
