import type { Json } from '../../../src/json/value.ts';
import type { Random } from '../../support/random.ts';

export const PLAIN_KEYS: readonly string[] = ['a', 'b', 'c', 'id', 'text', 'role', 'content', 'items'];

export const HOSTILE_KEYS: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'toJSON',
  'length',
  'then',
  '',
  '-',
  '0',
  '01',
  '-1',
  'a.b',
  'a/b',
  '~',
  '~0',
  '~1',
  '/',
  '"',
  '\\',
  '\u0000',
  '\ud83d\ude00',
  '\ud800',
  '\udc00',
  ' ',
  'é',
];

const SCALARS: readonly Json[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  -1.5,
  1e21,
  5e-324,
  Number.MAX_SAFE_INTEGER,
  '',
  'a',
  'text',
  '\u0000',
  '\ud800',
  '\u2028 "quoted" \\',
  '\ud83d\ude00',
  'a somewhat longer piece of text, so that replacing it has a price',
];

export class Generator {
  readonly #random: Random;
  readonly #keys: readonly string[];

  constructor(random: Random, keys: readonly string[]) {
    this.#random = random;
    this.#keys = keys;
  }

  value(depth = 0): Json {
    const kind = this.#random.next();
    if (depth > 4 || kind < 0.4) return this.#random.pick(SCALARS);
    const size = this.#random.below(depth === 0 ? 7 : 5);
    if (kind < 0.7) return Array.from({ length: size }, () => this.value(depth + 1));
    const object: { [key: string]: Json } = {};
    for (let count = 0; count < size; count++) define(object, this.#random.pick(this.#keys), this.value(depth + 1));
    return object;
  }

  /** A copy of `value` with a few things added, removed, moved or replaced in it. */
  edited(value: Json): Json {
    let result = structuredClone(value);
    for (let count = 1 + this.#random.below(4); count > 0; count--) result = this.#editOnce(result, 0);
    return result;
  }

  #editOnce(value: Json, depth: number): Json {
    if (typeof value !== 'object' || value === null || this.#random.next() < 0.05) return this.value(depth);
    if (Array.isArray(value)) this.#editArray(value, depth);
    else this.#editObject(value, depth);
    return value;
  }

  #editArray(array: Json[], depth: number): void {
    const at = this.#random.below(array.length + 1);
    const kind = this.#random.below(5);
    if (kind === 0) array.splice(at, 0, this.value(depth + 1));
    else if (kind === 1) array.push(this.value(depth + 1));
    else if (kind === 2) array.splice(at, 1 + this.#random.below(2));
    else if (kind === 3) array.push(...array.splice(at, 1));
    else if (at < array.length) array[at] = this.#editOnce(array[at]!, depth + 1);
  }

  #editObject(object: { [key: string]: Json }, depth: number): void {
    const keys = Object.keys(object);
    const kind = this.#random.below(3);
    if (kind === 0 || keys.length === 0) define(object, this.#random.pick(this.#keys), this.value(depth + 1));
    else if (kind === 1) delete object[this.#random.pick(keys)];
    else {
      const key = this.#random.pick(keys);
      define(object, key, this.#editOnce(object[key]!, depth + 1));
    }
  }
}

/** Sets an own member, `__proto__` included. */
export function define(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Freezes a value deeply, so that a write to it throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}

/** Arrays nested `depth` deep: `[]` is one deep, `[[]]` two. */
export function nestedArrays(depth: number): Json {
  let value: Json = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
}

/** Objects nested `depth` deep. */
export function nestedObjects(depth: number): Json {
  let value: Json = {};
  for (let level = 1; level < depth; level++) value = { a: value };
  return value;
}

/** Calls `action` from `frames` stack frames further down. */
export function fromDeepStack<T>(frames: number, action: () => T): T {
  return frames === 0 ? action() : fromDeepStack(frames - 1, action);
}
