/**
 * `npm run torture`: the reliability tests in their long form, seeded, with progress and a table at the end, name by name.
 * `npm run torture -- crash-kill one-session` picks names, with a dash for a space; `SEED=7 npm run torture` repeats a run.
 * `--short` repeats a tenth as often.
 */
import { availableParallelism } from 'node:os';
import { startVitest } from 'vitest/node';
import { NAMES, patternOf } from './names.ts';
import { Tally } from './tally.ts';

const names = Object.keys(NAMES);
const isShort = process.argv.includes('--short');
const asked = process.argv.slice(2).filter((argument) => argument !== '--short');
const unknown = asked.find((name) => !find(name));
if (unknown !== undefined) {
  console.error(`torture: '${unknown}' is not a reliability test; there are ${names.join(', ')}.`);
  process.exit(2);
}
const wanted = asked.length > 0 ? asked.map((name) => find(name)!) : names;

process.env['TORTURE'] = isShort ? '0.1' : '1';
process.env['SEED'] ??= String(Date.now() % 1_000_000);
const { SEED } = process.env;
console.error(`seed ${SEED}`);

const tally = new Tally(wanted);
const vitest = await startVitest('test', [], {
  watch: false,
  reporters: [tally],
  testNamePattern: patternOf(wanted),
  testTimeout: 60 * 60_000,
  // Many of them wait for other processes, one for ten minutes: while one waits another runs. More would starve each other.
  maxWorkers: availableParallelism() + 1,
});
const stray = vitest.state.getUnhandledErrors();
for (const error of stray) console.error('outside of the tests:', error);
const broken = vitest.state.getTestModules().filter((module) => module.errors().length > 0);
for (const module of broken)
  console.error(module.moduleId, ...module.errors().map(({ stack, message }) => stack ?? message));
await vitest.close();

const { table, open } = tally.result();
console.log(table);
const holds = open.length === 0 && stray.length === 0 && broken.length === 0;
console.log(
  holds
    ? 'verdict: holds'
    : `verdict: does not hold${open.length > 0 ? ` (${open.join(', ')})` : ''}; SEED=${SEED} repeats it`,
);
process.exit(holds ? 0 : 1);

/** The test of a name as it is typed: dashes, spaces and capitals make no difference. */
function find(typed: string): string | undefined {
  const lettersOf = (name: string): string => name.toLowerCase().replaceAll(/[ -]/g, '');
  return names.find((name) => lettersOf(name) === lettersOf(typed));
}
