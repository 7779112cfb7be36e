import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { FileSessionStore } from 'genkitx-agents';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { scale, seed } from '../../support/scale.ts';
import type { Order, Report, WorkerSpec } from './protocol.ts';

const SCRIPT = await childScript(new URL('./worker.ts', import.meta.url));
const AN_HOUR = 3_600_000;

/** A process with an agent on the folder's store. */
class Worker {
  readonly reports: Report[] = [];
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(spec: Partial<WorkerSpec> & { folder: string }) {
    const whole: WorkerSpec = { ahead: 0, heartbeatIntervalMs: 30_000, waits: false, ...spec };
    this.#process = fork(SCRIPT, [JSON.stringify(whole)]);
    this.#ended = once(this.#process, 'close');
    this.#process.on('message', (report: Report) => this.reports.push(report));
  }

  send(order: Order): void {
    this.#process.send(order);
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(name);
  }

  /** Its messages, complete when it has exited. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#ended;
  }

  async heard<K extends Report['kind']>(kind: K, count = 1): Promise<Extract<Report, { kind: K }>> {
    return vi.waitUntil(() => this.all(kind)[count - 1], { timeout: 60_000, interval: 2 });
  }

  all<K extends Report['kind']>(kind: K): Extract<Report, { kind: K }>[] {
    return this.reports.filter((report) => report.kind === kind) as Extract<Report, { kind: K }>[];
  }
}

const workers: Worker[] = [];
const folders: string[] = [];

function start(spec: Partial<WorkerSpec> & { folder: string }): Worker {
  const worker = new Worker(spec);
  workers.push(worker);
  return worker;
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agents-death-'));
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function settled(store: FileSessionStore, snapshotId: string) {
  return vi.waitUntil(
    async () => {
      const snapshot = await store.getSnapshot({ snapshotId });
      return snapshot?.status === 'pending' ? undefined : snapshot;
    },
    { timeout: 60_000, interval: 5 },
  );
}

const ANSWERED = ['one', 'ok', 'two', 'ok', 'three', 'ok'];

/** All rescuers at once; returns the runs that they took over. */
async function recoverAll(rescuers: readonly Worker[], round: number) {
  for (const rescuer of rescuers) rescuer.send({ do: 'recover' });
  const answers = await Promise.all(rescuers.map((rescuer) => rescuer.heard('recovered', round)));
  return answers.flatMap(({ runs }) => runs);
}

describe('worker death:', () => {
  const kills = scale(2, 50);
  test(`kill x ${kills} (seed ${seed}): no input is lost, and each run has exactly one taker`, async () => {
    const folder = newFolder();
    const store = new FileSessionStore(folder);
    const rescuers = [1, 2].map(() => start({ folder, ahead: AN_HOUR }));
    let owner = start({ folder });
    await Promise.all([owner, ...rescuers].map((worker) => worker.heard('ready')));
    let random = seed;
    let taken = 0;
    for (let round = 1; round <= kills; round++) {
      // The next one starts while this one works.
      const next = start({ folder });
      owner.send({ do: 'detach', runs: 3, seed: seed * 1000 + round });
      random = (random * 48_271) % 2_147_483_647;
      // Before the caller has its output, or after the first, second, third turn.
      if (random % 4 > 0) await owner.heard('detached', random % 4);
      await pause(random % 120);
      await owner.kill();
      const runs = await recoverAll(rescuers, round);
      taken += runs.length;
      expect(
        new Set(runs.map(({ snapshotId }) => snapshotId)).size,
        `each run is taken over once: ${JSON.stringify(runs)}`,
      ).toBe(runs.length);
      for (const { generation, outcome } of runs)
        expect({ generation, outcome }).toEqual({ generation: 2, outcome: 'continued' });
      for (const { snapshotId } of owner.all('detached')) {
        const last = await settled(store, snapshotId);
        expect(last?.status).toBe('completed');
        expect(last?.state?.messages?.map(({ content }) => content[0]?.text)).toEqual(ANSWERED);
      }
      // Runs that were not stored completely when the process died end, too.
      for (const { snapshotId } of runs) expect((await settled(store, snapshotId))?.status).toBe('completed');
      owner = next;
      await owner.heard('ready');
    }
    expect(taken).toBeGreaterThan(0);
    const { items } = await store.listSessions({ limit: 1000 });
    expect(items.filter(({ status }) => status !== 'completed')).toEqual([]);
    await store.close();
  });

  for (const { name, heartbeatIntervalMs } of [
    { name: 'whose reply comes late', heartbeatIntervalMs: 30_000 },
    // Not so short that it is stopped in the middle of one: the file store's lock would be its own until it continues.
    { name: 'whose heartbeat comes late', heartbeatIntervalMs: 2000 },
  ]) {
    test(`a paused process ${name} (SIGSTOP, SIGCONT) writes nothing more, and stops`, async () => {
      const folder = newFolder();
      const store = new FileSessionStore(folder);
      const sleeper = start({ folder, waits: true, heartbeatIntervalMs });
      const rescuer = start({ folder, ahead: AN_HOUR });
      await Promise.all([sleeper, rescuer].map((worker) => worker.heard('ready')));
      sleeper.send({ do: 'detach', runs: 1, seed: 1 });
      const { snapshotId } = await sleeper.heard('detached');
      await sleeper.heard('asked');
      sleeper.signal('SIGSTOP');
      expect(await recoverAll([rescuer], 1)).toMatchObject([{ snapshotId, generation: 2 }]);
      const last = await settled(store, snapshotId);
      expect(last?.state?.messages?.map(({ content }) => content[0]?.text)).toEqual(ANSWERED);
      if (heartbeatIntervalMs > 2000) sleeper.send({ do: 'answer' });
      sleeper.signal('SIGCONT');
      if (heartbeatIntervalMs <= 2000) await sleeper.heard('stopped');
      // The end of each of its three turns, which it would save.
      await sleeper.heard('refused', 3);
      // It is alive and obeys commands, but its run has ended.
      sleeper.send({ do: 'recover' });
      expect(await sleeper.heard('recovered')).toEqual({ kind: 'recovered', runs: [] });
      const after = await store.getSnapshot({ snapshotId });
      expect(after).toEqual(last);
      for (let id = last?.parentId; id !== undefined;) {
        const turn = await store.getSnapshot({ snapshotId: id });
        expect(turn?.status).toBe('completed');
        expect(JSON.stringify(turn)).not.toContain('late');
        id = turn?.parentId;
      }
      expect(sleeper.all('asked')).toHaveLength(1);
      await store.close();
    });
  }
});
