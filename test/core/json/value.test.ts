import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import {
  copyJson,
  type Json,
  jsonEqual,
  JsonValueError,
  MAX_DEPTH,
  parseJson,
  stringifyJson,
} from '../../../src/json/value.ts';
import { KIND } from '../../../src/error-kind.ts';
import { define, fromDeepStack, HOSTILE_KEYS, nestedArrays, nestedObjects } from './generate.ts';

function withMember(key: string, value: unknown): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  define(object, key, value);
  return object;
}

/** The error that `action` throws; fails when there is none. */
function errorOf(action: () => unknown): JsonValueError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(JsonValueError);
    return error as JsonValueError;
  }
  throw new Error('it was not refused');
}

const VALUES: readonly Json[] = [
  null,
  true,
  false,
  0,
  -0,
  [-0, [0], { zero: -0 }],
  1.7976931348623157e308,
  5e-324,
  -1.5,
  '',
  'text',
  '\ud800',
  '\udc00 alone',
  'a\u0000b',
  '\ud83d\ude00',
  '\u2028\u2029',
  '"\\/\b\f\n\r\t\u001f\u007f',
  [],
  {},
  [[], [[]], {}],
  { '': { '': '' } },
  ...HOSTILE_KEYS.map((key) => withMember(key, { [key === '__proto__' ? 'a' : key]: -0 }) as Json),
  withMember('__proto__', withMember('__proto__', ['deep'])) as Json,
];

describe('a JSON value', () => {
  test.each(VALUES.map((value) => [stringifyJson(value), value]))('comes back as it was: %s', (text, value) => {
    expect(jsonEqual(copyJson(value), value)).toBe(true);
    expect(jsonEqual(parseJson(text), value)).toBe(true);
    expect(stringifyJson(parseJson(text))).toBe(text);
    expect(text).toBe(new TextDecoder().decode(new TextEncoder().encode(text)));
  });

  test('is the same as no other of those', () => {
    for (const [i, a] of VALUES.entries()) for (const [j, b] of VALUES.entries()) expect(jsonEqual(a, b)).toBe(i === j);
  });

  test('keeps an own __proto__ as a plain member, and nothing is inherited from it', () => {
    for (const make of [copyJson, (value: Json) => parseJson(stringifyJson(value))]) {
      const copy = make(parseJson('{"__proto__":{"admin":true},"a":-0}')) as Record<string, unknown>;
      expect(Object.keys(copy)).toEqual(['__proto__', 'a']);
      expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
      expect(copy['admin']).toBeUndefined();
      expect(Object.getOwnPropertyDescriptor(copy, '__proto__')).toMatchObject({ writable: true, configurable: true });
    }
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
  });
});

describe('copyJson', () => {
  test('shares nothing with the original, also where that holds one object twice', () => {
    const shared = { list: [1] };
    const copy = copyJson({ a: shared, b: shared });
    expect(copy).toEqual({ a: { list: [1] }, b: { list: [1] } });
    expect(copy.a).not.toBe(shared);
    expect(copy.a).not.toBe(copy.b);
    expect(copy.a.list).not.toBe(copy.b.list);
  });

  test('drops members that are undefined, keyed by a symbol, not enumerable or inherited', () => {
    const value = Object.create({ inherited: 1 }, { hidden: { value: 1 } }) as Record<PropertyKey, unknown>;
    Object.setPrototypeOf(value, Object.prototype);
    Object.assign(value, { a: 1, gone: undefined, [Symbol('s')]: 1, deep: { gone: undefined } });
    expect(stringifyJson(copyJson(value))).toBe('{"a":1,"deep":{}}');
    expect(Object.getOwnPropertySymbols(copyJson(value))).toEqual([]);
    expect(Object.keys(copyJson(value))).toEqual(['a', 'deep']);
  });

  test('accepts objects without a prototype and of other realms, and copies them as plain ones', () => {
    const foreign = runInNewContext('({ list: [1, { a: null }], toString: "x" })') as object;
    expect(copyJson(foreign)).toStrictEqual({ list: [1, { a: null }], toString: 'x' });
    const bare = Object.assign(Object.create(null) as object, { a: [1] });
    expect(copyJson(bare)).toStrictEqual({ a: [1] });
    expect(jsonEqual(foreign, copyJson(foreign))).toBe(true);
  });

  class Point {
    x = 1;
  }
  class List extends Array<unknown> {}
  test.each<[string, unknown, RegExp]>([
    ['a function', () => 1, /function/],
    ['a symbol', Symbol('s'), /symbol/],
    ['a BigInt', 1n, /BigInt/],
    ['NaN', Number.NaN, /NaN is not a JSON number/],
    ['Infinity', Number.POSITIVE_INFINITY, /Infinity is not/],
    ['-Infinity', Number.NEGATIVE_INFINITY, /-Infinity is not/],
    ['a Date', new Date(0), /instance of Date/],
    ['a Map', new Map(), /instance of Map/],
    ['a Set', new Set(), /instance of Set/],
    ['a RegExp', /x/, /instance of RegExp/],
    ['a typed array', new Uint8Array(2), /instance of Uint8Array/],
    ['a Buffer', Buffer.from('x'), /instance of Buffer/],
    ['an Error', new TypeError('x'), /instance of TypeError/],
    ['a boxed string', Object('x'), /instance of String/],
    ['a promise', Promise.resolve(), /instance of Promise/],
    ['an instance of a class', new Point(), /instance of Point/],
    ['an object that inherits from another', Object.create({ x: 1 }), /instance of Object/],
    ['an object whose class has no name', Object.create({ constructor: null }), /instance of a class/],
    ['an instance of an array subclass', List.from([1]), /instance of List/],
    ['a Date of another realm', runInNewContext('new Date(0)'), /instance of Date/],
  ])('refuses %s wherever it is, with its path', (_, culprit, reason) => {
    for (const [path, value] of [
      ['', culprit],
      ['/a/1', { fine: [{}], a: [0, culprit] }],
      ['/0/a~1b/~0', [{ 'a/b': { '~': culprit } }]],
      [
        `/deep${'/0'.repeat(99)}`,
        { deep: JSON.parse(`${'['.repeat(99)}0${']'.repeat(99)}`, (_, v) => (v === 0 ? culprit : v)) },
      ],
    ] as const) {
      for (const refuse of [copyJson, stringifyJson]) {
        const error = errorOf(() => refuse(value));
        expect(error.path).toBe(path);
        expect(error.reason).toMatch(reason);
        expect(error.message).toContain(error.reason);
      }
    }
  });

  test('refuses undefined elements and holes, and undefined itself', () => {
    expect(errorOf(() => copyJson({ a: [1, undefined] }))).toMatchObject({ path: '/a/1' });
    expect(errorOf(() => copyJson(Array(2)))).toMatchObject({ path: '/0' });
    const sparse: unknown[] = [1];
    sparse[4_000_000_000] = 1;
    expect(errorOf(() => copyJson({ sparse }))).toMatchObject({ path: '/sparse/1' });
    expect(errorOf(() => copyJson(undefined))).toMatchObject({ path: '' });
    expect(errorOf(() => stringifyJson(undefined)).reason).toMatch(/undefined/);
  });

  test('names the first fault in the order of the document', () => {
    expect(errorOf(() => copyJson({ a: { b: Number.NaN }, c: () => 1 })).path).toBe('/a/b');
  });

  test('creates errors that another copy of the package recognizes', () => {
    const error = errorOf(() => copyJson(1n));
    const elsewhere = Object.assign(new Error('x'), { [KIND]: 'JsonValueError' });
    expect([error, elsewhere, new Error('x'), null].map((it) => JsonValueError.isInstance(it))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('a value that contains itself', () => {
  test('is refused with the path of the second occurrence', () => {
    const value: Record<string, unknown> = { a: [{}] };
    (value['a'] as Record<string, unknown>[])[0]!['again'] = value['a'];
    for (const refuse of [copyJson, stringifyJson]) {
      const error = errorOf(() => refuse(value));
      expect(error.path).toBe('/a/0/again');
      expect(error.reason).toContain('the object at "/a"');
    }
    const list: unknown[] = [];
    list.push(list);
    expect(errorOf(() => copyJson(list)).path).toBe('/0');
  });

  test('is not copied over and over before it is noticed', () => {
    let reads = 0;
    const value: Record<string, unknown> = {};
    Object.defineProperty(value, 'counted', { enumerable: true, get: () => ++reads });
    value['self'] = value;
    errorOf(() => copyJson(value));
    expect(reads).toBeLessThan(100);
  });

  test('ends a comparison with an error rather than with an overflow of the stack', () => {
    const ring = () => {
      const value: Record<string, unknown> = {};
      value['self'] = value;
      return value;
    };
    expect(errorOf(() => jsonEqual(ring(), ring())).path).toBe('/self');
  });
});

describe(`nesting of ${MAX_DEPTH} levels`, () => {
  const walks: [string, (value: Json) => unknown][] = [
    ['copyJson', copyJson],
    ['stringifyJson', stringifyJson],
    ['stringifyJson with -0', (value) => stringifyJson(innermost(value, -0))],
    ['jsonEqual', (value) => jsonEqual(value, innermost(value))],
  ];

  /** A copy, made without recursion, with `inside` in the innermost container. */
  function innermost(value: Json, inside?: Json): Json {
    const keys: (0 | 'a')[] = [];
    let inner = value as { a?: Json } & Json[];
    for (let next = inner as Json | undefined; typeof next === 'object' && next !== null; next = inner[0] ?? inner.a) {
      inner = next as typeof inner;
      keys.push(Array.isArray(inner) ? 0 : 'a');
    }
    return keys.toReversed().reduce<Json | undefined>((copy, key) => {
      const members = copy === undefined ? [] : [copy];
      return key === 0 ? members : Object.fromEntries(members.map((member) => [key, member]));
    }, inside)!;
  }

  for (const [name, walk] of walks) {
    for (const nested of [nestedArrays, nestedObjects]) {
      test.each([100, MAX_DEPTH])(`is taken by ${name}, from a deep stack too (${nested.name}(%i))`, (depth) => {
        expect(() => fromDeepStack(1_000, () => walk(nested(depth)))).not.toThrow();
      });

      test.each([MAX_DEPTH + 1, 100_000])(`is the most that ${name} takes (${nested.name}(%i))`, (depth) => {
        const error = errorOf(() => walk(nested(depth)));
        expect(error.path.split('/')).toHaveLength(MAX_DEPTH + 1);
        expect(error.reason).toContain(`deeper than ${MAX_DEPTH}`);
        expect(error.message.length).toBeLessThan(500);
      });
    }
  }
});

describe('jsonEqual', () => {
  test('ignores the order of members, and members that are undefined', () => {
    expect(jsonEqual({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(jsonEqual({ a: 1, b: undefined }, { a: 1 })).toBe(true);
    expect(jsonEqual({ a: 1 }, { b: undefined, a: 1 })).toBe(true);
    expect(jsonEqual({ a: undefined }, { b: undefined })).toBe(true);
    expect(jsonEqual({ a: 1, b: undefined }, { a: 1, c: 1 })).toBe(false);
    expect(jsonEqual({ a: undefined, b: 1 }, { a: 1, b: 1 })).toBe(false);
  });

  test('distinguishes values that only look alike', () => {
    const different: [unknown, unknown][] = [
      [0, -0],
      [{ a: 0 }, { a: -0 }],
      [[0], [-0]],
      [0, false],
      ['', null],
      ['1', 1],
      [[], {}],
      [null, {}],
      [[1], { 0: 1 }],
      [{ 0: 1, length: 1 }, [1]],
      [[1, 2], [1]],
      [{}, parseJson('{"__proto__":{}}')],
      [{}, parseJson('{"__proto__":null}')],
      [{ a: 1 }, parseJson('{"__proto__":{}}')],
      [{ a: 1 }, parseJson('{"__proto__":{"a":1}}')],
      [{ toString: 'x' }, {}],
      [{ constructor: {} }, {}],
      [{}, new Date(0)],
      [new Map([[1, 2]]), new Map()],
    ];
    for (const [a, b] of different) {
      expect(jsonEqual(a, b)).toBe(false);
      expect(jsonEqual(b, a)).toBe(false);
    }
  });
});

describe('stringifyJson', () => {
  test('writes what JSON.stringify writes, and -0 besides', () => {
    const value = { b: [1, 'x', null, { '"': '\n' }], gone: undefined, a: {} };
    expect(stringifyJson(value)).toBe(JSON.stringify(value));
    expect(stringifyJson({ ...value, z: [-0, 0] })).toBe(`${JSON.stringify(value).slice(0, -1)},"z":[-0,0]}`);
    expect(Object.is(parseJson(stringifyJson(-0)), -0)).toBe(true);
  });

  test('writes lone surrogates escaped, so that the text is valid UTF-16', () => {
    expect(stringifyJson(['\ud800', '\udfff', -0])).toBe(String.raw`["\ud800","\udfff",-0]`);
  });
});
