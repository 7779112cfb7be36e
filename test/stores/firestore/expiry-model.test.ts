import type { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, expect, it } from 'vitest';
import { Random } from '../../support/random.ts';
import { scale, seed } from '../../support/scale.ts';
import { openDatabase } from './support/database.ts';
import { DAY, removeExpired, withClock } from './support/time.ts';

interface Custom {
  n: number;
  text: string;
}
type Store = FirestoreSessionStore<Custom>;

/** A snapshot as it has to read, in the order of the first saves. */
interface Expected {
  readonly id: string;
  readonly parentId: string | undefined;
  custom: Custom;
  /** When it was written last. */
  wrote: number;
}

const TEXT = Array.from({ length: 3000 }, (_, i) => `${i} ${Math.sin(i)}`).join();
const STEPS = 40;
const rounds = scale(2, 40);

const opened: Firestore[] = [];
afterAll(async () => void (await Promise.all(opened.map((db) => db.terminate()))));

/** One session, several clients, and a clock that is put forward between their calls. */
class Play {
  readonly #db = openDatabase();
  readonly #random: Random;
  readonly #lives: readonly number[];
  readonly #stores: Store[];
  readonly #expected = new Map<string, Expected>();
  #count = 0;

  constructor(random: Random, lives: readonly number[]) {
    opened.push(this.#db);
    this.#random = random;
    this.#lives = lives;
    this.#stores = [...lives, ...lives].map((life) => this.#open(life));
  }

  async step(now: number): Promise<void> {
    const busy = new Set<string>();
    const calls = Array.from({ length: 1 + this.#random.below(3) }, (_, i) => this.#call(now, busy, i === 0));
    await Promise.all(calls);
  }

  /** Firestore removes some of what it may, and all that is left reads as it was saved. */
  async check(now: number): Promise<void> {
    await removeExpired(this.#db, now, 0.3, () => this.#random.below(1000) / 1000);
    const reader = this.#open(this.#lives[0]!);
    const alive: Expected[] = [];
    for (const expected of this.#expected.values()) {
      const { id, wrote, custom } = expected;
      const found = await reader.getSnapshot({ snapshotId: id });
      if (found) {
        expect(found.state?.custom, id).toEqual(custom);
        alive.push(expected);
      } else {
        // A heartbeat may leave half of a life.
        expect(now - wrote, `the age of ${id}`).toBeGreaterThanOrEqual(Math.min(...this.#lives) / 2);
        if (now - wrote >= Math.max(...this.#lives)) this.#expected.delete(id);
      }
    }
    const named = new Set(alive.map(({ parentId }) => parentId));
    const leaf = alive.findLast(({ id }) => !named.has(id));
    expect((await reader.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe(leaf?.id);
    const { items } = await reader.listSnapshots({ sessionId: 'chat', limit: 1000 });
    expect(items.map(({ snapshotId }) => snapshotId)).toEqual(alive.map(({ id }) => id));
  }

  /** @param maySave Of new snapshots that are saved at a time nobody knows which was the first. */
  async #call(now: number, busy: Set<string>, maySave: boolean): Promise<void> {
    const store =
      this.#random.below(2) === 0 ? this.#open(this.#random.pick(this.#lives)) : this.#random.pick(this.#stores);
    const free = [...this.#expected.keys()].filter((id) => !busy.has(id));
    const kind = free.length === 0 ? 0 : this.#random.below(10);
    if (kind < 5 && maySave) return this.#save(store, now, busy);
    if (kind === 9 || free.length === 0) return void (await store.prune({ idleMs: 1e12, maxChainLength: 100_000 }));
    const expected = this.#expected.get(this.#random.pick(free))!;
    busy.add(expected.id);
    return this.#rewrite(store, now, expected);
  }

  async #save(store: Store, now: number, busy: Set<string>): Promise<void> {
    const id = `snapshot ${this.#count}`;
    busy.add(id);
    const custom = this.#custom();
    const parents = [...this.#expected.keys()].slice(-5);
    const parentId = parents.length > 0 && this.#random.below(10) > 0 ? this.#random.pick(parents) : undefined;
    const status = this.#random.below(2) === 0 ? 'pending' : 'completed';
    const input: SessionSnapshotInput<Custom> = {
      sessionId: 'chat',
      createdAt: '2026-01-01T00:00:00.000Z',
      status,
      ...(parentId && { parentId }),
      state: { custom },
    };
    await store.saveSnapshot(id, () => input);
    this.#expected.set(id, { id, parentId, custom, wrote: now });
  }

  async #rewrite(store: Store, now: number, expected: Expected): Promise<void> {
    const custom = this.#random.below(2) === 0 ? expected.custom : this.#custom();
    const saved = await store.saveSnapshot(expected.id, (current) =>
      current ? { ...current, heartbeatAt: new Date(now).toISOString(), state: { custom } } : null,
    );
    if (saved !== null) Object.assign(expected, { custom, wrote: now });
  }

  #custom(): Custom {
    const n = this.#count++;
    const length = this.#random.below(2) === 0 ? 100 : this.#random.below(TEXT.length);
    return { n, text: TEXT.slice(0, length) };
  }

  #open(expireAfterMs: number): Store {
    const options = { expireAfterMs, checkpointInterval: 4, shardSize: 20_000 };
    return new FirestoreSessionStore<Custom>({ db: this.#db, ...options });
  }
}

for (const { what, lives } of [
  { what: 'one expireAfterMs', lives: [DAY] },
  { what: 'two of them on one session', lives: [DAY, 3 * DAY] },
]) {
  it(`what lives reads as it was saved, and the leaf is the right one, with ${what}: ${rounds} rounds (seed ${seed})`, async () => {
    const random = new Random(seed);
    for (let round = 0; round < rounds; round++) {
      await withClock(async (clock) => {
        const play = new Play(random, lives);
        for (let step = 0; step < STEPS; step++) {
          await play.step(clock.now);
          const pause = random.below(10);
          clock.now += pause < 3 ? 0 : pause === 9 ? 1.2 * DAY : random.below(350) * (DAY / 1000);
          await play.check(clock.now);
        }
      });
    }
  });
}
