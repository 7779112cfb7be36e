/**
 * `npm run torture`: the reliability tests in their long form, seeded, with progress and a table at the end, name by name.
 * `npm run torture -- D1 C3` picks names; `SEED=7 npm run torture` repeats a run.
 */
import Table from 'cli-table3';
import pc from 'picocolors';
import type { Reporter, TestCase } from 'vitest/node';
import { startVitest } from 'vitest/node';

/** A reliability name in a test's title, such as `D1 crash-kill`, or one of the kit's random tapes against its model. */
const NAME = /\b([CDFHIJRSX]\d|model)\b/;

interface Line {
  passed: number;
  failed: number;
  skipped: number;
  ms: number;
}

class Tally implements Reporter {
  readonly lines = new Map<string, Line>();
  #done = 0;

  onTestCaseReady(test: TestCase): void {
    if (process.stderr.isTTY)
      process.stderr.write(`\r\u001B[K${this.#done} done; running ${test.fullName.slice(0, 90)}`);
  }

  onTestCaseResult(test: TestCase): void {
    this.#done++;
    const name = NAME.exec(test.fullName)?.[1];
    if (!name) return;
    const line = this.lines.get(name) ?? { passed: 0, failed: 0, skipped: 0, ms: 0 };
    const { state } = test.result();
    if (state !== 'pending') line[state]++;
    line.ms += test.diagnostic()?.duration ?? 0;
    this.lines.set(name, line);
    const mark = state === 'passed' ? pc.green('pass') : state === 'failed' ? pc.red('FAIL') : pc.yellow('skip');
    console.error(`${process.stderr.isTTY ? '\r\u001B[K' : ''}${mark} ${test.fullName}`);
  }
}

const wanted = process.argv.slice(2);
const bad = wanted.filter((name) => !/^([CDFHIJRSX]\d|model)$/.test(name));
if (bad.length > 0) {
  console.error(
    `torture: '${bad[0]}' is no name of a reliability test; names look like D1 or C3, and there is 'model'.`,
  );
  process.exit(2);
}

process.env['TORTURE'] = '1';
process.env['SEED'] ??= String(Date.now() % 1_000_000);
console.error(`seed ${process.env['SEED']}`);

const tally = new Tally();
const vitest = await startVitest('test', [], {
  watch: false,
  reporters: [tally],
  testNamePattern: wanted.length > 0 ? `\\b(${wanted.join('|')})\\b` : NAME.source,
  testTimeout: 60 * 60_000,
  fileParallelism: false,
});
await vitest.close();

const table = new Table({ head: ['test', 'passed', 'failed', 'skipped', 's'], style: { head: [], border: [] } });
for (const [name, line] of [...tally.lines].toSorted(([a], [b]) => a.localeCompare(b))) {
  table.push([name, line.passed, line.failed, line.skipped, (line.ms / 1000).toFixed(1)]);
}
console.log(table.toString());
const totals = [...tally.lines.values()];
const failed = totals.reduce((sum, line) => sum + line.failed, 0);
const passed = totals.reduce((sum, line) => sum + line.passed, 0);
console.log(`${passed} passed, ${failed} failed`);
console.log(
  failed === 0 && passed > 0 ? 'verdict: holds' : `verdict: does not hold (SEED=${process.env['SEED']} repeats it)`,
);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
