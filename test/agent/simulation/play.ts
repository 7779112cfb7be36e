import type { SessionSnapshot } from 'genkit/beta';
import { handOverRuns, recoverRuns } from 'genkitx-agents';
import { runOf } from '../../../src/agent/run-lease.ts';
import { Random } from '../../support/random.ts';
import { Backend, type Commit } from './backend.ts';
import { letTheClockRun, pause, stopTheClock, untilDone } from './clock.ts';
import { contextOf, SimulatedProcess, type CallRecord } from './processes.ts';
import { makeScenario, type PlannedCall, type PlannedEvent, type PlannedTurn, type Scenario } from './scenario.ts';

/** The result of a seed. */
export interface Played {
  readonly scenario: Scenario;
  readonly calls: readonly CallRecord[];
  /** How often the agent's function ran each turn. */
  readonly runs: ReadonlyMap<string, number>;
  readonly commits: readonly Commit[];
  /** The snapshots at the end, in the store's order. */
  readonly snapshots: ReadonlyMap<string, readonly SessionSnapshot[]>;
  readonly leaves: ReadonlyMap<string, SessionSnapshot | undefined>;
  /** The count in the user's record. */
  readonly counted: number;
}

const LONGEST_MS = 3_600_000;
/** As long as a lease, and some heartbeats. */
const ROUND_MS = 8000;
/** More often than a run can be taken over. */
const ROUNDS = 10;

/** Plays the scenario of a seed, on a simulated clock, to the end of the last run. */
export async function play(seed: number): Promise<Played> {
  stopTheClock();
  try {
    const random = new Random(seed);
    const world = new World(random, makeScenario(random));
    return await untilDone(world.play(), LONGEST_MS);
  } finally {
    letTheClockRun();
  }
}

class World {
  readonly #scenario: Scenario;
  readonly #backend: Backend;
  readonly #processes: SimulatedProcess[];
  readonly #turns = new Map<string, PlannedTurn>();
  readonly #runs = new Map<string, number>();
  readonly #calls: CallRecord[] = [];
  /** Runs that a caller tried to abort. */
  readonly #aborted = new Set<string>();
  #numbers = 0;

  constructor(random: Random, scenario: Scenario) {
    this.#scenario = scenario;
    this.#backend = new Backend(random, scenario.faults, scenario.isWatched);
    this.#processes = Array.from({ length: scenario.processes }, () => this.#start());
  }

  async play(): Promise<Played> {
    await Promise.all(this.#scenario.events.map((event) => this.#happen(event)));
    this.#backend.calmDown();
    await this.#settleRuns();
    await this.#goOn();
    const { medium, commits } = this.#backend;
    const snapshots = new Map<string, SessionSnapshot[]>();
    const leaves = new Map<string, SessionSnapshot | undefined>();
    for (const sessionId of this.#scenario.sessions) {
      snapshots.set(sessionId, await this.#snapshotsOf(sessionId));
      leaves.set(sessionId, await medium.getSnapshot({ sessionId }));
    }
    const [record] = await medium.readScopes({ scopes: [{ scope: 'user', appName: 'simulation', userId: 'ada' }] });
    const counted = (record!['turns'] as number | undefined) ?? 0;
    return { scenario: this.#scenario, calls: this.#calls, runs: this.#runs, commits, snapshots, leaves, counted };
  }

  #start(): SimulatedProcess {
    return new SimulatedProcess(this.#backend, this.#scenario, this.#turns, (text) => {
      this.#runs.set(text, (this.#runs.get(text) ?? 0) + 1);
    });
  }

  async #happen(event: PlannedEvent): Promise<void> {
    await pause(event.atMs);
    const process = this.#processes[event.process]!;
    switch (event.kind) {
      case 'call':
        return this.#call(process, event.call);
      case 'abort':
        return this.#abort(process, event.sessionId);
      case 'recover':
        return this.#recover(process);
      case 'sleep':
        process.connection.sleep(event.ms);
        await pause(event.ms - 500);
        return this.#recover(this.#processes[(event.process + 1) % this.#processes.length]!);
      case 'leave':
        await unlessDead(process, handOverRuns(process.ai, { graceMs: event.graceMs }));
    }
    if (process.connection.isCut) return;
    process.kill();
    this.#processes[event.process] = this.#start();
  }

  async #call(process: SimulatedProcess, planned: PlannedCall): Promise<void> {
    for (const turn of planned.turns) this.#turns.set(turn.text, turn);
    this.#calls.push(await process.call(planned, ++this.#numbers));
  }

  /** A failure is expected, too. */
  #recover(process: SimulatedProcess): Promise<void> {
    return unlessDead(process, recoverRuns(process.ai, { context: contextOf(++this.#numbers) }));
  }

  async #abort(process: SimulatedProcess, sessionId: string): Promise<void> {
    const last = this.#calls.findLast(
      (call) => call.sessionId === sessionId && call.output?.finishReason === 'detached',
    );
    if (!last) return;
    this.#aborted.add(last.output!.snapshotId!);
    await unlessDead(process, process.agent.abort(last.output!.snapshotId!, { context: contextOf(++this.#numbers) }));
  }

  /** Live processes take over runs without a worker, until no run is open. */
  async #settleRuns(): Promise<void> {
    const { ai } = this.#processes[0]!;
    // The last requests of dead processes may still arrive.
    await pause(ROUND_MS);
    for (let round = 1; ; round++) {
      const all = await Promise.all(this.#scenario.sessions.map((sessionId) => this.#snapshotsOf(sessionId)));
      const running = all.flat().filter(({ status }) => status === 'pending');
      if (running.length === 0) return;
      await pause(ROUND_MS);
      // A run whose last turn a caller aborted when its process was dead is not found by the list.
      const hidden = round > ROUNDS ? running.filter((snapshot) => this.#aborted.has(runOf(snapshot)!.id)) : [];
      const snapshotIds = hidden.map(({ snapshotId }) => snapshotId);
      await recoverRuns(ai, { context: contextOf(0), ...(hidden.length > 0 && { snapshotIds }) });
    }
  }

  /** One more turn in each session. */
  async #goOn(): Promise<void> {
    for (const sessionId of this.#scenario.sessions) {
      const turns = [{ text: `last turn of ${sessionId}`, ms: 0, isFailing: false }];
      await this.#call(this.#start(), { sessionId, turns, isDetached: false });
    }
  }

  async #snapshotsOf(sessionId: string): Promise<SessionSnapshot[]> {
    const { medium } = this.#backend;
    const { items } = await medium.listSnapshots({ sessionId, limit: 1000 });
    return Promise.all(items.map(async ({ snapshotId }) => (await medium.getSnapshot({ snapshotId }))!));
  }
}

async function unlessDead(process: SimulatedProcess, work: Promise<unknown>): Promise<void> {
  await Promise.race([work.catch(() => {}), process.died]);
}
