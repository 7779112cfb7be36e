import { findFault, isPlain, JsonValueError, MAX_DEPTH } from './fault.ts';

export { JsonValueError, MAX_DEPTH } from './fault.ts';

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

type Members = Record<string, unknown>;

/** Real values are shallower than this. In deeper ones ancestors are tracked, so that a cycle is found before it is copied many times. */
const UNTRACKED_DEPTH = 32;

const LARGE_ARRAY = 100_000;

/**
 * A deep copy that shares nothing with `value` and holds only what JSON holds. Members that are `undefined` or keyed by
 * a symbol are dropped; `-0`, lone surrogates and keys such as `__proto__` are kept. An object that occurs several times
 * is copied each time.
 *
 * @throws JsonValueError, with the path, for anything else: functions, symbols, BigInt, NaN and the infinities,
 * `undefined` elements and holes of arrays, instances of classes (`Date`, `Map`, ...), cycles, and nesting deeper than
 * {@link MAX_DEPTH}.
 */
export function copyJson<T>(value: T): T {
  return copyNested(value, 0);
}

/** {@link copyJson} for a value that will be inside `depth` containers. Paths of errors begin at `value`. */
export function copyNested<T>(value: T, depth: number): T {
  if (isScalar(value)) return value;
  return explained(value, depth, () => copyContainer(mustBeObject(value), depth + 1, undefined) as T);
}

/** Refuses the same values as {@link copyNested}. Returns whether the value has a `-0`, which `JSON.stringify` would lose. */
export function inspectNested(value: unknown, depth: number): { negativeZero: boolean } {
  if (isScalar(value)) return { negativeZero: Object.is(value, -0) };
  return explained(value, depth, () => ({
    negativeZero: inspectContainer(mustBeObject(value), depth + 1, undefined),
  }));
}

/**
 * Whether two JSON values are equal. The order of members does not matter and an `undefined` member counts as absent;
 * `0` and `-0` differ, because a value must be returned as it was saved. Values that are not JSON are not refused.
 *
 * @throws JsonValueError when both are nested deeper than {@link MAX_DEPTH}.
 */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return a !== 0 || Object.is(a, b);
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  return containersEqual(a, b);
}

/** A separate function, because its closure allocates: `jsonEqual` allocates nothing for identical objects. */
function containersEqual(a: object, b: object): boolean {
  return explained(a, 0, () => equalContainers(a, b, 1));
}

/**
 * JSON text from which {@link parseJson} reads an equal value. Unlike `JSON.stringify` it writes `-0`, and refuses the
 * values that {@link copyJson} refuses instead of replacing them.
 */
export function stringifyJson(value: unknown): string {
  return inspectNested(value, 0).negativeZero ? writeJson(value) : JSON.stringify(value);
}

/**
 * JSON text with sorted members: the same for equal values, in any order of their members.
 *
 * @param replace As in `JSON.stringify`.
 */
export function canonicalJson(value: unknown, replace?: (name: string, member: unknown) => unknown): string {
  return JSON.stringify(value, (name, given: unknown) => {
    const member = replace ? replace(name, given) : given;
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/**
 * Reads JSON text. Keys such as `__proto__` become own members like any other.
 *
 * @throws SyntaxError when `text` is not JSON.
 */
export function parseJson(text: string): Json {
  return JSON.parse(text) as Json;
}

/** Sets an own member of any key: plain assignment would run the `__proto__` setter and miss a read-only inherited key. */
export function setMember(target: object, key: string, value: unknown): void {
  if (key in Object.prototype) {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    (target as Members)[key] = value;
  }
}

/** Faster than `Object.hasOwn`: inside a `for ... in` V8 removes the whole call. */
export function isOwn(value: object, key: string): boolean {
  return Object.prototype.hasOwnProperty.call(value, key);
}

/** The own member, or `undefined` when there is none. */
export function getMember(target: object, key: string): unknown {
  return isOwn(target, key) ? (target as Members)[key] : undefined;
}

function isScalar(value: unknown): boolean {
  if (typeof value === 'number') return value - value === 0;
  return typeof value === 'string' || typeof value === 'boolean' || value === null;
}

/** Runs a fast walk over `value`. If it refuses the value, a slow second walk finds the path and the reason. */
function explained<R>(value: unknown, depth: number, walk: () => R): R {
  try {
    return walk();
  } catch (error) {
    const fault = findFault(value, depth);
    if (fault) throw fault;
    // A getter may throw the first time only.
    throw error instanceof JsonValueError
      ? error
      : new JsonValueError('', 'reading it throws an error; store plain data');
  }
}

function refuse(): never {
  throw new JsonValueError('', `it cannot be stored, or is nested deeper than ${MAX_DEPTH} levels`);
}

function mustBeObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : refuse();
}

/** Called at depths where ancestors are tracked. */
function enter(value: object, depth: number, ancestors = new Set<object>()): Set<object> {
  if (depth > MAX_DEPTH || ancestors.has(value)) refuse();
  return ancestors.add(value);
}

// The walks below take one stack frame a level, arrays and objects in one function, because values may be MAX_DEPTH
// deep. They check members inline: a call for each would double the time.

function copyContainer(value: object, depth: number, above: Set<object> | undefined): object {
  const ancestors = depth > UNTRACKED_DEPTH ? enter(value, depth, above) : undefined;
  let copy: object;
  if (Array.isArray(value)) {
    const elements = slicePlain(value);
    for (let index = 0; index < elements.length; index++) {
      const element = elements[index];
      if (isScalar(element)) continue;
      if (typeof element !== 'object') refuse();
      elements[index] = copyContainer(element as object, depth + 1, ancestors);
    }
    copy = elements;
  } else {
    if (!isPlain(value)) refuse();
    const members: Members = {};
    for (const key in value) {
      if (!isOwn(value, key)) continue;
      let member = (value as Members)[key];
      if (!isScalar(member)) {
        if (member === undefined) continue;
        if (typeof member !== 'object') refuse();
        member = copyContainer(member as object, depth + 1, ancestors);
      }
      if (key === '__proto__') setMember(members, key, member);
      else members[key] = member;
    }
    copy = members;
  }
  ancestors?.delete(value);
  return copy;
}

/** A shallow copy in this realm. */
function slicePlain(array: unknown[]): unknown[] {
  // A sparse array may claim billions of elements; this stops at the first hole.
  if (array.length > LARGE_ARRAY && array.includes(undefined)) refuse();
  if (Object.getPrototypeOf(array) === Array.prototype) return array.slice();
  return isPlain(array) ? Array.prototype.slice.call(array) : refuse();
}

function inspectContainer(value: object, depth: number, above: Set<object> | undefined): boolean {
  const ancestors = depth > UNTRACKED_DEPTH ? enter(value, depth, above) : undefined;
  if (!isPlain(value)) refuse();
  let negativeZero = false;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const element: unknown = value[index];
      if (isScalar(element)) negativeZero ||= Object.is(element, -0);
      else if (inspectContainer(mustBeObject(element), depth + 1, ancestors)) negativeZero = true;
    }
  } else {
    for (const key in value) {
      if (!isOwn(value, key)) continue;
      const member = (value as Members)[key];
      if (isScalar(member)) negativeZero ||= Object.is(member, -0);
      else if (member !== undefined && inspectContainer(mustBeObject(member), depth + 1, ancestors))
        negativeZero = true;
    }
  }
  ancestors?.delete(value);
  return negativeZero;
}

function equalContainers(a: object, b: object, depth: number): boolean {
  if (depth > MAX_DEPTH) refuse();
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let index = 0; index < a.length; index++) {
      const x: unknown = a[index];
      const y: unknown = b[index];
      if (x === y) {
        if (x === 0 && !Object.is(x, y)) return false;
      } else if (typeof x !== 'object' || typeof y !== 'object' || x === null || y === null) return false;
      else if (!equalContainers(x, y, depth + 1)) return false;
    }
    return true;
  }
  if (Array.isArray(b)) return false;
  let members = 0;
  for (const key in a) {
    if (!isOwn(a, key)) continue;
    const x = (a as Members)[key];
    if (x === undefined) continue;
    // Inherited members may be read: only `__proto__` is a JSON value.
    const y = (b as Members)[key];
    if (x === y) {
      if (x === 0 && !Object.is(x, y)) return false;
    } else if (typeof x !== 'object' || typeof y !== 'object' || x === null || y === null) return false;
    else if (!equalContainers(x, y, depth + 1)) return false;
    if (key === '__proto__' && !isOwn(b, key)) return false;
    members++;
  }
  let unmatched = members;
  for (const key in b) {
    if (isOwn(b, key) && (b as Members)[key] !== undefined) unmatched--;
  }
  // A `Date` or a `Map` looks like an empty object.
  return unmatched === 0 && (members > 0 || (isPlain(a) && isPlain(b)));
}

/** Same as `JSON.stringify` except for `-0`. The value must have been checked. */
function writeJson(value: unknown): string {
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  if (Array.isArray(value)) {
    for (const element of value) text += `${text === '' ? '' : ','}${writeJson(element)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value)) {
    const member = (value as Members)[key];
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${writeJson(member)}`;
  }
  return `{${text}}`;
}
