/** Load over HTTP: many sessions at once on one server, compared with Genkit's `expressHandler` and stores. */
import { randomUUID } from 'node:crypto';
import { useEmulator } from './firestore.ts';
import type { LoadClientRequest } from './load-client.ts';
import type { LoadServerRequest, LoadServerSpec } from './load-server.ts';
import { makeFolder, single, spread } from './measure.ts';
import { Contender } from './race.ts';
import type { Figure, Report } from './report.ts';

const SERVER = new URL('./load-server.ts', import.meta.url);
const CLIENT = new URL('./load-client.ts', import.meta.url);

const STORES = ['memory', 'file', 'firestore'] as const;
const SIZES = [
  { sessions: 50, turns: 100 },
  { sessions: 100, turns: 20 },
  { sessions: 300, turns: 10 },
];
/** With this many `--turns` the sessions have their standard lengths; with fewer turns they are shorter. */
const STANDARD_TURNS = 1000;
/** Played on each server before its measurement, so that its code is compiled. */
const WARM_UP = { sessions: 50, turns: 6 };
const ROUNDS = 3;
/** The goal for the longest sessions: at most this share of Genkit's time. */
const MOST_AT_LONG = 0.5;
const MOST_PROCESSOR_MS = 1.5;

type Who = LoadServerSpec['who'];
type Size = (typeof SIZES)[number];

/** The cost of one play; all but `memory` and `failures` in ms. */
interface Load {
  aTurn: number;
  median: number;
  p99: number;
  processor: number;
  memory: number;
  failures: number;
}

export async function benchLoad(report: Report, turns: number): Promise<void> {
  const client = await Contender.start<LoadClientRequest>({}, CLIENT);
  try {
    for (const store of STORES) {
      if (store === 'firestore') await useEmulator();
      for (const size of SIZES) {
        const scaled = { ...size, turns: Math.max(2, Math.round((size.turns * turns) / STANDARD_TURNS)) };
        report.start(`load, ${store}, ${scaled.sessions} x ${scaled.turns}`, ROUNDS * 2);
        const loads: Record<Who, Load[]> = { ours: [], genkit: [] };
        for (let round = 0; round < ROUNDS; round++) {
          const order: Who[] = round % 2 === 0 ? ['ours', 'genkit'] : ['genkit', 'ours'];
          for (const who of order) {
            loads[who].push(await playOnNewServer(client, { who, store }, scaled));
            report.progress(1);
          }
        }
        report.add(...figures(store, scaled, loads, size === SIZES[0]));
      }
    }
  } finally {
    await client.stop();
  }
}

async function playOnNewServer(
  client: Contender<LoadClientRequest>,
  what: Pick<LoadServerSpec, 'who' | 'store'>,
  { sessions, turns }: Size,
): Promise<Load> {
  const spec: LoadServerSpec = { ...what, folder: makeFolder(), projectId: `demo-${randomUUID()}` };
  const server = await Contender.start<LoadServerRequest>(spec, SERVER);
  try {
    const port = await server.ask('port');
    await client.ask({ do: 'play', port, ...WARM_UP });
    const before = await server.ask('processor');
    const ms = await client.ask({ do: 'play', port, sessions, turns });
    const processor = (await server.ask('processor')) - before;
    const count = sessions * turns;
    return {
      aTurn: ms / count,
      median: await client.ask({ do: 'quantile', share: 0.5 }),
      p99: await client.ask({ do: 'quantile', share: 0.99 }),
      processor: processor / count,
      memory: (await server.ask('memory')) / 1e6,
      failures: await client.ask({ do: 'failures' }),
    };
  } finally {
    await server.stop();
  }
}

function figures(
  store: LoadServerSpec['store'],
  { sessions, turns }: Size,
  loads: Record<Who, Load[]>,
  isLong: boolean,
): Figure[] {
  const name = `load ${sessions} x ${turns}, ${store}`;
  const of = (what: keyof Load) => ({
    ours: spread(loads.ours.map((load) => load[what])),
    theirs: spread(loads.genkit.map((load) => load[what])),
  });
  const perSecond = (who: Who) => single(1000 / spread(loads[who].map(({ aTurn }) => aTurn)).median);
  const failures = (who: Who) => single(loads[who].reduce((sum, load) => sum + load.failures, 0));
  return [
    { name: `${name}: turns a second`, unit: '1/s', ours: perSecond('ours'), theirs: perSecond('genkit') },
    {
      name: `${name}: time of all by turns`,
      unit: 'ms',
      ...of('aTurn'),
      goal: { atMostOfTheirs: isLong ? MOST_AT_LONG : 1 },
    },
    { name: `${name}: a turn, median`, unit: 'ms', ...of('median') },
    { name: `${name}: a turn, 99th percentile`, unit: 'ms', ...of('p99'), goal: { atMostOfTheirs: 1 } },
    {
      name: `${name}: processor time a turn`,
      unit: 'ms',
      ...of('processor'),
      ...(store === 'memory' && { goal: { atMost: MOST_PROCESSOR_MS } }),
    },
    { name: `${name}: memory at the end`, unit: 'MB', ...of('memory') },
    {
      name: `${name}: failures`,
      unit: 'turns',
      ours: failures('ours'),
      theirs: failures('genkit'),
      goal: { atMost: 0 },
    },
  ];
}
