import { isKind, KIND } from '../error-kind.ts';
import { formatPointer } from './pointer.ts';

/** How many containers may enclose a value, including the outermost. Limits the recursion of every walk in this folder. */
export const MAX_DEPTH = 2000;

const LONGEST_SHOWN_PATH = 200;

/** A value that JSON cannot hold. */
export class JsonValueError extends Error {
  /** `JsonValueError`. */
  override readonly name = 'JsonValueError';
  /** RFC 6901 pointer to the invalid value; empty for the whole value. */
  readonly path: string;
  /** The reason, and what to store instead. */
  readonly reason: string;
  /** @internal */
  readonly [KIND] = 'JsonValueError';

  constructor(path: string, reason: string) {
    super(`Not a JSON value ${path === '' ? 'at the root' : `at "${shorten(path)}"`}: ${reason}.`);
    this.path = path;
    this.reason = reason;
  }

  /** Like `instanceof`, but also true for errors of another copy of this package in the process. */
  static isInstance(error: unknown): error is JsonValueError {
    return isKind(error, 'JsonValueError');
  }
}

/** A pointer or key, shortened for messages. */
export function shorten(path: string): string {
  return path.length > LONGEST_SHOWN_PATH ? `${path.slice(0, LONGEST_SHOWN_PATH)}…` : path;
}

/**
 * Whether an object is a plain one or a plain array, of any realm: its prototype is `null`, a root prototype, or the
 * `Array.prototype` of its realm (which is itself an array; the prototype of an array subclass is not).
 */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(value)) return prototype === Array.prototype || Array.isArray(prototype);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether a value is an object, and not an array. */
export function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is a plain object, and not an array. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return isMembers(value) && isPlain(value);
}

/** The object with these members; for a value that has none, an object without members. */
export function membersOf(value: unknown): Record<string, unknown> {
  return isMembers(value) ? value : {};
}

/**
 * Finds the first value in `value`, in document order, that JSON cannot represent. The fast walks only detect that there
 * is one; this slow walk tracks the path and the ancestors for the message.
 *
 * @param depth The number of containers that enclose `value`.
 */
export function findFault(value: unknown, depth = 0): JsonValueError | undefined {
  const tokens: (string | number)[] = [];
  const reason = faultIn(value, depth, tokens, new Map());
  return reason === undefined ? undefined : new JsonValueError(formatPointer(tokens), reason);
}

/** Returns the reason, and leaves the path of the invalid value in `tokens`; or `undefined`, with `tokens` unchanged. */
function faultIn(
  value: unknown,
  depth: number,
  tokens: (string | number)[],
  ancestors: Map<object, number>,
): string | undefined {
  try {
    return readFaultIn(value, depth, tokens, ancestors);
  } catch {
    return 'reading it throws an error, of a getter or a proxy; store plain data';
  }
}

function readFaultIn(
  value: unknown,
  depth: number,
  tokens: (string | number)[],
  ancestors: Map<object, number>,
): string | undefined {
  if (typeof value !== 'object' || value === null) return scalarFault(value);
  const ancestor = ancestors.get(value);
  if (ancestor !== undefined) {
    const place = shorten(formatPointer(tokens.slice(0, ancestor)));
    return `it contains itself (it is the object at "${place}"); store an id of it instead`;
  }
  if (!isPlain(value)) return `it is an instance of ${className(value)}; store a plain object, an array or a string`;
  if (depth >= MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels; flatten it or store it as a string`;
  ancestors.set(value, tokens.length);
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    tokens.push(key);
    const member = (value as Record<string | number, unknown>)[key];
    const isLeftOut = member === undefined && typeof key === 'string';
    const reason = isLeftOut ? undefined : faultIn(member, depth + 1, tokens, ancestors);
    if (reason !== undefined) return reason;
    tokens.pop();
  }
  ancestors.delete(value);
  return undefined;
}

function scalarFault(value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : `${value} is not a JSON number; store null or a string`;
    case 'undefined':
      return 'it is undefined (or a hole in an array); store null or leave it out';
    case 'bigint':
      return 'it is a BigInt; store a string or a number';
    case 'function':
      return 'it is a function; store the data that it stands for';
    case 'symbol':
      return 'it is a symbol; store a string';
    default:
      return undefined;
  }
}

function className(value: object): string {
  const constructor: unknown = (value as { constructor?: unknown }).constructor;
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class';
}
