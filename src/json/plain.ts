import { isPlain } from './fault.ts';
import { setMember } from './value.ts';

/**
 * A deep copy of the arrays and plain objects of a value, without the checks of `copyJson`. All other objects, for example a `Date`, are
 * not copied; members that are `undefined` are dropped.
 *
 * @param path The place of `value`; after an error, the place that could not be read.
 * @throws The error of a getter or a proxy; a RangeError for a value that contains itself; a TypeError for a BigInt.
 */
export function copyPlain<T>(value: T, path: string[] = []): T {
  if (typeof value === 'bigint') throw new TypeError('it is a BigInt');
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
  const copy = Array.isArray(value) ? [] : {};
  for (const key of Object.keys(value)) {
    path.push(key);
    const member = (value as Record<string, unknown>)[key];
    if (member !== undefined || Array.isArray(copy)) setMember(copy, key, copyPlain(member, path));
    path.pop();
  }
  return copy as T;
}
