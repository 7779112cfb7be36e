import { setMember } from './value.ts';

/*
 * Functions for immutable values: results of `copyJson` and `shareJson`, which are already checked.
 */

/** A deep copy that its owner may change. */
export function thaw<T>(value: T): T {
  return (typeof value === 'object' ? thawNested(value) : value) as T;
}

function thawNested(value: object | null): unknown {
  if (value === null) return value;
  if (Array.isArray(value)) {
    const elements: unknown[] = [...value];
    for (let index = 0; index < elements.length; index++) {
      const element = elements[index];
      if (typeof element === 'object') elements[index] = thawNested(element);
    }
    return elements;
  }
  const members: Record<string, unknown> = {};
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    const member = (value as Record<string, unknown>)[key];
    const copy = typeof member === 'object' ? thawNested(member) : member;
    if (key === '__proto__') setMember(members, key, copy);
    else members[key] = copy;
  }
  return members;
}

/** Freezes the value deeply and returns it. Skips parts that are already frozen. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  // A `for ... in` would make a string of each index.
  if (Array.isArray(value)) value.forEach(freeze);
  else for (const key in value) freeze(value[key]);
  return Object.freeze(value);
}
