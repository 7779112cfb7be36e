import { jsonEqual } from './value.ts';

/**
 * How many elements at the head of both arrays are the same. `Object.is` compares references only; `===` reads the objects from memory, to
 * find out whether they are numbers.
 */
export function countSame(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && Object.is(a[count], b[count])) count++;
  return count;
}

/** How many elements at the head of both arrays are equal as JSON. */
export function countEqual(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && jsonEqual(a[count], b[count])) count++;
  return count;
}
