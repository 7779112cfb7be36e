import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { FileSessionStore, type FileSessionStoreOptions } from '../../../../stores/file/file-session-store.ts';
import { scale, seed } from '../../../support/scale.ts';
import { CrashLedger, leftoversIn } from './support/crash-ledger.ts';
import { intentOf } from './scripts/crash-writer.ts';
import { Fleet, type Child } from './support/fleet.ts';
import type { DeathPlan } from './support/mortal-file-system.ts';
import { Random } from '../../../support/random.ts';
import { counterOf, increment, textsOf, turn } from './support/snapshots.ts';
import { FAST } from './support/stores.ts';
import type { TaskInput } from './support/protocol.ts';

const SESSIONS = ['one', 'two'];
/** Each kill takes a new process, which takes a second or two to start. */
const LONGEST_MS = scale(300_000, 7_200_000);
/** After this many kills a new folder, so that reading all of it stays fast. */
const KILLS_IN_A_FOLDER = scale(2, 4);
const KILLS_AMONG_OTHERS = 10;

const VARIANTS: readonly FileSessionStoreOptions[] = [
  {},
  { maxPersistedChainLength: 5, checkpointInterval: 3 },
  { checkpointInterval: 1, durability: 'full' },
  { maxPersistedChainLength: 8, durability: 'full' },
  { checkpointInterval: 4 },
];

/** Processes that are started before they are needed. */
class Spares {
  readonly #fleet: Fleet;
  readonly #children: Child[] = [];

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  take(): Child {
    while (this.#children.length < 3) this.#children.push(this.#fleet.start());
    return this.#children.shift()!;
  }
}

/** Some system call of the first hundred or so saves. */
function randomDeath(random: Random): DeathPlan {
  return { call: 1 + random.below(1500), moment: random.pick(['before', 'midway', 'after']) };
}

/** Resolves when the writer was killed; rejects when it ended in another way. */
async function untilKilled(writer: Child, plan: TaskInput<'write'>): Promise<void> {
  await expect(writer.call('write', plan)).rejects.toThrow('the child process ended');
  await writer.ended;
}

/** Resolves when the writer has done its next batch. */
function untilResting(writer: Child): Promise<void> {
  return writer.nextLine('{"kind":"resting"}');
}

describe(`crash-kill: (seed ${seed})`, () => {
  const processes = new Fleet();
  const folders = new Fleet();
  const spares = new Spares(processes);

  afterEach(() => folders.end());
  afterAll(() => processes.end());

  /** Opens the store again, compares it with the ledger, saves once to each session, closes it, and checks for leftover files. */
  async function inspect(
    folder: string,
    options: FileSessionStoreOptions,
    ledger: CrashLedger,
    after: string,
  ): Promise<void> {
    const longest = options.maxPersistedChainLength;
    const store = new FileSessionStore(folder, { ...FAST, ...options });
    const listed: string[] = [];
    for (const sessionId of SESSIONS) {
      await ledger.audit(store, sessionId, longest);
      const parent = await store.getSnapshot({ sessionId });
      const id = `inspected-${sessionId}-${ledger.acknowledged}`;
      const next = turn(sessionId, parent, 'after the crash');
      ledger.note(JSON.stringify(intentOf(id, next)));
      await store.saveSnapshot(id, () => next);
      ledger.note(JSON.stringify({ kind: 'saved', id }));
      listed.push(...(await ledger.audit(store, sessionId, longest)));
    }
    await store.close();
    expect(leftoversIn(folder, listed), `${after}, ${JSON.stringify(options)}`).toEqual([]);
  }

  const kills = scale(4, 800);
  it(
    `crash-kill: ${kills} kills of a writer lose nothing that was acknowledged and leave nothing`,
    async () => {
      const random = new Random(seed);
      let acknowledged = 0;
      for (let done = 0; done < kills; done += KILLS_IN_A_FOLDER) {
        const folder = folders.folder();
        const ledger = new CrashLedger();
        const options = VARIANTS[(done / KILLS_IN_A_FOLDER) % VARIANTS.length]!;
        for (let kill = done; kill < Math.min(done + KILLS_IN_A_FOLDER, kills); kill++) {
          const writer = spares.take();
          const killAfter = 1 + random.below(60);
          let saved = 0;
          writer.onLine = (line) => {
            ledger.note(line);
            // Every other writer ends at a random point, some time after a save.
            if (line.includes('"saved"') && ++saved === killAfter && kill % 2 === 0) void writer.kill();
          };
          const death = kill % 2 === 0 ? undefined : randomDeath(random);
          const plan = {
            store: { folder, options },
            sessions: SESSIONS,
            seed: random.below(1e9),
            ...(death && { death }),
          };
          await untilKilled(writer, plan);
          await inspect(folder, options, ledger, `kill ${kill}: ${JSON.stringify(death ?? { killAfter })}`);
        }
        acknowledged += ledger.acknowledged;
      }
      console.log(`crash-kill: ${kills} kills, ${acknowledged} acknowledged saves, seed ${seed}`);
    },
    LONGEST_MS,
  );

  const others = scale(3, 200);
  it(
    `crash-kill: when one of three writers is killed, ${others} times, the others continue`,
    async () => {
      const random = new Random(seed + 1);
      for (let done = 0; done < others; done += KILLS_AMONG_OTHERS) {
        const options = VARIANTS[(1 + done / KILLS_AMONG_OTHERS) % VARIANTS.length]!;
        const store = { folder: folders.folder(), options };
        const ledger = new CrashLedger();
        const start = (writer: Child, plan: Partial<TaskInput<'write'>>): Promise<void> => {
          writer.onLine = ledger.note;
          return untilKilled(writer, { store, sessions: SESSIONS, seed: random.below(1e9), ...plan });
        };
        const survivors = [spares.take(), spares.take()];
        const ends = survivors.map((writer) => start(writer, { batch: 10 }));
        await Promise.all(survivors.map(untilResting));
        for (let kill = done; kill < Math.min(done + KILLS_AMONG_OTHERS, others); kill++) {
          const killed = start(spares.take(), { death: randomDeath(random) });
          // They write together with the killed writer, and again after its death.
          for (const moment of [Promise.resolve(), killed]) {
            await moment;
            const resting = survivors.map(untilResting);
            for (const survivor of survivors) survivor.openGate();
            await Promise.all(resting);
          }
        }
        await Promise.all(survivors.map((writer) => writer.kill()));
        await Promise.all(ends);
        await inspect(store.folder, options, ledger, `kills ${done} to ${done + KILLS_AMONG_OTHERS}`);
      }
    },
    LONGEST_MS,
  );

  it('crash-kill: the lock of a killed process is taken over', async () => {
    const store = { folder: folders.folder() };
    const [holder, ...waiting] = [spares.take(), spares.take(), spares.take()];
    const held = holder.call('hold', { store, id: 'counter' });
    await holder.nextLine('holding');
    const added = waiting.map((child) => child.call('increment', { store, id: 'counter', times: 5 }));
    await holder.kill();
    await expect(held).rejects.toThrow('the child process ended');
    await Promise.all(added);
    const reader = new FileSessionStore(store.folder, FAST);
    expect(counterOf(await reader.getSnapshot({ snapshotId: 'counter' }))).toBe(10);
    await reader.close();
  });

  it('crash-kill: the lock of a process that is only slow is not taken over', async () => {
    const store = { folder: folders.folder() };
    const hasty = new FileSessionStore(store.folder, { ...FAST, lockTimeoutMs: 100 });
    await hasty.saveSnapshot('counter', increment);
    const holder = spares.take();
    const held = holder.call('hold', { store, id: 'counter' });
    await holder.nextLine('holding');
    await expect(hasty.saveSnapshot('counter', increment)).rejects.toMatchObject({ status: 'ABORTED' });
    holder.openGate();
    expect(await held).toEqual({ kind: 'saved', id: 'counter' });
    await hasty.saveSnapshot('counter', increment);
    expect(counterOf(await hasty.getSnapshot({ snapshotId: 'counter' }))).toBe(3);
    await hasty.close();
  });

  it('crash-kill: a snapshot whose rewrite was interrupted leaves no file when it is pruned', async () => {
    const spec = { folder: folders.folder(), options: { maxPersistedChainLength: 2 } };
    const save = async (id: string): Promise<void> => {
      const store = new FileSessionStore(spec.folder, { ...FAST, ...spec.options });
      const parent = await store.getSnapshot({ sessionId: 'one' });
      await store.saveSnapshot(id, () => turn('one', parent, id));
      expect(textsOf(await store.getSnapshot({ sessionId: 'one' })).at(-1)).toBe(id);
      await store.close();
    };
    await save('a');
    await save('b');
    const death = { call: 1, of: 'rename', moment: 'before' } as const;
    const victim = spares.take();
    await expect(victim.call('dieRewriting', { store: spec, id: 'b', death })).rejects.toThrow('process ended');
    await save('c');
    await save('d');
    expect(leftoversIn(spec.folder, ['c', 'd'])).toEqual([]);
  });
});
