// This file runs in a browser.

/** The longest delay of a timer, in ms. A longer one would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

/** The error message for an unknown option: suggests the most similar name, and lists all options. */
export function unknownOption(owner: string, name: string, known: readonly string[]): string {
  const meant = known.find((option) => isNear(name.toLowerCase(), option.toLowerCase()));
  const guess = meant === undefined ? '.' : `: did you mean '${meant}'?`;
  return `${owner} has no option '${name}'${guess} It has ${known.join(', ')}.`;
}

/** Whether two names differ in one place, by two letters at most and less than half of them; or the longer one begins with the other. */
function isNear(name: string, option: string): boolean {
  const [short, long] = name.length < option.length ? [name, option] : [option, name];
  if (short.length > 3 && long.startsWith(short)) return true;
  return short.length > 2 && distance(short, long) <= Math.min(2, Math.floor(short.length / 2));
}

/** How many letters of the longer name are left between the beginning and the end that both have. */
function distance(short: string, long: string): number {
  let start = 0;
  while (start < short.length && short[start] === long[start]) start++;
  let end = 0;
  while (end < short.length - start && short.at(-1 - end) === long.at(-1 - end)) end++;
  return long.length - start - end;
}
