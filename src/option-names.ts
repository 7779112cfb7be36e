/**
 * The sentence about an option that there is not: what was probably meant, and all that there are. This file runs in a browser.
 */
export function unknownOption(owner: string, name: string, known: readonly string[]): string {
  const meant = known.find((option) => isNear(name.toLowerCase(), option.toLowerCase()));
  const all = `has ${known.join(', ')}.`;
  return `${owner} has no option '${name}'${meant === undefined ? `; it ${all}` : `: did you mean '${meant}'? It ${all}`}`;
}

/** Whether two names differ in two letters at most, and in less than half of them; or the longer one begins with the other. */
function isNear(name: string, option: string): boolean {
  const [short, long] = name.length < option.length ? [name, option] : [option, name];
  if (short.length > 3 && long.startsWith(short)) return true;
  return short.length > 2 && distance(name, option) <= Math.min(2, Math.floor(short.length / 2));
}

/** How many letters are to be put in, left out or replaced to make one name of the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const replaced = row[j]! + (from[i] === to[j] ? 0 : 1);
      next.push(Math.min(replaced, row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row[to.length]!;
}
