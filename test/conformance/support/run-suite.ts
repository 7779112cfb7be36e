import type { Runner } from '../options.ts';

/** The result of one test of the suite. */
export interface Result {
  subject: string;
  test: string;
  /** Why it failed; missing if it passed. */
  error?: unknown;
}

interface Test {
  subject: string;
  name: string;
  body(): Promise<void>;
}

const LONGEST_MS = 60_000;

/** Runs the suite without a test runner, once and without the second run under a tenant prefix. Returns the result of each test. */
export async function runSuite<Options extends { runner?: Runner }>(
  options: Options,
  define: (options: Options) => void,
): Promise<Result[]> {
  const tests = collect(options, define);
  const results: Result[] = [];
  for (const test of tests) {
    const result: Result = { subject: test.subject, test: test.name };
    results.push(result);
    try {
      await withoutStrays(() => within(LONGEST_MS, test.body()));
    } catch (error) {
      result.error = error;
    }
  }
  return results;
}

/** Makes an uncaught error fail the running test instead of ending the process. */
async function withoutStrays(body: () => Promise<void>): Promise<void> {
  const events = ['unhandledRejection', 'uncaughtException'] as const;
  const others = events.map((event) => process.rawListeners(event) as (() => void)[]);
  const strays: unknown[] = [];
  const note = (error: unknown): void => void strays.push(error);
  for (const event of events) process.removeAllListeners(event).on(event, note);
  try {
    await body();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    for (const [i, event] of events.entries()) {
      process.removeListener(event, note);
      for (const listener of others[i]!) process.on(event, listener);
    }
  }
  if (strays.length > 0) throw strays[0];
}

/** Returns the subjects in which a test failed. */
export function caughtBy(results: readonly Result[]): string[] {
  return [...new Set(results.filter((result) => 'error' in result).map((result) => result.subject))];
}

function collect<Options extends { runner?: Runner }>(options: Options, define: (options: Options) => void): Test[] {
  const tests: Test[] = [];
  const path: string[] = [];
  const runner = {
    describe(name: string, body: () => void): void {
      path.push(name);
      body();
      path.pop();
    },
    it(name: string, body: () => Promise<void>): void {
      tests.push({ subject: path.at(-1)!, name, body });
    },
  };
  define({ ...options, runner });
  // The same tests are repeated under a tenant prefix.
  const isSecond = (test: Test, i: number): boolean =>
    tests.findIndex((other) => other.subject === test.subject && other.name === test.name) < i;
  return tests.filter((test, i) => !isSecond(test, i));
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
