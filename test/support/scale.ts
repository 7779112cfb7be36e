/** Whether the long forms run: `npm run torture` sets `TORTURE=1`. */
export const isTorture = !['', '0', 'false', undefined].includes(process.env['TORTURE']);

/** How often a repeated test repeats: `short` in `npm test`, `long` under `TORTURE=1`. */
export function scale(short: number, long: number): number {
  return isTorture ? long : short;
}
