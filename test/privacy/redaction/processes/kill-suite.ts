import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { SnapshotStore } from 'genkitx-agents';
import { expect, onTestFinished, test, vi } from 'vitest';
import { childScript } from '../../../support/child-script.ts';
import { Random } from '../../../support/random.ts';
import { scale, seed } from '../../../support/scale.ts';
import type { MediumSpec, Report, WorkerSpec } from './protocol.ts';

const SCRIPT = await childScript(new URL('./worker.ts', import.meta.url));
const AN_HOUR = 3_600_000;
const LONGEST_MS = scale(300_000, 3_600_000);

/** The medium of the processes. */
export interface KilledMedium {
  readonly spec: MediumSpec;
  /** The values that are there in the clear, with the place. */
  find(values: readonly string[]): Promise<string[]>;
  /** The store without redaction. */
  open(): SnapshotStore;
}

/** 25 texts and 25 numbers. */
const VALUES = Array.from({ length: 50 }, (_, n) => `plant-${String(n).padStart(4, '0')}-x`);
const FOUND = [...VALUES, ...VALUES.map((_, n) => String(770_000_000_000 + n))];

class Worker {
  readonly reports: Report[] = [];
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(spec: Partial<WorkerSpec> & { medium: MediumSpec }) {
    const whole: WorkerSpec = { ahead: 0, from: 0, to: 0, values: VALUES, task: 'turns', holds: false, ...spec };
    this.#process = fork(SCRIPT, [JSON.stringify(whole)], { silent: true });
    this.#ended = once(this.#process, 'close');
    let said = '';
    this.#process.stderr!.on('data', (chunk) => (said = `${said}${chunk}`.slice(-4000)));
    this.#process.on('message', (report: Report) => this.reports.push(report));
    this.#process.on('exit', (code) => {
      if (code) console.error(said);
    });
    onTestFinished(() => this.kill());
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#ended;
  }

  all<K extends Report['kind']>(kind: K): Extract<Report, { kind: K }>[] {
    return this.reports.filter((report) => report.kind === kind) as Extract<Report, { kind: K }>[];
  }

  /** A background run waits for its model and is stored, or all turns are done. */
  isDetached(store: SnapshotStore): Promise<void> {
    return this.#until(async () => {
      if (this.all('done').length > 0) return true;
      return this.all('seen').some(({ by }) => by === 'detached') && (await statusesIn(store)).has('pending');
    });
  }

  /** Resolves after this many turns, or when the worker is done. */
  hasTaken(turns: number): Promise<void> {
    return this.#until(() => this.all('turns').length >= turns || this.all('done').length > 0);
  }

  heard(kind: Report['kind']): Promise<void> {
    return this.#until(() => this.all(kind).length > 0);
  }

  async #until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    const look = async () => {
      if (await isSo()) return true;
      if (this.#process.exitCode !== null) throw new Error('The worker has ended by itself.');
      return false;
    };
    await vi.waitUntil(look, { timeout: LONGEST_MS, interval: 5 });
  }
}

/** The tests of redacting stores whose processes are killed, or write at the same time. */
export function redactsWhenKilled(name: string, make: () => Promise<KilledMedium>): void {
  const [turns, kills] = [scale(12, 200), scale(2, 12)];
  test(
    `redaction at kills: on ${name}, ${turns} turns and ${kills} kills leave none of 100 values (seed ${seed})`,
    async () => {
      const medium = await make();
      const store = medium.open();
      const random = new Random(seed);
      const workers: Worker[] = [];
      let done = 0;
      for (let round = 0; round <= kills; round++) {
        // Every other one is killed in the middle of a run in the background.
        const holds = round % 2 === 0 && round < kills;
        const worker = new Worker({ medium: medium.spec, ahead: round * AN_HOUR, from: done, to: turns, holds });
        workers.push(worker);
        if (round === kills) {
          await worker.heard('done');
          break;
        }
        if (holds) await worker.isDetached(store);
        else await worker.hasTaken(1 + random.below(Math.ceil((turns - done) / (kills + 1 - round))));
        await pause(random.below(50));
        // Also while it works.
        if (holds) expect(await medium.find(FOUND)).toEqual([]);
        await worker.kill();
        expect(await medium.find(FOUND)).toEqual([]);
        done = Math.max(done, ...worker.all('turns').map(({ count }) => count));
      }
      const seen = workers.flatMap((worker) => worker.all('seen'));
      for (const { text } of seen) {
        expect(text).toContain('plant-');
        expect(text).not.toContain('[PLANT');
      }
      expect(new Set(seen.map(({ by }) => by))).toEqual(new Set(['approval', 'detached']));
      const outcomes = workers.flatMap((worker) => worker.all('recovered').flatMap((recovered) => recovered.outcomes));
      expect(outcomes).toContain('continued');
      console.log(`redaction at kills, ${name}: real values ${seen.length} times, runs taken over: ${outcomes.length}`);
      const statuses = await vi.waitUntil(
        async () => {
          const found = await statusesIn(store);
          return found.has('pending') ? undefined : found;
        },
        { timeout: LONGEST_MS, interval: 100 },
      );
      expect([...statuses].toSorted()).toEqual(['aborted', 'completed', 'failed']);
      await store.close();
      expect(await medium.find(FOUND)).toEqual([]);
    },
    LONGEST_MS,
  );

  test(`redaction at kills: on ${name}, two processes that number the values of a session agree`, async () => {
    const medium = await make();
    const orders = [VALUES.slice(0, 12), VALUES.slice(0, 12).toReversed()];
    const workers = orders.map((values) => new Worker({ medium: medium.spec, task: 'numbers', values }));
    await Promise.all(workers.map((worker) => worker.heard('done')));
    const numbered = new Set(workers.flatMap((worker) => worker.all('numbered').map(({ text }) => text)));
    // One number for each value, and one value for each number.
    expect(numbered.size).toBe(12);
    expect(new Set([...numbered].map((text) => text.split(' ')[1])).size).toBe(12);
    expect([...numbered].every((text) => /^plant-\d{4}-x \[PLANT_\d{1,2}\]$/.test(text))).toBe(true);
    expect(await medium.find(FOUND)).toEqual([]);
    // The search finds the values in a store without redaction.
    const plain = medium.open();
    const long = VALUES.map((value) => `${value} ${'word '.repeat(100)}`);
    const createdAt = new Date().toISOString();
    await plain.saveSnapshot(undefined, () => ({ sessionId: 'two', createdAt, state: { custom: long } }));
    await plain.close();
    expect((await medium.find(FOUND)).length).toBeGreaterThanOrEqual(VALUES.length);
  });
}

async function statusesIn(store: SnapshotStore): Promise<Set<string>> {
  const statuses = new Set<string>();
  for (const { sessionId } of (await store.listSessions({ limit: 1000 })).items) {
    const { items } = await store.listSnapshots({ sessionId, limit: 1000 });
    for (const { status } of items) statuses.add(String(status));
  }
  return statuses;
}
