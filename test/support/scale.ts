/** Whether the long forms run: `npm run torture` sets `TORTURE=1`. */
const isTorture = !['', '0', 'false', undefined].includes(process.env['TORTURE']);

/** How often a repeated test repeats: `short` in `npm test`, `long` under `TORTURE=1`. */
export function scale(short: number, long: number): number {
  return isTorture ? long : short;
}

/** Seed of everything random in the tests: the environment's `SEED`, else always the same. */
export const seed = Number(process.env['SEED']) || 1;

/** Parameters of a fast-check run. */
export function random(short: number, long: number): { seed: number; numRuns: number } {
  return { seed, numRuns: scale(short, long) };
}
