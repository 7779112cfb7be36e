import { countSame } from './count-same.ts';
import { findFault, isPlain, JsonValueError } from './fault.ts';
import { FlatElements } from './flat-elements.ts';
import { alignEqual } from './patch/align.ts';
import { copyNested, getMember, isOwn, setMember } from './value.ts';

type Members = Record<string, unknown>;

/**
 * A copy of `value` that reuses the parts of `base`: a part that equals its counterpart in `base` is the same object (or string); only the
 * rest is copied. So a version of a document takes only the memory of its changes, and a later comparison with `base` stops at identical
 * objects. When both are equal the result is `base` itself, with its order of members.
 *
 * `base` must be an earlier result of this function or of `copyJson`. Neither it nor the result may ever be changed, because they share
 * objects. Array elements are matched by position, and after removals and insertions by their new position.
 *
 * @throws JsonValueError as `copyJson` does.
 */
export function shareJson<T>(base: unknown, value: T): T {
  try {
    return share(base, value, 0) as T;
  } catch (error) {
    throw (error instanceof JsonValueError && findFault(value)) || error;
  }
}

/** The recursion goes no deeper than `base`, so it ends even if `value` contains itself. */
function share(base: unknown, value: unknown, depth: number): unknown {
  if (base === value && value !== undefined) return base === 0 ? value : base;
  if (typeof base !== 'object' || typeof value !== 'object' || base === null || value === null) {
    return copyNested(value, depth);
  }
  if (Array.isArray(value)) {
    return Array.isArray(base) && isPlain(value) ? shareElements(base, value, depth + 1) : copyNested(value, depth);
  }
  return Array.isArray(base) || !isPlain(value) ? copyNested(value, depth) : shareMembers(base, value, depth + 1);
}

// Values are nearly always equal, so nothing is allocated before the first difference.

function shareMembers(base: object, value: object, depth: number): object {
  let result: Members | undefined;
  let count = 0;
  for (const key in value) {
    if (!isOwn(value, key)) continue;
    const member = (value as Members)[key];
    if (member === undefined) continue;
    const known = getMember(base, key);
    const shared = known === member && typeof known === 'string' ? known : share(known, member, depth);
    if (!result && !isSame(known, shared)) result = firstMembers(base, value, count);
    if (result) setMember(result, key, shared);
    count++;
  }
  if (result) return result;
  return count === Object.keys(base).length ? base : firstMembers(base, value, count);
}

/** The first `count` members of `value`, taken from `base`. */
function firstMembers(base: object, value: object, count: number): Members {
  const result: Members = {};
  let left = count;
  for (const key in value) {
    if (left === 0) break;
    if (!isOwn(value, key) || (value as Members)[key] === undefined) continue;
    setMember(result, key, getMember(base, key));
    left--;
  }
  return result;
}

/** Arrays of at least this length are compared by their flat elements. */
const LONG = 64;

/** The flat elements of the array that was shared last, by the array's first object. */
const flatElements = new WeakMap<object, FlatElements>();

function shareElements(base: readonly unknown[], value: readonly unknown[], depth: number): readonly unknown[] {
  const first = base.length < LONG ? undefined : base[0];
  // Elements that were read frozen are saved as the same objects and need no comparison.
  if (typeof first !== 'object' || first === null || first === value[0]) return shareFrom(0, base, value, depth);
  const known = flatElements.get(first);
  const result = shareFrom(known?.countEqual(base, value) ?? 0, base, value, depth);
  if (result[0] !== first) return result;
  const flat = known ?? new FlatElements();
  if (!known) flatElements.set(first, flat);
  flat.follow(result, Math.max(0, result.length - base.length));
  return result;
}

/** @param equal The number of elements at the head of both that are known to be equal. */
function shareFrom(
  equal: number,
  base: readonly unknown[],
  value: readonly unknown[],
  depth: number,
): readonly unknown[] {
  // Nearly always identical objects, up to the first new one.
  let index = Math.max(equal, countSame(base, value));
  while (index < value.length && index < base.length && matches(base[index], value[index])) index++;
  if (index === value.length && index === base.length) return base;
  // `base` may be frozen, and V8 copies a whole frozen array much faster than a part of it.
  const result: unknown[] = index === base.length ? [...base] : base.slice(0, index);
  const start = index;
  const moved = alignElements(base, value, start);
  // The place in `base` of what goes with `value[index]`.
  let at = index;
  for (let next = 0; index < value.length; index++, at++) {
    const match = moved[next];
    if (match && start + match.j === index) {
      at = start + match.i;
      next++;
    }
    result.push(share(base[at], value[index], depth));
  }
  return result;
}

/** Equal objects among the elements from `start` on. Not searched where elements cost nothing to share: behind the end of `base`, and for scalars. */
function alignElements(
  base: readonly unknown[],
  value: readonly unknown[],
  start: number,
): ReturnType<typeof alignEqual> {
  if (start === base.length || typeof value[start] !== 'object') return [];
  return alignEqual(base.slice(start), value.slice(start));
}

/**
 * Whether sharing would return `base` itself. Faster than `share`, because it builds no result: nearly all messages of a session are
 * unchanged. May return `false` for equal values.
 */
function matches(base: unknown, value: unknown): boolean {
  if (base === value) return isSame(base, value);
  if (typeof base !== 'object' || typeof value !== 'object' || base === null || value === null) return false;
  if (!isPlain(value) || Array.isArray(base) !== Array.isArray(value)) return false;
  return Array.isArray(value)
    ? elementsMatch(base as unknown[], value)
    : membersMatch(base as Members, value as Members);
}

function elementsMatch(base: readonly unknown[], value: readonly unknown[]): boolean {
  if (base.length !== value.length) return false;
  for (let index = 0; index < value.length; index++) {
    if (!matches(base[index], value[index])) return false;
  }
  return true;
}

// Does not distinguish own and inherited members: both sides inherit the same ones. Except `__proto__`, which may be an own member of one.
function membersMatch(base: Members, value: Members): boolean {
  let unmatched = 0;
  for (const key in value) {
    const member = value[key];
    if (member === undefined) continue;
    if (typeof member === 'string' ? base[key] !== member : !matches(base[key], member)) return false;
    if (key === '__proto__') return false;
    unmatched++;
  }
  for (const _ in base) unmatched--;
  return unmatched === 0;
}

/** Whether sharing returned the value of `base`; `-0` and `0` are different values. */
function isSame(known: unknown, shared: unknown): boolean {
  return known === shared && (known !== 0 || Object.is(known, shared));
}
