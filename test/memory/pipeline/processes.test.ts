/** Workers in several processes, some of which are killed. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { genkit } from 'genkitx-agents';
import { FileMemoryStore, memoryManager, processMemoryJobs } from 'genkitx-agents/memory';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { Random } from '../../support/random.ts';
import { scale, seed as SEED } from '../../support/scale.ts';
import { LIMITS, TURNS, USERS, type WorkerOrder } from './worker-protocol.ts';

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
  const child = fork(SCRIPT, [folder, String(seed)]);
  running.add(child);
  await once(child, 'message');
  child.send(order);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const calls = () => (existsSync(join(folder, 'calls')) ? readFileSync(join(folder, 'calls'), 'utf8').length : 0);

test('memory once: eight processes that ingest the same session at once ask once, and make one effect', async () => {
  const workers = await Promise.all(Array.from({ length: 8 }, (_, i) => start(SEED + i, 'learn one')));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const store = new FileMemoryStore(join(folder, 'memories'));
  const { items } = await store.query({ scope: 'user', appName: 'chat', userId: 'user0' }, { k: 1000 });
  expect(items.map(({ memory: { revision, sources } }) => [revision, sources.length])).toEqual(
    Array.from({ length: TURNS }, () => [1, 1]),
  );
  expect(calls()).toBe(1);
  expect((await store.listJobs()).items).toEqual([]);
  await store.close();
});

test(`memory once: kills of workers whose model fails in 30 % of calls lose nothing and apply nothing twice (seed ${SEED})`, async () => {
  const kills = scale(20, 200);
  const random = new Random(SEED);
  const workers = await Promise.all([start(SEED, 'learn until killed'), start(SEED + 1, 'learn until killed')]);
  for (let i = 0; i < kills; i++) {
    const before = calls();
    const wanted = before + 1 + random.below(6);
    // A moment of the work, not of the clock: so many more readings.
    while (calls() < wanted) await new Promise((resolve) => setImmediate(resolve));
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
  const alive = async () => (await memory.jobs.list()).filter(({ state }) => state !== 'dead');
  while ((await alive()).length > 0) {
    now += 1000;
    await processMemoryJobs(memory);
  }
  await memory.close();
  const seen = new Map<string, number>();
  const count = (key: string) => seen.set(key, (seen.get(key) ?? 0) + 1);
  for (let user = 0; user < USERS; user++) {
    const { items } = await store.query({ scope: 'user', appName: 'chat', userId: `user${user}` }, { k: 1000 });
    for (const { memory: found } of items) count(found.text.replace(/ says .*/, ''));
  }
  const ends = new Map<string, number>();
  for (const job of await memory.jobs.list({ state: 'dead' })) {
    const { range } = job.input as { range: { from: number; to: number } };
    for (let i = range.from; i < range.to; i++) count(`${job.sourceId} message${i}`);
  }
  for (const key of seen.keys()) {
    const [source, message] = key.split(' message') as [string, string];
    ends.set(source, Math.max(ends.get(source) ?? 0, Number(message) + 1));
  }
  expect(seen.size).toBeGreaterThan(kills);
  expect([...seen].filter(([, times]) => times !== 1)).toEqual([]);
  for (const [source, end] of ends) {
    for (let i = 0; i < end; i++) expect(seen.get(`${source} message${i}`), `${source} message${i}`).toBe(1);
  }
  await store.close();
});
