import type { Runner } from './options.ts';

/** @param kit The function that needs the runner, for the error message. */
export function globalRunner(kit: string): Runner {
  const { describe, it, test } = globalThis as Partial<Runner> & { test?: Runner['it'] };
  const define = it ?? test;
  if (!describe || !define) {
    throw new Error(
      `${kit} found no global describe and it. Pass the functions of your test runner as runner: { describe, it }.`,
    );
  }
  return { describe, it: define };
}
