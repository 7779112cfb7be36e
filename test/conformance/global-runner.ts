import type { Runner } from './options.ts';

/** @param kit The function that needs it, for the message. */
export function globalRunner(kit: string): Runner {
  const { describe, it, test } = globalThis as Partial<Runner> & { test?: Runner['it'] };
  const define = it ?? test;
  if (!describe || !define) {
    throw new Error(`${kit} finds no describe and it; pass those of your test runner as runner: { describe, it }.`);
  }
  return { describe, it: define };
}
