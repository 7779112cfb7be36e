/** JSON values that stores are known to lose, and values that JSON can't represent. */

import type { ScopeRecord } from '../../../src/store/contract.ts';

/** Nests a value `depth` times. */
function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 'core';
  for (let level = 0; level < depth; level++) value = wrap(value);
  return value;
}

/** Returns a record with this own key, even for `__proto__`. */
export function keyed(key: string, value: unknown = { deep: [1] }): ScopeRecord {
  return Object.defineProperty({}, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Keys with a special meaning in a language, a path syntax or a database. */
const KEYS = [
  '. .. a.b a[0] ~ / ~0 ~1 a/b - $ $ref __name__ __id1__ ` * 0 01 -1 4294967296 \u00E9 e\u0301'.split(' '),
  '__proto__ constructor prototype toString valueOf hasOwnProperty toJSON then length'.split(' '),
  ['', ' ', '\u0000', '\uD83D\uDE00', '\uD800', '\uDFFF', '\u2028', 'k'.repeat(2000)],
].flat();

export const VALUES: readonly [name: string, value: unknown][] = [
  ['null', null],
  ['true', true],
  ['false', false],
  ['zero', 0],
  ['minus zero', -0],
  ['a fraction', 0.1],
  ['the largest number', Number.MAX_VALUE],
  ['the smallest number', Number.MIN_VALUE],
  ['a large integer', 2 ** 53 + 2],
  ['an exponent', 1e21],
  ['the empty string', ''],
  ['NUL', 'a\u0000b'],
  ['control characters', '\u0001\u001F\u007F\u0085'],
  ['line ends', '\r\n\n\r\u2028\u2029'],
  ['quotes and backslashes', '"\\" \\u0041 \\\\'],
  ['emoji', '👩‍👩‍👧‍👦🏳️‍🌈'],
  ['a lone high surrogate', 'a\uD800b'],
  ['a lone low surrogate', '\uDC00'],
  ['surrogates the wrong way round', '\uDC00\uD800'],
  ['a byte order mark', '\uFEFFtext'],
  ['composed and decomposed', '\u00E9 e\u0301'],
  ['right to left', 'שלום\u202Etxet'],
  ['text that looks like JSON', '{"a":[1,"\\u0000"]}'],
  ['text that looks like a date', '2026-01-02T03:04:05.678Z'],
  ['text that looks like a number', '1e999'],
  ['64 KiB of text', 'x'.repeat(65_536)],
  ['the empty array', []],
  ['the empty object', {}],
  ['arrays in arrays', [[], [[]], [[[1], [2, [3]]]]]],
  ['100 arrays deep', nested(100, (inner) => [inner])],
  ['500 objects deep', nested(500, (inner) => ({ inner }))],
  ['300 of both deep', nested(150, (inner) => [{ inner }])],
  ['nulls in an array', [null, null]],
  ['one of everything', [null, true, 0, -0, 1.5, '', 'a', [], {}, [{}], { a: [] }]],
  ['equal elements', [{ a: 1 }, { a: 1 }, { a: 1 }]],
  ['5,000 numbers', Array.from({ length: 5000 }, (_, i) => i)],
  ['1,000 members', Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key ${i}`, i]))],
  ['members with null', { a: null, b: { c: null } }],
  ['a patch', [{ op: 'replace', path: '/custom', value: 1 }]],
  ['a snapshot', { snapshotId: 'x', parentId: 'y', state: { messages: [] }, status: 'done' }],
  ...KEYS.map((key): [string, unknown] => [`the key ${JSON.stringify(key.slice(0, 20))}`, keyed(key)]),
  ['a nested __proto__', keyed('__proto__', keyed('__proto__', { polluted: true }))],
  ['the key __proto__ with a scalar', keyed('__proto__', 1)],
  ['keys that differ by case and form', { a: 1, A: 2, '\u00E9': 3, 'e\u0301': 4, ' a': 5, 'a ': 6 }],
];

class Money {
  amount = 1;
}

function holed(): unknown[] {
  const value: unknown[] = [1];
  value[2] = 3;
  return value;
}

function cycle(): object {
  const value: { self?: unknown } = {};
  value.self = [value];
  return value;
}

/** Values that JSON can't represent. Each is made again for each use, because some can't be shared. */
export const NO_VALUES: readonly [name: string, make: () => unknown][] = [
  ['a function', () => () => 1],
  ['a symbol', () => Symbol('s')],
  ['a BigInt', () => 1n],
  ['NaN', () => Number.NaN],
  ['Infinity', () => Infinity],
  ['minus Infinity', () => -Infinity],
  ['a cycle', cycle],
  ['a Date', () => new Date(0)],
  ['a Map', () => new Map([['a', 1]])],
  ['a Set', () => new Set([1])],
  ['a RegExp', () => /x/],
  ['a Uint8Array', () => new Uint8Array(2)],
  ['an Error', () => new Error('x')],
  ['a Promise', () => Promise.resolve(1)],
  ['a class’s instance', () => new Money()],
  ['a boxed string', () => Object('text')],
  ['undefined in an array', () => [1, undefined]],
  ['a hole in an array', holed],
  ['100,000 arrays deep', () => nested(100_000, (inner) => [inner])],
];
