/** How much of the long form of the tests runs: 1 in `npm run torture`, a part of it in its short form, 0 in `npm test`. */
const part = Number(process.env['TORTURE']) || 0;

/** Whether this is `npm run torture`, of any length: what only repeats with other options is defined there alone. */
export const isTorture = part > 0;

/** How often a repeated test repeats: `short` in `npm test`, `long` in `npm run torture`, in between in its short form. */
export function scale(short: number, long: number): number {
  return Math.round(short + (long - short) * part);
}

/** Seed of everything random in the tests: the environment's `SEED`, else always the same. */
export const seed = Number(process.env['SEED']) || 1;

/** Parameters of a fast-check run. */
export function random(short: number, long: number): { seed: number; numRuns: number } {
  return { seed, numRuns: scale(short, long) };
}
