import Table from 'cli-table3';
import pc from 'picocolors';
import type { TestError } from 'vitest';
import type { Reporter, TestCase } from 'vitest/node';
import { NAMES, namesOf } from './names.ts';

interface Line {
  passed: number;
  failed: number;
  skipped: number;
  ms: number;
}

/** Counts the tests that were asked for, name by name, and tells of each as it ends. */
export class Tally implements Reporter {
  readonly #lines: ReadonlyMap<string, Line>;
  #done = 0;

  /** @param wanted Names of reliability tests. */
  constructor(wanted: readonly string[]) {
    this.#lines = new Map(wanted.map((name) => [name, { passed: 0, failed: 0, skipped: 0, ms: 0 }]));
  }

  onTestCaseReady(test: TestCase): void {
    if (process.stderr.isTTY)
      process.stderr.write(`\r\u001B[K${this.#done} done; running ${test.fullName.slice(0, 90)}`);
  }

  onTestCaseResult(test: TestCase): void {
    const lines = namesOf(test.fullName).flatMap((name) => this.#lines.get(name) ?? []);
    const { state, errors = [] } = test.result();
    if (lines.length === 0 || state === 'pending') return;
    this.#done++;
    const ms = test.diagnostic()?.duration ?? 0;
    for (const line of lines) {
      line[state]++;
      line.ms += ms;
    }
    const mark = state === 'passed' ? pc.green('pass') : state === 'failed' ? pc.red('FAIL') : pc.yellow('skip');
    console.error(`${process.stderr.isTTY ? '\r\u001B[K' : ''}${mark} ${seconds(ms).padStart(7)} s  ${test.fullName}`);
    for (const error of errors) tell(error);
  }

  /** The table, and names of which no test was run or one failed. */
  result(): { table: string; open: string[] } {
    const table = new Table({
      head: ['test', '', 'passed', 'failed', 'skipped', 's'],
      style: { head: [], border: [] },
    });
    const open: string[] = [];
    for (const [name, { passed, failed, skipped, ms }] of this.#lines) {
      const isMissing = passed + failed === 0;
      if (isMissing || failed > 0) open.push(name);
      table.push([name, NAMES[name], isMissing ? 'missing' : passed, failed, skipped, seconds(ms)]);
    }
    return { table: table.toString(), open };
  }
}

/** What a test failed with, and what that was caused by: a counterexample alone does not say what went wrong with it. */
function tell({ stack, message, diff, cause }: TestError): void {
  // Of a test that took too long the stack has no message.
  console.error(...(stack?.includes(message) ? [] : [message]), stack ?? '', diff ?? '');
  if (!cause) return;
  console.error('caused by:');
  tell(cause);
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
