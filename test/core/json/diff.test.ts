import { createPatch } from 'rfc6902';
import { describe, expect, test } from 'vitest';
import { applyPatch } from '../../../src/json/patch/apply-checked.ts';
import { diff } from '../../../src/json/patch/diff.ts';
import { copyJson, type Json, jsonEqual, JsonValueError, MAX_DEPTH, parseJson } from '../../../src/json/value.ts';
import { Random } from '../../support/random.ts';
import { fromDeepStack, nestedArrays, nestedObjects } from './generate.ts';

function bytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

interface Message {
  role: string;
  content: { text: string }[];
}

/** `count` messages of about 200 bytes, from the `first`-th on of an endless chat. */
function messages(first: number, count: number): Message[] {
  return Array.from({ length: count }, (_, index) => {
    const random = new Random(first + index);
    const text = Array.from({ length: 24 }, () => random.below(2 ** 32).toString(36)).join(' ');
    return { role: (first + index) % 2 === 0 ? 'user' : 'model', content: [{ text }] };
  });
}

const custom = { counter: 7, note: 'as it was', list: ['a', 'b'] };

describe('diff', () => {
  test('is empty for equal values', () => {
    for (const value of [undefined, null, 0, '', [], {}, { a: [{ b: 1 }] }]) {
      expect(diff(value, structuredClone(value))).toEqual([]);
    }
    expect(diff({ a: 1, gone: undefined }, { a: 1, never: undefined })).toEqual([]);
    expect(diff({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([]);
  });

  test('replaces the whole document where the root itself differs', () => {
    for (const [from, to] of [
      [undefined, { a: 1 }],
      [undefined, null],
      [null, { a: 1 }],
      [{ a: 1 }, null],
      [{ a: 1 }, [1]],
      [[1], { a: 1 }],
      ['a', 'b'],
      [0, -0],
      [1, '1'],
    ]) {
      expect(diff(from, to)).toEqual([{ op: 'replace', path: '', value: to }]);
    }
  });

  test('removes the whole document when the new one is undefined', () => {
    expect(diff({ a: 1 }, undefined)).toEqual([{ op: 'remove', path: '' }]);
    expect(applyPatch<unknown>({ a: 1 }, diff({ a: 1 }, undefined))).toBeUndefined();
  });

  const long = 'something long enough to make the replacement of the whole document the larger choice';

  test.each<[string, unknown, unknown, unknown]>([
    ['a new member', { long }, { long, a: 1 }, [{ op: 'add', path: '/a', value: 1 }]],
    ['a member that goes', { long, a: 1 }, { long }, [{ op: 'remove', path: '/a' }]],
    ['a member that becomes undefined', { long, a: 1 }, { long, a: undefined }, [{ op: 'remove', path: '/a' }]],
    ['a member that was undefined', { long, a: undefined }, { long, a: 1 }, [{ op: 'add', path: '/a', value: 1 }]],
    ['a member that becomes null', { long, a: 1 }, { long, a: null }, [{ op: 'replace', path: '/a', value: null }]],
    [
      'a nested change',
      { long, a: { b: [{ c: 1, long }] } },
      { long, a: { b: [{ c: 2, long }] } },
      [{ op: 'replace', path: '/a/b/0/c', value: 2 }],
    ],
    ['appended elements', { long, a: [1] }, { long, a: [1, 2, 3] }, [{ op: 'replace', path: '/a', value: [1, 2, 3] }]],
    [
      'long appended elements',
      { a: [long] },
      { a: [long, long, 'x'] },
      [
        { op: 'add', path: '/a/-', value: long },
        { op: 'add', path: '/a/-', value: 'x' },
      ],
    ],
    ['an element in the middle', [long, `1${long}`, long], [long, long], [{ op: 'remove', path: '/1' }]],
    ['an element put in between', [long, long], [long, 5, long], [{ op: 'add', path: '/1', value: 5 }]],
    [
      'keys that need escaping',
      { long, 'a/b': { '~': 1 } },
      { long, 'a/b': { '~': 2 } },
      [{ op: 'replace', path: '/a~1b/~0', value: 2 }],
    ],
    [
      'the smaller of two ways',
      { turns: 1, topic: 'the order that never came' },
      { turns: 2, topic: 'the order that never came' },
      [{ op: 'replace', path: '/turns', value: 2 }],
    ],
    [
      'all at once where that is smaller',
      { a: 1, b: 1 },
      { a: 2, b: 2 },
      [{ op: 'replace', path: '', value: { a: 2, b: 2 } }],
    ],
  ])('tells %s', (_, from, to, patch) => {
    expect(diff(from, to)).toEqual(patch);
    expect(jsonEqual(applyPatch(from, diff(from, to)), to)).toBe(true);
  });

  test('handles members named like what objects inherit as any other', () => {
    for (const key of ['toString', '__defineGetter__', 'hasOwnProperty', 'valueOf']) {
      const without = { long };
      const having = parseJson(`{"long":"${long}","${key}":1}`);
      const having2 = parseJson(`{"long":"${long}","${key}":{"x":1}}`);
      expect(diff(without, having)).toEqual([{ op: 'add', path: `/${key}`, value: 1 }]);
      expect(diff(having, without)).toEqual([{ op: 'remove', path: `/${key}` }]);
      expect(diff(having, having2)).toEqual([{ op: 'replace', path: `/${key}`, value: { x: 1 } }]);
      expect(diff(having2, structuredClone(having2))).toEqual([]);
    }
  });

  test('refuses new values that are not JSON, with their path in the document', () => {
    const from = { a: { b: [1, { c: 2 }] } };
    const refusedPath = (to: unknown): string => {
      try {
        diff(from, to);
      } catch (error) {
        if (error instanceof JsonValueError) return error.path;
      }
      return 'not refused';
    };
    expect(refusedPath({ a: { b: [1, { c: () => 1 }] } })).toBe('/a/b/1/c');
    expect(refusedPath({ a: { b: [1, new Map()] } })).toBe('/a/b/1');
    expect(refusedPath({ a: { b: [1, { c: 2 }, undefined] } })).toBe('/a/b/2');
    expect(refusedPath({ a: Number.NaN })).toBe('/a');
    expect(refusedPath({ a: new Date(0) })).toBe('/a');
    expect(refusedPath({ a: { b: [1, { c: 2 }] }, when: new Date(0) })).toBe('/when');
    const ring: Record<string, unknown> = { a: { b: [1] } };
    ring['self'] = ring;
    expect(refusedPath(ring)).toBe('/self');
  });

  test('does not treat a Date or a Map as an empty object', () => {
    for (const [from, to] of [
      [{}, new Date(0)],
      [{ a: {} }, { a: new Map() }],
      [{ a: [{}, 1] }, { a: [new Set(), 1] }],
      [{ a: new Date(0) }, { a: new Date(1) }],
    ]) {
      expect(() => diff(from, to)).toThrow(JsonValueError);
    }
  });

  test(`takes ${MAX_DEPTH} levels, from a deep stack too, and refuses more`, () => {
    for (const nested of [nestedArrays, nestedObjects]) {
      for (const [from, to] of [
        [{}, nested(MAX_DEPTH)],
        [nested(MAX_DEPTH), nested(MAX_DEPTH - 1)],
        [nested(MAX_DEPTH), nested(MAX_DEPTH)],
      ] as [Json, Json][]) {
        const patch = fromDeepStack(1_000, () => diff(from, to));
        expect(jsonEqual(applyPatch(from, patch), to)).toBe(true);
      }
      for (const depth of [MAX_DEPTH + 1, 100_000]) {
        expect(() => diff([], nested(depth))).toThrow(JsonValueError);
        expect(() => diff({ a: [] }, { a: nested(depth - 1) })).toThrow(JsonValueError);
        expect(() => diff(nested(MAX_DEPTH), nested(depth))).toThrow(JsonValueError);
      }
      expect(() => diff(nested(100_000), nested(100_000))).toThrow(JsonValueError);
    }
  });

  test('of an append and a counter reads each value once, as a comparison does', () => {
    const before = { custom, messages: messages(0, 200) };
    const after = { custom: { ...custom, counter: 8 }, messages: messages(0, 202) };
    const compared = countingReads(before);
    expect(jsonEqual(compared.value, copyJson(before))).toBe(true);
    const diffed = countingReads(before);
    expect(diff(diffed.value, after)).toHaveLength(3);
    expect(diffed.reads()).toBeLessThan(compared.reads() * 1.02);
  });

  test('does not read objects that are the same in both', () => {
    const old = countingReads(messages(0, 200));
    const kept = [...old.value];
    const readsBefore = old.reads();
    expect(diff({ messages: kept }, { messages: [...kept, ...messages(200, 2)] })).toHaveLength(2);
    expect(old.reads() - readsBefore).toBeLessThan(100);
  });
});

/** Counts how often a member of anything in `value` is read. */
function countingReads<T extends object>(value: T): { value: T; reads: () => number } {
  let reads = 0;
  const proxies = new WeakMap<object, object>();
  const wrap = (target: object): object => {
    const handler: ProxyHandler<object> = {
      get(object, key) {
        reads++;
        const member: unknown = Reflect.get(object, key);
        return typeof member === 'object' && member !== null ? wrap(member) : member;
      },
    };
    if (!proxies.has(target)) proxies.set(target, new Proxy(target, handler));
    return proxies.get(target)!;
  };
  return { value: wrap(value) as T, reads: () => reads };
}

describe('members that Genkit’s clients refuse in a path', () => {
  test.each([
    ['{"a":{"constructor":1,"b":2}}', '{"a":{"constructor":2,"b":2}}', '/a'],
    ['{"a":{"constructor":{"x":[1]}}}', '{"a":{"constructor":{"x":[2]}}}', '/a'],
    ['{"a":[{"b":{"__proto__":1}}]}', '{"a":[{"b":{}}]}', '/a/0/b'],
    ['{"prototype":1,"b":2}', '{"b":2}', ''],
    ['{"a":{"__proto__":{"prototype":1}}}', '{"a":{"__proto__":{"prototype":2}}}', '/a'],
  ])('turns the change of %s to %s into a replacement at "%s"', (fromText, toText, path) => {
    const filler = `"filler":["${'x'.repeat(300)}"],`;
    const [from, to] = [fromText, toText].map((text) => parseJson(`{${filler}${text.slice(1)}`));
    const patch = diff(from, to);
    expect(patch.map((operation) => operation.path)).toEqual([path]);
    expect(jsonEqual(applyPatch(from, patch), to)).toBe(true);
  });

  test('does not affect unchanged members with such a key, nor keys that only resemble one', () => {
    const long = 'x'.repeat(300);
    const from = { constructor: { long }, 'constructor ': 1, n: 1 };
    const to = { constructor: { long }, 'constructor ': 2, n: 2 };
    expect(diff(from, to).map(({ path }) => path)).toEqual(['/constructor ', '/n']);
  });
});

describe('patch size:', () => {
  const state = (list: Message[]) => ({ custom, messages: list });
  const summary = { role: 'system', content: [{ text: `Summary: ${'they talked about an order. '.repeat(15)}` }] };

  test.each<[string, Message[], Message[]]>([
    ['a window sliding by 1', messages(0, 60), messages(1, 60)],
    ['a window sliding by 2', messages(0, 60), messages(2, 60)],
    ['a window sliding by 20', messages(0, 60), messages(20, 60)],
    ['a window sliding by 55', messages(0, 60), messages(55, 60)],
    ['a window sliding past its end', messages(0, 60), messages(60, 60)],
    ['an insertion at the head', messages(1, 60), messages(0, 61)],
    ['insertions at the head', messages(5, 60), messages(0, 65)],
    ['a deletion in the middle', messages(0, 60), messages(0, 60).toSpliced(30, 1)],
    ['deletions in the middle', messages(0, 60), messages(0, 60).toSpliced(20, 7).toSpliced(40, 2)],
    ['appended messages', messages(0, 60), messages(0, 62)],
    ['a summary replacing all 500', messages(0, 500), [summary]],
    ['a summary replacing 500 before 4', messages(0, 504), [summary, ...messages(500, 4)]],
    ['a summary replacing 500 before 200', messages(0, 700), [summary, ...messages(500, 200)]],
  ])('%s takes at most 1.1 times the smaller of npm rfc6902 and the new state', (_, before, after) => {
    const from = state(before);
    const to = state(after);
    const patch = diff(from, to);
    expect(jsonEqual(applyPatch(from, patch), to)).toBe(true);
    const other = createPatch(from, to);
    expect(bytes(patch)).toBeLessThanOrEqual(1.1 * Math.min(bytes(other), bytes(to)));
  });

  test('a long sliding window names only the removed and the added elements', () => {
    const patch = diff(state(messages(0, 2_400)), state(messages(400, 2_400)));
    expect(patch.filter(({ op }) => op === 'remove')).toHaveLength(400);
    expect(patch.filter(({ op }) => op === 'add')).toHaveLength(400);
    expect(patch).toHaveLength(800);
  });

  test('a list of repeated numbers is aligned as well', () => {
    const series = (first: number) => Array.from({ length: 800 }, (_, index) => ((first + index) * 7919) % 13);
    expect(diff(series(0), series(3))).toHaveLength(6);
  });

  test('the smaller of a container’s changes and its replacement is used', () => {
    const rows = Array.from({ length: 40 }, (_, id) => ({ id, text: `the text of row number ${id}` }));
    const from = { rows, flags: Array.from({ length: 40 }, () => false), deep: { a: { b: [1, 2, 3, 4] } } };
    const to = copyJson(from);
    to.flags = to.flags.map((_, index) => index % 2 === 0);
    to.rows[17]!.text = 'another text';
    to.deep.a.b.reverse();
    expect(diff(from, to)).toEqual([
      { op: 'replace', path: '/rows/17/text', value: 'another text' },
      { op: 'replace', path: '/flags', value: to.flags },
      { op: 'replace', path: '/deep/a/b', value: [4, 3, 2, 1] },
    ]);
  });

  test('a shuffled list never takes more than its replacement, in bounded work', () => {
    const list = Array.from({ length: 20_000 }, (_, index) => index % 500);
    const to = new Random(1).shuffled(list);
    const patch = diff({ list }, { list: to });
    expect(bytes(patch)).toBeLessThanOrEqual(bytes([{ op: 'replace', path: '/list', value: to }]));
  });

  test('sizes are those of UTF-8 text, escapes included', () => {
    // Two operations and the replacement differ by a few bytes only, so the size of the text decides.
    for (const character of [
      'a',
      '"',
      '\\',
      '\n',
      '\u0001',
      '\u007f',
      'é',
      '€',
      '\u2028',
      '\ud83d\ude00',
      '\ud800',
      '\udc00x',
      '\ud800\ud800',
    ]) {
      for (let count = 0; count < 80; count++) {
        const from = { kept: character.repeat(count), a: 1, b: 1 };
        const to = { ...from, a: 2, b: 2 };
        const replacement = [{ op: 'replace', path: '', value: to }];
        const inside = ['a', 'b'].map((key) => ({ op: 'replace', path: `/${key}`, value: 2 }));
        expect(bytes(diff(from, to))).toBe(Math.min(bytes(replacement), bytes(inside)));
      }
    }
  });
});
