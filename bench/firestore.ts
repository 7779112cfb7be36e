/** The Firestore store and Genkit's own, on the emulator: the costs of a turn, counted on the wire, and its time. */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore as GenkitStore } from '@genkit-ai/google-cloud/beta';
import type { SessionStore } from 'genkit/beta';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { measureAtRest } from '../test/stores/firestore/support/at-rest.ts';
import { difference, trafficOf, trafficSoFar, type Traffic } from '../test/stores/firestore/support/transport.ts';
import { startEmulator } from '../test/support/emulator.ts';
import { spread, timed, type Spread } from './measure.ts';
import type { Figure, Report } from './report.ts';
import { completedSnapshot, Workload } from './workload.ts';

type By = 'sessionId' | 'snapshotId';
type Goal = NonNullable<Figure['goal']>;

/** A store under test, with the times of its turns. */
class Runner {
  readonly name: 'ours' | 'genkit';
  readonly projectId = `demo-${randomUUID()}`;
  readonly db = new Firestore({ projectId: this.projectId });
  workload = new Workload();
  readonly turns: Turn[] = [];
  readonly #by: By;
  readonly #isCold: boolean;
  #store: SessionStore;
  #leaf: string | undefined;
  #played = 0;

  constructor(name: Runner['name'], options: { by: By; isCold: boolean }) {
    this.name = name;
    this.#by = options.by;
    this.#isCold = options.isCold;
    this.#store = this.open();
  }

  open(): SessionStore {
    return this.name === 'ours' ? new FirestoreSessionStore({ db: this.db }) : new GenkitStore({ db: this.db });
  }

  /** Begins another session with the next turn. */
  begin(): void {
    this.workload = new Workload({ sessionId: randomUUID() });
    this.#leaf = undefined;
  }

  /** Plays a turn of the workload. Returns its ms. */
  turn(): Promise<number> {
    if (this.#isCold) this.#store = this.open();
    const state = flat(this.workload.next());
    const leaf = this.#leaf;
    const id = `turn-${++this.#played}`;
    const next = completedSnapshot(state, leaf);
    this.#leaf = id;
    return timed(async () => {
      const lookup =
        this.#by === 'sessionId' || leaf === undefined ? { sessionId: state.sessionId! } : { snapshotId: leaf };
      await this.#store.getSnapshot(lookup);
      await this.#store.saveSnapshot(id, () => next);
    });
  }

  /** Plays a turn and adds its cost to {@link turns}. */
  async countedTurn(): Promise<void> {
    let ms = 0;
    const used = await trafficOf(async () => {
      ms = await this.turn();
    });
    this.turns.push({ ...used, ms });
  }

  mean(of: (turn: Traffic) => number, from = 0, to = this.turns.length): number {
    const some = this.turns.slice(from, to);
    return some.reduce((sum, turn) => sum + of(turn), 0) / some.length;
  }

  worst(of: (turn: Traffic) => number): number {
    return Math.max(...this.turns.map(of));
  }

  /** The times of the turns around the given one. */
  msAround(turn: number): number[] {
    return this.turns.slice(Math.max(0, turn - 6), turn + 5).map(({ ms }) => ms);
  }
}

/** The cost of a turn. */
type Turn = Traffic & { ms: number };

type State = ReturnType<Workload['state']>;
type Message = NonNullable<State['messages']>[number];
const flattened = new WeakMap<Message, Message>();

/** The same state with the rows of tool responses as objects: Genkit's store can't save an array in an array. */
function flat(state: State): State {
  const messages = state.messages!.map((message) => {
    const known = flattened.get(message) ?? (flatten(message, false) as Message);
    flattened.set(message, known);
    return known;
  });
  return { ...state, messages };
}

function flatten(value: unknown, isInArray: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value) && !isInArray) return value.map((element) => flatten(element, true));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, flatten(member, false)]));
}

export async function benchFirestore(report: Report, turns: number): Promise<void> {
  await useEmulator();
  await short(report);
  const [ours, genkit] = await play(report, turns, { by: 'sessionId', isCold: false });
  costs(report, ours, genkit, turns);
  charts(report, ours, genkit);
  await rest(report, ours, genkit, turns);
  await cold(report, Math.min(turns, 200));
  await heartbeat(report, ours, genkit);
  await Promise.all([ours.db.terminate(), genkit.db.terminate()]);
}

/** An abort in a session of this many turns, at most 500. */
export async function benchFirestoreAbort(report: Report, turns: number): Promise<void> {
  await useEmulator();
  const [ours, genkit] = await play(report, Math.min(turns, 500), { by: 'sessionId', isCold: false });
  await abort(report, ours, genkit);
  await Promise.all([ours.db.terminate(), genkit.db.terminate()]);
}

let emulator: Awaited<ReturnType<typeof startEmulator>> | undefined;

/** One emulator for all parts, until {@link stopEmulator}, because clients cache its address. */
export async function useEmulator(): Promise<void> {
  if (emulator) return;
  emulator = await startEmulator();
  process.env['FIRESTORE_EMULATOR_HOST'] = emulator.host;
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  // The first request of a new emulator takes longer than the timeout of a store.
  const db = new Firestore({ projectId: 'demo-warm-up' });
  await db.doc('warm/up').get();
  await db.terminate();
}

/** Stops the emulator after all parts on Firestore. */
export async function stopEmulator(): Promise<void> {
  await emulator?.stop();
  emulator = undefined;
}

/** Short sessions that are played before the first measurement, so that the code of both stores and of the emulator is compiled. */
const WARM_UP = 100;
const SHORT_SESSIONS = 60;

/** The turns around the tenth of many sessions. Without the counter, which takes part of a millisecond for each request. */
async function short(report: Report): Promise<void> {
  const runners = (['ours', 'genkit'] as const).map((name) => new Runner(name, { by: 'sessionId', isCold: false }));
  report.start('Firestore, short sessions', WARM_UP + SHORT_SESSIONS);
  const times: number[][] = runners.map(() => []);
  for (let session = 0; session < WARM_UP + SHORT_SESSIONS; session++) {
    for (const runner of runners) runner.begin();
    for (let turn = 1; turn <= 15; turn++) {
      for (const i of turn % 2 === 0 ? [0, 1] : [1, 0]) {
        const ms = await runners[i]!.turn();
        if (session >= WARM_UP && turn > 4) times[i]!.push(ms);
      }
    }
    report.progress(1);
  }
  const [ours, theirs] = times.map(spread) as [Spread, Spread];
  report.add({ name: 'Firestore, a turn, around turn 10', unit: 'ms', ours, theirs, goal: { atMostOfTheirs: 1 / 3 } });
  await Promise.all(runners.map(({ db }) => db.terminate()));
}

async function play(report: Report, turns: number, options: { by: By; isCold: boolean }): Promise<[Runner, Runner]> {
  const runners: [Runner, Runner] = [new Runner('ours', options), new Runner('genkit', options)];
  report.start(`Firestore, ${options.isCold ? 'cold' : 'warm'}, by ${options.by}`, turns);
  for (let turn = 0; turn < turns; turn++) {
    for (const runner of turn % 2 === 0 ? runners : runners.toReversed()) await runner.countedTurn();
    report.progress(1);
  }
  return runners;
}

function costs(report: Report, ours: Runner, genkit: Runner, turns: number): void {
  const both = (name: string, unit: Figure['unit'], of: (runner: Runner) => number[], goal: Goal): void =>
    report.add({ name, unit, ours: spread(of(ours)), theirs: spread(of(genkit)), goal });
  both('Firestore, billed reads a turn, mean, warm', 'reads', (one) => [one.mean((turn) => turn.reads)], { atMost: 2 });
  both('Firestore, billed reads, worst turn', 'reads', (one) => [one.worst((turn) => turn.reads)], { atMost: 13 });
  both('Firestore, billed writes a turn, mean', 'writes', (one) => [one.mean((turn) => turn.writes)], { atMost: 2.2 });
  both('Firestore, requests a turn, mean', 'requests', (one) => [one.mean((turn) => turn.rpcs)], { atMost: 2.2 });
  const middle = Math.round(turns / 2);
  const sent = (one: Runner): number[] => [one.mean((turn) => turn.bytes, middle - 12, middle + 13) / 1000];
  both(`Firestore, on the wire a turn, around turn ${middle}`, 'KB', sent, { atMost: 100 });
  both(`Firestore, a turn, around turn ${turns}`, 'ms', (one) => one.msAround(turns), { atMostOfTheirs: 1 / 20 });
}

/** The cost and the time of each turn. */
function charts(report: Report, ours: Runner, genkit: Runner): void {
  const chart = (file: string, title: string, unit: Figure['unit'], of: (turn: Turn) => number): void =>
    report.chart({
      file,
      title,
      unit,
      series: [
        { who: 'ours', values: ours.turns.map(of) },
        { who: 'Genkit', values: genkit.turns.map(of) },
      ],
    });
  chart('firestore-reads', 'billed for a store turn on Firestore', 'reads', (turn) => turn.reads);
  chart('firestore', 'a store turn on Firestore (emulator)', 'ms', (turn) => turn.ms);
}

async function rest(report: Report, ours: Runner, genkit: Runner, turns: number): Promise<void> {
  const a = await measureAtRest(ours.db);
  const b = await measureAtRest(genkit.db, { hasExemptions: false });
  const figure = (name: string, unit: Figure['unit'], values: [number, number], atMost: number): void =>
    report.add({ name, unit, ours: spread([values[0]]), theirs: spread([values[1]]), goal: { atMost } });
  figure(`Firestore, at rest after ${turns} turns`, 'MB', [a.bytes / 1e6, b.bytes / 1e6], 5.4);
  figure(`Firestore, index entries after ${turns} turns`, 'entries', [a.indexEntries, b.indexEntries], 8000);
}

async function cold(report: Report, turns: number): Promise<void> {
  for (const by of ['sessionId', 'snapshotId'] as const) {
    const [ours, genkit] = await play(report, turns, { by, isCold: true });
    const reads = (runner: Runner): number => runner.mean((turn) => turn.reads);
    const atMost = 4 + JSON.stringify(ours.workload.state()).length / 2 / (512 * 1024);
    const name = `Firestore, billed reads a turn, mean, cold, by ${by}, ${turns} turns`;
    report.add({ name, unit: 'reads', ours: spread([reads(ours)]), theirs: spread([reads(genkit)]), goal: { atMost } });
    await Promise.all([ours.db.terminate(), genkit.db.terminate()]);
  }
}

/** A heartbeat of a running turn, in the session that was played. */
async function heartbeat(report: Report, ours: Runner, genkit: Runner): Promise<void> {
  const used: Traffic[] = [];
  for (const runner of [ours, genkit]) {
    const store = runner.open();
    const parentId = `turn-${runner.turns.length}`;
    const state = flat(runner.workload.state());
    for (let turn = 0; turn < 24; turn++) {
      const parent = turn === 0 ? parentId : `beat-${turn - 1}`;
      const status = turn === 23 ? 'pending' : 'completed';
      await store.saveSnapshot(`beat-${turn}`, () => ({ ...completedSnapshot(state, parent), status }));
    }
    const beat = (): Promise<unknown> =>
      store.saveSnapshot('beat-23', (current) => ({ ...current!, heartbeatAt: new Date().toISOString() }));
    used.push(await trafficOf(beat));
  }
  for (const unit of ['reads', 'writes'] as const) {
    const [a, b] = used.map((one) => spread([one[unit]])) as [Spread, Spread];
    report.add({ name: 'Firestore, a heartbeat', unit, ours: a, theirs: b, goal: { atMost: 1 } });
  }
}

/** The time from the save of `aborted` by one client to the callback in another. */
async function abort(report: Report, ours: Runner, genkit: Runner): Promise<void> {
  const times: Spread[] = [];
  const reads: Spread[] = [];
  for (const runner of [ours, genkit]) {
    const saver = runner.open();
    const other = new Firestore({ projectId: runner.projectId });
    const watcher: SessionStore =
      runner.name === 'ours' ? new FirestoreSessionStore({ db: other }) : new GenkitStore({ db: other });
    const samples: number[] = [];
    const read: number[] = [];
    const state = flat(runner.workload.state());
    for (let round = 0; round < 9; round++) {
      const id = `abort-${round}`;
      await saver.saveSnapshot(id, () => ({
        ...completedSnapshot(state, `turn-${runner.turns.length}`),
        status: 'pending',
      }));
      let tell: (status: string | undefined) => void = () => {};
      const heard = (wanted: string): Promise<void> =>
        new Promise((resolve) => (tell = (status) => status === wanted && resolve()));
      const first = heard('pending');
      const end = watcher.onSnapshotStateChange!(id, (news) => tell(news.status));
      await first;
      const before = trafficSoFar();
      const start = performance.now();
      const last = heard('aborted');
      await saver.saveSnapshot(id, (current) => ({ ...current!, status: 'aborted' }));
      await last;
      samples.push(performance.now() - start);
      read.push(difference(trafficSoFar(), before).reads);
      if (end) end();
    }
    times.push(spread(samples));
    reads.push(spread(read));
    await (watcher as Partial<FirestoreSessionStore>).close?.();
    await other.terminate();
  }
  const name = 'Firestore, abort to watcher, across two clients';
  report.add({ name, unit: 'ms', ours: times[0]!, theirs: times[1]!, goal: { atMostOfTheirs: 1 / 3 } });
  report.add({ name: 'Firestore, an abort and its telling', unit: 'reads', ours: reads[0]!, theirs: reads[1]! });
}
