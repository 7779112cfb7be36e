import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { scale, seed } from '../../support/scale.ts';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { nodeFileSystem } from '../../../stores/file/file-system.ts';
import { LockFolder } from '../../../stores/file/lock.ts';
import { formatOwner, livenessOf, newOwner, parseOwner } from '../../../stores/file/owner.ts';
import { entriesBelow, leftovers, temporaryFolder } from './support/folders.ts';
import { Worker } from './support/processes.ts';
import { Random } from './support/random.ts';
import type { Counter } from './support/worker.ts';

/** Processes that do tasks for many tests. */
let pool: Worker[];

beforeAll(async () => {
  pool = await Worker.start(8);
});

afterAll(() => Worker.killAll(pool));

/** Processes for one test, which may kill them. */
async function startWorkers(count: number): Promise<Worker[]> {
  const workers = await Worker.start(count);
  onTestFinished(() => Worker.killAll(workers));
  return workers;
}

async function countIn(folder: string): Promise<number | undefined> {
  return (await new FileSessionStore<Counter>(folder).getSnapshot({ snapshotId: 'counter' }))?.state?.custom?.n;
}

async function saveCounter(folder: string): Promise<void> {
  const store = new FileSessionStore<Counter>(folder);
  await store.saveSnapshot('counter', () => ({
    sessionId: 'counters',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'pending',
    state: { custom: { n: 0 } },
  }));
  await store.close();
}

describe('C1 atomic update', () => {
  for (const [processes, times] of [
    [2, 200],
    [8, 50],
  ] as const) {
    it(`of ${processes} processes with ${times} increments each none is lost`, async () => {
      const folder = temporaryFolder();
      await saveCounter(folder);
      await Promise.all(pool.slice(0, processes).map((worker) => worker.run({ do: 'increment', folder, id: 'counter', times })));
      expect(await countIn(folder)).toBe(processes * times);
      expect(leftovers(folder)).toEqual([]);
    });
  }

  it('200 increments in one process and 2 stores: none is lost', async () => {
    const folder = temporaryFolder();
    await saveCounter(folder);
    const stores = [new FileSessionStore<Counter>(folder), new FileSessionStore<Counter>(folder)];
    const increments = Array.from({ length: 200 }, (_, i) =>
      stores[i % 2]!.saveSnapshot('counter', (current) => ({
        ...current!,
        state: { custom: { n: current!.state!.custom!.n + 1 } },
      })),
    );
    await Promise.all(increments);
    expect(await countIn(folder)).toBe(200);
  });
});

describe('C2 terminal state', () => {
  const rounds = scale(40, 1000);
  it(`abort, complete, fail and heartbeat from 4 processes, ${rounds} rounds: one winner, for good`, async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore(folder);
    const workers = pool.slice(0, 4);
    const statuses = ['aborted', 'completed', 'failed', 'pending'] as const;
    const winners = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      const id = `run-${round}`;
      await store.saveSnapshot(id, () => ({ sessionId: `s-${round}`, createdAt: new Date().toISOString(), status: 'pending' }));
      const outcomes = await Promise.all(
        workers.map((worker, i) => worker.run({ do: 'settle', folder, id, status: statuses[(i + round) % 4]! })),
      );
      const told = new Map(workers.map((_, i) => [statuses[(i + round) % 4]!, outcomes[i]]));
      const won = statuses.filter((status) => status !== 'pending' && told.get(status) === 'saved');
      expect(won, `round ${round}: ${JSON.stringify([...told])}`).toHaveLength(1);
      const lost = statuses.filter((status) => status !== 'pending' && status !== won[0]);
      for (const status of lost) expect(told.get(status)).toBe('FAILED_PRECONDITION');
      expect(['saved', 'skipped']).toContain(told.get('pending'));
      expect((await store.getSnapshot({ snapshotId: id }))?.status).toBe(won[0]);
      winners.add(won[0]!);
    }
    expect(winners.size).toBeGreaterThan(1);
  });
});

describe('a lock whose owner died', () => {
  it('is taken over by one of those that wait, again and again', async () => {
    const folder = temporaryFolder();
    await saveCounter(folder);
    const waiting = pool.slice(0, 3);
    const holders = await startWorkers(scale(3, 30));
    for (const [round, holder] of holders.entries()) {
      holder.begin({ do: 'hold', folder, id: 'counter' });
      await holder.wrote(1);
      const done = waiting.map((worker) => worker.run({ do: 'increment', folder, id: 'counter', times: 5 }));
      await holder.kill();
      await Promise.all(done);
      expect(await countIn(folder)).toBe((round + 1) * 15);
    }
    expect(entriesBelow(join(folder, '.locks')).filter((name) => !name.startsWith('owner-'))).toEqual([]);
  });

  it('is taken over from several that died one after the other', async () => {
    const folder = temporaryFolder();
    await saveCounter(folder);
    const holders = await startWorkers(3);
    // Opening a folder removes what the dead left; these have opened it before anybody dies.
    for (const holder of holders) await holder.run({ do: 'increment', folder, id: 'counter', times: 1 });
    for (const [i, holder] of holders.entries()) {
      holder.begin({ do: 'hold', folder, id: 'counter' });
      await holder.wrote(1);
      await holder.kill();
      // The note of the lock and a claim for each that took over.
      expect(entriesBelow(join(folder, '.locks')).filter((name) => !name.startsWith('owner-'))).toHaveLength(i + 1);
    }
    const store = new FileSessionStore<Counter>(folder);
    await store.saveSnapshot('counter', (current) => ({ ...current!, status: 'completed' }));
    await store.close();
    expect(entriesBelow(join(folder, '.locks'))).toEqual([]);
  });

  it('is left alone while its owner lives: whoever waits too long gets ABORTED', async () => {
    const folder = temporaryFolder();
    await saveCounter(folder);
    const [holder] = await startWorkers(1);
    holder!.begin({ do: 'hold', folder, id: 'counter' });
    await holder!.wrote(1);
    const store = new FileSessionStore<Counter>(folder, { lockTimeoutMs: 50 });
    const saving = store.saveSnapshot('counter', (current) => current!);
    await expect(saving).rejects.toMatchObject({ status: 'ABORTED', message: expect.stringContaining('"counters"') });
    // Reading needs no lock.
    expect(await countIn(folder)).toBe(0);
  });
});

describe('a lock', () => {
  it('of an owner that can’t be asked is taken over when it is old, not before', async () => {
    const folder = temporaryFolder();
    const remote = { ...newOwner(), host: '0123456789ab', nonce: 'ba9876543210' };
    let age = 29_000;
    const fs = {
      ...nodeFileSystem,
      stat: (path: string) => {
        const found = nodeFileSystem.stat(path);
        if (found && path.endsWith('/a-lock')) found.ctimeMs -= age;
        return found;
      },
    };
    const locks = new LockFolder(fs, folder, { timeoutMs: 20, makeFolder: () => {} });
    writeFileSync(join(folder, 'a-lock'), formatOwner(remote));
    await expect(locks.run('a-lock', 'It', async () => 1)).rejects.toBeInstanceOf(GenkitError);
    age = 31_000;
    await expect(locks.run('a-lock', 'It', async () => 1)).resolves.toBe(1);
    locks.close();
    expect(entriesBelow(folder)).toEqual([]);
  });

  it('that a power failure left without its text is taken over', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'a-lock'), '');
    const locks = new LockFolder(nodeFileSystem, folder, { timeoutMs: 20, makeFolder: () => {} });
    await expect(locks.run('a-lock', 'It', async () => 1)).resolves.toBe(1);
    locks.close();
    expect(entriesBelow(folder)).toEqual([]);
  });

  it('held for too long is given up before the commit point', async () => {
    const folder = temporaryFolder();
    const locks = new LockFolder(nodeFileSystem, folder, { timeoutMs: 20, makeFolder: () => {} });
    const now = Date.now;
    const held = locks.run('a-lock', 'It', async (lock) => {
      lock.assertHeld();
      Date.now = () => now() + 16_000;
      lock.assertHeld();
    });
    await expect(held.finally(() => (Date.now = now))).rejects.toMatchObject({ status: 'ABORTED' });
  });

  it('names an owner that can be told from a later process of the same number', () => {
    const self = newOwner();
    expect(parseOwner(formatOwner(self))).toEqual(self);
    expect(livenessOf(self)).toBe('alive');
    expect(livenessOf({ ...self, pid: 4_194_305 })).toBe('dead');
    if (process.platform === 'linux') expect(livenessOf({ ...self, started: '1' })).toBe('dead');
    expect(livenessOf({ ...self, host: '0123456789ab' })).toBe('remote');
  });
});

describe(`D1 crash-kill (seed ${seed})`, () => {
  const kills = scale(30, 1000);
  it(`of ${kills} processes killed while they save: nothing torn, nothing acknowledged lost, nothing left behind`, async () => {
    const random = new Random(seed);
    const folder = temporaryFolder();
    const acknowledged = new Map<string, number>();
    let saves = 0;
    let next = startWorkers(Math.min(4, kills));
    for (let killed = 0; killed < kills; ) {
      const workers = await next;
      // The next ones start while these work.
      next = startWorkers(Math.min(4, kills - killed - workers.length));
      for (const worker of workers) {
        worker.begin({ do: 'chat', folder, sessions: 6, seed: random.below(1e9) });
        await worker.wrote(1 + random.below(40));
        // Somewhere in the middle of what comes next.
        const until = performance.now() + random.next() * 4;
        while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve));
        await worker.kill();
        killed++;
        saves += note(worker.lines, acknowledged);
        await assertIntact(folder, acknowledged, `after ${killed} kills`);
      }
    }
    expect(saves).toBeGreaterThan(kills * 5);
  });
});

/** Takes in what a worker was acknowledged, and answers how many saves that were. */
function note(lines: readonly string[], acknowledged: Map<string, number>): number {
  for (const line of lines) {
    const [, sessionId, n] = line.split(' ') as [string, string, string];
    acknowledged.set(sessionId, Math.max(acknowledged.get(sessionId) ?? 0, Number(n)));
  }
  return lines.length;
}

/** Every acknowledged turn is there and whole, and the next turn is on top of the latest. */
async function assertIntact(folder: string, acknowledged: ReadonlyMap<string, number>, when: string): Promise<void> {
  const store = new FileSessionStore<Counter>(folder, { durability: 'fast' });
  for (const [sessionId, last] of acknowledged) {
    const leaf = await store.getSnapshot({ sessionId });
    expect(leaf?.state?.custom?.n, `${when}: ${sessionId}`).toBeGreaterThanOrEqual(last);
    const from = Math.max(1, last - 30);
    for (let n = from; n <= last; n++) {
      const snapshot = await store.getSnapshot({ snapshotId: `${sessionId}-${n}` });
      expect(snapshot?.state?.custom, `${when}: ${sessionId}, turn ${n}`).toEqual({ n });
      expect(snapshot?.parentId).toBe(n === 1 ? undefined : `${sessionId}-${n - 1}`);
      expect(snapshot?.state?.messages).toHaveLength(Math.min(n, 40));
    }
  }
  // A save to each session settles what was left there.
  for (const sessionId of acknowledged.keys()) {
    const leaf = await store.getSnapshot({ sessionId });
    await store.saveSnapshot(leaf!.snapshotId, (current) => ({ ...current!, updatedAt: when }));
  }
  expect(leftovers(folder), when).toEqual([]);
  await store.close();
}
