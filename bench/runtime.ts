/**
 * The agent turn: `chat.send()` on an agent with the in-memory store, compared with Genkit's agent, a bare `ai.generate` with the same history,
 * and only the parts of Genkit that every agent needs.
 */
import { spread, type Spread } from './measure.ts';
import { Contender } from './race.ts';
import type { Figure, Report } from './report.ts';
import type { RuntimeRequest, RuntimeSpec } from './runtime-contender.ts';

const SCRIPT = new URL('./runtime-contender.ts', import.meta.url);
const SPECS: RuntimeSpec[] = [
  { name: 'ours', kind: 'ours' },
  { name: 'genkit', kind: 'genkit' },
  { name: 'generate', kind: 'generate' },
  { name: 'pieces', kind: 'pieces' },
];

const CHAT = 100;
/** Chats that are played before the first measurement, so that all code is compiled. */
const WARM_UP = 40;
const CHATS = 25;
/** The turns around the last are timed this many at a time, like the turns of a chat, so that garbage collection is included. */
const BATCH = 20;
const BATCHES = 10;
const MOST_OF_GENERATE = 1.5;

type Runner = Contender<RuntimeRequest>;

export async function benchRuntime(report: Report, turns: number): Promise<void> {
  const runners: Runner[] = [];
  try {
    for (const spec of SPECS) runners.push(await Contender.start<RuntimeRequest>(spec, SCRIPT));
    const first = Math.max(0, turns - (BATCH * BATCHES) / 2);
    report.start('agent turns', WARM_UP + CHATS + 1 + BATCHES);
    const chats = await takeTurns(runners, WARM_UP + CHATS, { turns: CHAT, chat: 'new' }, report);
    const overChat = chats.map((times) => spread(times.slice(WARM_UP).map((ms) => ms / CHAT)));
    report.add(...figures(`agent turn over a ${CHAT}-turn chat`, overChat));
    await takeTurns(runners, 1, { turns: first, chat: 'long' }, report);
    const long = await takeTurns(runners, BATCHES, { turns: BATCH, chat: 'long' }, report);
    const around = long.map((times) => spread(times.map((ms) => ms / BATCH)));
    report.add(...figures(`agent turn around turn ${turns}`, around));
  } finally {
    await Promise.all(runners.map((runner) => runner.stop()));
  }
}

/** The times of each runner. The runners take turns, in alternating order. */
async function takeTurns(
  runners: readonly Runner[],
  rounds: number,
  request: RuntimeRequest,
  report: Report,
): Promise<number[][]> {
  const times: number[][] = runners.map(() => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...runners.keys()];
    for (const i of round % 2 === 0 ? order : order.toReversed()) times[i]!.push(await runners[i]!.ask(request));
    report.progress(1);
  }
  return times;
}

function figures(name: string, [ours, genkit, generate, pieces]: Spread[]): Figure[] {
  const figure = { name, unit: 'ms', ours: ours! } as const;
  return [
    { ...figure, theirs: genkit! },
    { ...figure, theirs: generate!, peer: 'bare generate', goal: { atMostOfTheirs: MOST_OF_GENERATE } },
    // The minimum for every agent. It shows how much of the goal is left.
    { ...figure, theirs: pieces!, peer: "Genkit's pieces of an agent" },
  ];
}
