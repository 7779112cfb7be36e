/** The store turn: `getSnapshot({ sessionId })`, then `saveSnapshot` of the next state with the leaf as parent. */
import { join } from 'node:path';
import type { ContenderSpec } from './contender.ts';
import { bytesAtRest, makeFolder, single, spread, type Spread } from './measure.ts';
import { race, withContenders, type Contender } from './race.ts';
import type { Figure, Report } from './report.ts';

/** Turn numbers of the figures. Each figure is the median of the turns before it, including a checkpoint. */
const MARKS = [10, 100, 500, 1000, 2000];
const WINDOW = 25;
/** The repetitions of measurements outside of the race. */
const SAMPLES = 15;
/** The goals apply to a session of this many turns. */
const LONG = 1000;
const MOST = { memory: 1 / 15, fast: 1 / 20, full: 1 / 10, cold: 1 / 4 };

function at(contender: Contender, mark: number): Spread {
  return spread(contender.times.slice(Math.max(0, mark - WINDOW), mark));
}

function compare(label: string, ours: Contender, theirs: Contender, turns: number, goal: number): Figure[] {
  return MARKS.filter((mark) => mark <= turns).map((mark) => ({
    name: `${label}, store turn ${mark}`,
    unit: 'ms' as const,
    ours: at(ours, mark),
    theirs: at(theirs, mark),
    ...(mark === LONG && { goal: { atMostOfTheirs: goal } }),
  }));
}

async function repeated(count: number, measure: () => Promise<number>): Promise<Spread> {
  const samples: number[] = [];
  for (let i = 0; i < count; i++) samples.push(await measure());
  return spread(samples);
}

/** Other kinds of turns at the end of the session: resumed by snapshot, with an access to the state, and on a store object with empty caches. */
async function otherTurns(label: string, ours: Contender, theirs: Contender, turns: number): Promise<Figure[]> {
  const cold = (contender: Contender) => repeated(SAMPLES, () => contender.ask({ do: 'turn', cold: true }));
  const bySnapshot = (contender: Contender) =>
    repeated(SAMPLES, () => contender.ask({ do: 'turn', resumeBy: 'snapshotId' }));
  const looking = (contender: Contender) => repeated(SAMPLES, () => contender.ask({ do: 'turn', looks: true }));
  return [
    {
      name: `${label}, after the last turn, by snapshotId`,
      unit: 'ms',
      ours: await bySnapshot(ours),
      theirs: await bySnapshot(theirs),
    },
    {
      name: `${label}, after the last turn, and the state looked at`,
      unit: 'ms',
      ours: await looking(ours),
      theirs: await looking(theirs),
    },
    {
      name: `${label}, after the last turn, cold`,
      unit: 'ms',
      ours: await cold(ours),
      theirs: await cold(theirs),
      ...(turns >= LONG && { goal: { atMostOfTheirs: MOST.cold } }),
    },
  ];
}

export async function benchInMemory(report: Report, turns: number): Promise<void> {
  const specs: ContenderSpec[] = [
    { name: 'ours', kind: 'memory' },
    { name: 'ours, cloned', kind: 'memory', states: 'cloned' },
    { name: 'genkit', kind: 'genkit-memory' },
  ];
  await withContenders(specs, async (contenders) => {
    const [ours, cloned, genkit] = contenders as [Contender, Contender, Contender];
    report.start('in memory', turns);
    await race(contenders, turns, report);
    report.add(...compare('in memory', ours, genkit, turns, MOST.memory));
    report.add(...compare('in memory, states of new objects', cloned, genkit, turns, MOST.memory));
    report.chart({
      file: 'memory',
      title: 'a store turn in memory',
      unit: 'ms',
      series: [
        { who: 'ours', values: ours.times },
        { who: 'Genkit', values: genkit.times },
      ],
    });
    const information = await ours.ask({ do: 'information' });
    report.add({
      name: `in memory, heap for a byte of new information after ${turns} turns`,
      unit: 'bytes',
      ours: single((await ours.ask({ do: 'heap' })) / information),
      theirs: single((await genkit.ask({ do: 'heap' })) / information),
      goal: { atMost: 3 },
    });
  });
}

export async function benchFile(report: Report, turns: number): Promise<void> {
  const folder = makeFolder();
  await withContenders(fileSpecs(folder, {}), async (contenders) => {
    const [fast, full, genkit] = contenders as [Contender, Contender, Contender];
    report.start('files', turns);
    await race(contenders, turns, report);
    report.add(...compare("files, 'fast'", fast, genkit, turns, MOST.fast));
    report.add(...compare("files, 'full'", full, genkit, turns, MOST.full));
    report.chart({
      file: 'files',
      title: 'a store turn on files',
      unit: 'ms',
      series: [
        { who: "ours, durability 'full'", values: full.times },
        { who: "ours, durability 'fast'", values: fast.times },
        { who: 'Genkit, not flushed', values: genkit.times },
      ],
    });
    await addSizes(report, folder, turns, await fast.ask({ do: 'information' }));
    report.add(...(await otherTurns("files, 'fast'", fast, genkit, turns)));
  });
  await benchBranchCheck(report, folder);
  await benchClonedStates(report, turns);
  await benchBlocking(report, turns);
  const prunedFolder = makeFolder();
  await withContenders(fileSpecs(prunedFolder, { maxPersistedChainLength: 20 }), async (contenders) => {
    const [fast, full, genkit] = contenders as [Contender, Contender, Contender];
    report.start('files, pruned to 20', turns);
    await race(contenders, turns, report);
    report.add(...compare("files pruned to 20, 'fast'", fast, genkit, turns, MOST.fast));
    report.add(...compare("files pruned to 20, 'full'", full, genkit, turns, MOST.full));
  });
}

/** The same turns, if all objects of a state are new each time. */
async function benchClonedStates(report: Report, turns: number): Promise<void> {
  const specs = fileSpecs(makeFolder(), {}).map((spec): ContenderSpec => ({ ...spec, states: 'cloned' }));
  await withContenders(specs, async (contenders) => {
    const [fast, full, genkit] = contenders as [Contender, Contender, Contender];
    report.start('files, states of new objects', turns);
    await race(contenders, turns, report);
    report.add(...compare("files, 'fast', states of new objects", fast, genkit, turns, MOST.fast));
    report.add(...compare("files, 'full', states of new objects", full, genkit, turns, MOST.full));
  });
}

/** How long one save blocks the event loop. */
async function benchBlocking(report: Report, turns: number): Promise<void> {
  await withContenders(fileSpecs(makeFolder(), {}), async (contenders) => {
    report.start('files, blocked event loop', turns);
    await race(contenders, turns, report, { watches: true });
    const [fast, full, genkit] = contenders.map(({ times }) => spread(times)) as [Spread, Spread, Spread];
    for (const [label, ours] of [
      ["files, 'fast'", fast],
      ["files, 'full'", full],
    ] as const) {
      report.add(
        { name: `${label}, event loop blocked by a save`, unit: 'ms', ours, theirs: genkit },
        {
          name: `${label}, event loop blocked by a save, longest of ${turns} turns`,
          unit: 'ms',
          ours: single(ours.max),
          theirs: single(genkit.max),
          goal: { atMostOfTheirs: 1 },
        },
      );
    }
  });
}

function fileSpecs(folder: string, options: Record<string, unknown>): ContenderSpec[] {
  return [
    { name: 'fast', kind: 'file', folder: join(folder, 'fast'), options: { ...options, durability: 'fast' } },
    { name: 'full', kind: 'file', folder: join(folder, 'full'), options: { ...options, durability: 'full' } },
    { name: 'genkit', kind: 'genkit-file', folder: join(folder, 'genkit'), options },
  ];
}

async function addSizes(report: Report, folder: string, turns: number, information: number): Promise<void> {
  const ours = await bytesAtRest(join(folder, 'fast'));
  const theirs = await bytesAtRest(join(folder, 'genkit'));
  for (const [what, key] of [
    ['bytes at rest', 'bytes'],
    ['disk blocks', 'onDisk'],
  ] as const) {
    report.add({
      name: `files, ${what} for a byte of new information after ${turns} turns`,
      unit: 'bytes',
      ours: single(ours[key] / information),
      theirs: single(theirs[key] / information),
      goal: { atMost: 3 },
    });
  }
}

/** A `sessionId` lookup with and without `rejectBranchingSessions`, on the session of the turns. */
async function benchBranchCheck(report: Report, folder: string): Promise<void> {
  const options = { rejectBranchingSessions: true };
  const specs: ContenderSpec[] = [
    { name: 'strict', kind: 'file', folder: join(folder, 'fast'), options },
    { name: 'lenient', kind: 'file', folder: join(folder, 'fast') },
    { name: 'genkit', kind: 'genkit-file', folder: join(folder, 'genkit'), options },
  ];
  await withContenders(specs, async (contenders) => {
    const [strict, lenient, genkit] = contenders as [Contender, Contender, Contender];
    const lookup = (contender: Contender) => contender.ask({ do: 'lookup' });
    const ours = await repeated(SAMPLES, () => lookup(strict));
    const without = await repeated(SAMPLES, () => lookup(lenient));
    const theirs = await repeated(1, () => lookup(genkit));
    report.add(
      { name: 'files, lookup that refuses branches', unit: 'ms', ours, theirs },
      {
        name: 'files, the same beside one that does not refuse',
        unit: 'ms',
        ours,
        theirs: without,
        peer: 'ours',
        goal: { atMostOfTheirs: 1.5 },
      },
    );
  });
}

/** How many other sessions are made in one step of the progress bar. */
const CROWD_STEP = 1000;

/** One session alone, and the same session among many others of the tenant. */
export async function benchCrowd(report: Report, sessions: number): Promise<void> {
  const turns = 100;
  const folder = makeFolder();
  for (const [label, kind] of [
    ['in memory', 'memory'],
    ['files', 'file'],
  ] as const) {
    const options = kind === 'file' ? { durability: 'fast' } : {};
    const specs = ['alone', 'crowded'].map((name) => ({ name, kind, folder: join(folder, kind, name), options }));
    await withContenders(specs, async (contenders) => {
      const [alone, crowded] = contenders as [Contender, Contender];
      report.start(`${label}, among ${sessions} others`, sessions + turns);
      for (let from = 0; from < sessions; from += CROWD_STEP) {
        const to = Math.min(from + CROWD_STEP, sessions);
        await crowded.ask({ do: 'crowd', from, to });
        report.progress(to - from);
      }
      await race(contenders, turns, report);
      report.add({
        name: `${label}, store turn ${turns} among ${sessions} other sessions, beside alone`,
        unit: 'ms',
        ours: spread(crowded.times.slice(-40)),
        theirs: spread(alone.times.slice(-40)),
        peer: 'alone',
        goal: { atMostOfTheirs: 1.2 },
      });
    });
  }
}
