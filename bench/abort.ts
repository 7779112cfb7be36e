/** The time from the save of `aborted` to the watcher's callback: in one process, and from one process to another on the same files. */
import { join } from 'node:path';
import type { ContenderSpec } from './contender.ts';
import { makeFolder, spread, type Spread } from './measure.ts';
import { withContenders, type Contender } from './race.ts';
import type { Report } from './report.ts';

/** The turns of the aborted session. */
const TURNS = 100;
const ROUNDS = 25;
/** The first rounds start the watch on the folder and compile the code. */
const WARM_UP = 3;

/** The contender that saves and the contender that watches; the same one, except in figures about two processes. */
type Pair = readonly [saver: Contender, watcher: Contender];

export async function benchAbort(report: Report): Promise<void> {
  const memory: ContenderSpec[] = [
    { name: 'ours', kind: 'memory' },
    { name: 'genkit', kind: 'genkit-memory' },
  ];
  await withContenders(memory, async ([ours, genkit]) => {
    await compare(report, 'in memory, abort to watcher', [ours!, ours!], [genkit!, genkit!]);
  });
  const folder = makeFolder();
  // Genkit's store never flushes.
  const files = (['saver', 'watcher'] as const).flatMap((role): ContenderSpec[] => [
    { name: `ours, ${role}`, kind: 'file', folder: join(folder, 'ours'), options: { durability: 'fast' } },
    { name: `genkit, ${role}`, kind: 'genkit-file', folder: join(folder, 'genkit') },
  ]);
  await withContenders(files, async (contenders) => {
    const [ours, genkit, ourWatcher, genkitWatcher] = contenders as [Contender, Contender, Contender, Contender];
    await compare(report, "files, 'fast', abort to watcher, one process", [ours, ours], [genkit, genkit]);
    await compare(
      report,
      "files, 'fast', abort to watcher, two processes",
      [ours, ourWatcher],
      [genkit, genkitWatcher],
    );
  });
}

async function compare(report: Report, name: string, ours: Pair, theirs: Pair): Promise<void> {
  report.start(name, TURNS + ROUNDS);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [saver] of [ours, theirs]) await saver.ask({ do: 'turn' });
    report.progress(1);
  }
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const [saver, watcher] = side === 0 ? ours : theirs;
      times[side]!.push(await once(saver, watcher, `${name}-${round}`.replaceAll(/[ ,']+/g, '-')));
    }
    report.progress(1);
  }
  const [a, b] = times.map((samples) => spread(samples.slice(WARM_UP))) as [Spread, Spread];
  report.add({ name, unit: 'ms', ours: a, theirs: b });
}

async function once(saver: Contender, watcher: Contender, snapshotId: string): Promise<number> {
  await saver.ask({ do: 'pend', snapshotId });
  await watcher.ask({ do: 'watch', snapshotId });
  const saved = await saver.ask({ do: 'abort', snapshotId });
  return (await watcher.ask({ do: 'heard' })) - saved;
}
