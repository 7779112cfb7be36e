/** Several processes that want to summarize the same messages of one session. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { isTorture } from '../../support/scale.ts';
import { MESSAGES, SESSION, type CompactorOrder, type CompactorReport } from './compactor-protocol.ts';

const SCRIPT = await childScript(new URL('compactor.ts', import.meta.url), { isWhole: true });
const PROCESSES = isTorture ? 8 : 4;
/** Longer than a lease. */
const TWO_MINUTES = 120_000;

class Compactor {
  readonly #process: ChildProcess;
  readonly #reports: CompactorReport[] = [];

  constructor(folder: string) {
    this.#process = fork(SCRIPT, [folder]);
    this.#process.on('message', (report: CompactorReport) => this.#reports.push(report));
  }

  order(order: CompactorOrder): void {
    this.#process.send(order);
  }

  /** The reports of a kind. */
  all<K extends CompactorReport['kind']>(kind: K): Extract<CompactorReport, { kind: K }>[] {
    return this.#reports.filter((report) => report.kind === kind) as Extract<CompactorReport, { kind: K }>[];
  }

  async heard(kind: CompactorReport['kind'], count: number): Promise<void> {
    await vi.waitUntil(() => this.all(kind).length >= count, { timeout: 60_000, interval: 5 });
  }

  async kill(): Promise<void> {
    if (this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }
}

let folder: string;
let all: Compactor[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'agents-range-'));
  const state = { sessionId: SESSION.sessionId, messages: [...MESSAGES] };
  const createdAt = new Date().toISOString();
  const store = new FileSessionStore(folder);
  await store.saveSnapshot(SESSION.snapshotId, () => ({ ...SESSION, createdAt, status: 'completed', state }));
  await store.close();
  all = Array.from({ length: PROCESSES }, () => new Compactor(folder));
  await Promise.all(all.map((each) => each.heard('ready', 1)));
});

afterEach(async () => {
  await Promise.all(all.map((each) => each.kill()));
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

const askedBy = () => all.filter((each) => each.all('asked').length > 0);

/** All of them summarize; answers the one whose summarizer was asked, when the others have given way. */
async function race(among: readonly Compactor[], aheadMs: number): Promise<Compactor> {
  const done = among.map((each) => each.all('done').length);
  for (const each of among) each.order({ kind: 'compact', aheadMs });
  const isDone = (each: Compactor, i: number) => each.all('done').length > done[i]!;
  await vi.waitUntil(() => among.filter(isDone).length === among.length - 1, { timeout: 60_000, interval: 5 });
  const winner = among.find((each, i) => !isDone(each, i))!;
  await winner.heard('asked', 1);
  return winner;
}

async function expectCovered(among: readonly Compactor[], aheadMs: number): Promise<void> {
  for (const each of among) {
    const done = each.all('done').length;
    each.order({ kind: 'compact', aheadMs });
    await each.heard('done', done + 1);
    expect(each.all('done').at(-1)!.coveredTo).toBe(MESSAGES.length);
  }
}

describe(`same range once: ${PROCESSES} processes`, () => {
  test('ask the summarizer once, and all know its summary', async () => {
    const winner = await race(all, 0);
    winner.order({ kind: 'answer', text: 'Notes.' });
    await winner.heard('done', 1);
    await expectCovered(all, TWO_MINUTES);
    expect(askedBy()).toEqual([winner]);
    expect(winner.all('asked')).toHaveLength(1);
  });

  test('ask it once more, and not twice, when the one that asked is killed', async () => {
    const dead = await race(all, 0);
    await dead.kill();
    const others = all.filter((each) => each !== dead);
    const winner = await race(others, TWO_MINUTES);
    winner.order({ kind: 'answer', text: 'Notes.' });
    await winner.heard('done', 2);
    await expectCovered(others, 2 * TWO_MINUTES);
    expect(new Set(askedBy())).toEqual(new Set([dead, winner]));
    expect(winner.all('asked')).toHaveLength(1);
  });
});
