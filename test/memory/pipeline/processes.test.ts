/** Workers in several processes. Some of them are killed. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { genkit } from 'genkitx-agents';
import { FileMemoryStore, memoryManager, processMemoryJobs } from 'genkitx-agents/memory';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { Random } from '../../support/random.ts';
import { scale, seed as SEED } from '../../support/scale.ts';
import { CORROBORATIONS, LIMITS, SLOW_CALLS, TURNS, USERS, type WorkerOrder } from './worker-protocol.ts';

const SCRIPT = await childScript(new URL('worker-process.ts', import.meta.url), { isWhole: true });

let folder: string;
let running: Set<ChildProcess>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agents-memory-'));
  running = new Set();
});

afterEach(async () => {
  await Promise.all([...running].map(kill));
  rmSync(folder, { recursive: true });
});

async function start(seed: number, order: WorkerOrder): Promise<ChildProcess> {
  const child = fork(SCRIPT, [folder, String(seed), order]);
  running.add(child);
  await once(child, 'message');
  child.send('begin');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/**
 * Returns the next message of a worker.
 *
 * @throws Error if the worker ends without a message.
 */
async function wordOf(worker: ChildProcess): Promise<'asked' | 'done'> {
  const ended = once(worker, 'exit').then(() => Promise.reject(new Error('A worker has ended without a word.')));
  const [said] = (await Promise.race([once(worker, 'message'), ended])) as ['asked' | 'done'];
  return said;
}

const calls = () => (existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').length : 0);

async function expectOneEffect(): Promise<void> {
  const store = new FileMemoryStore(join(folder, 'memories'));
  const { items } = await store.query({ scope: 'user', appName: 'chat', userId: 'user0' }, { k: 1000 });
  expect(items.map(({ memory: { revision, sources } }) => [revision, sources.length])).toEqual(
    Array.from({ length: TURNS }, () => [1, 1]),
  );
  expect((await store.listJobs()).items).toEqual([]);
  await store.close();
}

test('memory once: eight processes that ingest the same session five times each, at once, ask once and make one effect', async () => {
  const workers = await Promise.all(Array.from({ length: 8 }, (_, i) => start(SEED + i, 'learn one')));
  await Promise.all(workers.map(wordOf));
  await expectOneEffect();
  expect(calls()).toBe(1);
});

test('memory once: the model is asked once more for each of the workers that are killed while it answers', async () => {
  const workers = await Promise.all(
    Array.from({ length: scale(4, 8) }, (_, i) => start(SEED + i, 'learn one, slowly')),
  );
  const ends = await Promise.all(
    workers.map(async (worker) => {
      const said = await wordOf(worker);
      if (said === 'asked') {
        await kill(worker);
        appendFileSync(join(folder, 'passed-leases'), 'x');
      }
      return said;
    }),
  );
  expect(ends.filter((said) => said === 'asked')).toHaveLength(SLOW_CALLS);
  await expectOneEffect();
  expect(calls()).toBe(SLOW_CALLS + 1);
});

test('memory once: corroborations of one memory by two processes are all counted', async () => {
  const workers = await Promise.all([start(1, 'corroborate'), start(2, 'corroborate')]);
  await Promise.all(workers.map(wordOf));
  const store = new FileMemoryStore(join(folder, 'memories'));
  const { items } = await store.query({ scope: 'user', appName: 'chat', userId: 'user0' });
  const count = 2 * CORROBORATIONS;
  expect(
    items.map(({ memory: { revision, sources } }) => [revision, new Set(sources.map(({ id }) => id)).size]),
  ).toEqual([[count, count]]);
  expect((await store.listJobs()).items).toEqual([]);
  await store.close();
});

test(`memory once: kills of workers whose model fails in 30 % of calls lose nothing and apply nothing twice (seed ${SEED})`, async () => {
  const kills = scale(3, 200);
  const random = new Random(SEED);
  const workers = await Promise.all([start(SEED, 'learn until killed'), start(SEED + 1, 'learn until killed')]);
  for (let i = 0; i < kills; i++) {
    const before = calls();
    const wanted = before + 1 + random.below(6);
    // Waits for a number of readings, not for a time.
    await vi.waitUntil(() => calls() >= wanted, { interval: 2 });
    const victim = random.below(workers.length);
    await kill(workers[victim]!);
    workers[victim] = await start(SEED + 2 + i, 'learn until killed');
  }
  await Promise.all(workers.map(kill));

  const store = new FileMemoryStore(join(folder, 'memories'));
  let now = Date.now();
  const read = (text: string) => `${text} readlater`;
  const memory = memoryManager(genkit(), {
    store,
    worker: false,
    limits: LIMITS,
    now: () => now,
    extract: ({ messages }) => messages.map(({ content }) => read(content[0]!.text!)),
  });
  const drain = async () => {
    while ((await memory.jobs.list()).some(({ state }) => state !== 'dead')) {
      now += 1000;
      await processMemoryJobs(memory);
    }
  };
  const appliedTimes = async () => {
    const times = new Map<string, number>();
    for (let user = 0; user < USERS; user++) {
      const { items } = await store.query({ scope: 'user', appName: 'chat', userId: `user${user}` }, { k: 1000 });
      for (const { memory: found } of items) {
        const key = found.text.replace(/ says .*/, '');
        times.set(key, (times.get(key) ?? 0) + 1);
      }
    }
    return times;
  };
  await drain();
  const applied = await appliedTimes();
  const dead = await memory.jobs.list({ state: 'dead' });
  const buried = dead.flatMap(({ sourceId, input }) => {
    const { from, to } = (input as { range: { from: number; to: number } }).range;
    return Array.from({ length: to - from }, (_, i) => `${sourceId} message${from + i}`);
  });
  expect(Math.max(...applied.values())).toBe(1);
  expectNoGap(new Set([...applied.keys(), ...buried]), kills);

  // After a replay of the dead jobs, each message is learned exactly once.
  for (const { id } of dead) await memory.jobs.replay(id);
  await drain();
  const replayed = await appliedTimes();
  expect(Math.max(...replayed.values())).toBe(1);
  expect(buried.filter((key) => !replayed.has(key))).toEqual([]);
  await memory.close();
  await store.close();
});

/** The expected messages: for each source, every message up to the last stored one. */
function expectNoGap(keys: ReadonlySet<string>, least: number): void {
  expect(keys.size).toBeGreaterThan(least);
  const ends = new Map<string, number>();
  for (const key of keys) {
    const [source, message] = key.split(' message') as [string, string];
    ends.set(source, Math.max(ends.get(source) ?? 0, Number(message) + 1));
  }
  for (const [source, end] of ends) {
    for (let i = 0; i < end; i++) expect(keys.has(`${source} message${i}`), `${source} message${i}`).toBe(true);
  }
}
