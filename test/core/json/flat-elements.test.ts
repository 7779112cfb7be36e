import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { random, seed } from '../../support/scale.ts';
import { FlatElements } from '../../../src/json/flat-elements.ts';
import { shareJson } from '../../../src/json/share.ts';
import { copyJson, jsonEqual, JsonValueError, parseJson } from '../../../src/json/value.ts';

const message = (text: string) => ({ role: 'user', content: [{ text }] });
const messages = (count: number) => Array.from({ length: count }, (_, i) => message(`message ${i}`));

function flat(elements: readonly unknown[]): FlatElements {
  const list = new FlatElements();
  list.follow(elements, elements.length);
  return list;
}

describe('flat elements', () => {
  const base: readonly unknown[] = copyJson([
    message('one'),
    { n: 0, list: [[], [1, [2]], {}], no: null, yes: true },
    parseJson('{"__proto__":{"a":1},"constructor":"c","":""}'),
    'text',
    [-0],
    message('last'),
  ]);

  it('count the equal elements at the head', () => {
    const list = flat(base);
    expect(list.countEqual(base, copyJson(base))).toBe(base.length);
    expect(list.countEqual(base, [])).toBe(0);
    expect(list.countEqual(base, [...copyJson(base), 'more'])).toBe(base.length);
    for (let i = 0; i < base.length; i++) {
      expect(list.countEqual(base, [...copyJson(base.slice(0, i)), 'another', ...base.slice(i + 1)])).toBe(i);
    }
  });

  it.each<[string, unknown, unknown]>([
    ['a member more', { a: 1 }, { a: 1, b: 1 }],
    ['a member less', { a: 1, b: 1 }, { a: 1 }],
    ['no member', { a: 1 }, {}],
    ['another key', { a: 'x' }, { b: 'x' }],
    ['a key for a value', { a: 'b' }, { b: 'a' }],
    ['an array for an object', {}, []],
    ['its length for an array', [1], 1],
    ['an element more', [1], [1, 1]],
    ['an element less', [1, 1], [1]],
    ['elements of an array beside it', [[1], 2], [[1, 2]]],
    ['-0 for 0', { a: 0 }, { a: -0 }],
    ['0 for -0', [-0], [0]],
    ['a text for a number', 1, '1'],
    ['null for an object', {}, null],
    ['an instance', {}, new Date(0)],
    ['an array with a hole', [1, 2], Object.assign([1], { 2: 2 })],
    ['a member called __proto__', {}, parseJson('{"__proto__":{}}')],
    ['a prototype for a member called __proto__', parseJson('{"__proto__":{}}'), Object.create({})],
  ])('tell them from %s', (_what, known, value) => {
    const elements = [copyJson(known), 'end'];
    expect(flat(elements).countEqual(elements, [value, 'end'])).toBe(0);
  });

  it('distinguish 0 from -0 among the elements', () => {
    expect(flat([{}, -0]).countEqual([{}, -0], [{}, -0])).toBe(0);
    const elements = [copyJson({}), -0];
    expect(flat(elements).countEqual(elements, [{}, 0])).toBe(1);
    expect(flat(elements).countEqual([elements[0], 0], [{}, 0])).toBe(1);
  });

  it('count members of undefined as none', () => {
    expect(flat(base).countEqual(base, [{ ...message('one'), metadata: undefined }])).toBe(1);
  });

  it('count no elements that the array did not have', () => {
    const list = flat(base);
    const branch = [base[0], copyJson(base[1]), base[2]];
    expect(list.countEqual(branch, copyJson(branch))).toBe(1);
    list.follow(branch, 1);
    expect(list.countEqual(branch, copyJson(branch))).toBe(3);
    expect(list.countEqual(base, copyJson(base))).toBe(1);
  });

  it('are those of a long array in a few steps', () => {
    const long = messages(1000);
    const list = new FlatElements();
    const counts = [0, 1, 2, 3].map(() => {
      list.follow(long, 0);
      return list.countEqual(long, copyJson(long));
    });
    expect(counts).toEqual([256, 512, 768, 1000]);
  });
});

/** Changes that a caller may make to the messages of a session between two saves. */
const step = fc.oneof(
  fc.record({ do: fc.constant('append' as const), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant('change' as const), at: fc.nat(400) }),
  fc.record({ do: fc.constant('reorder' as const), at: fc.nat(400) }),
  fc.record({ do: fc.constant('drop' as const), from: fc.nat(400), count: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ do: fc.constant('return' as const), to: fc.nat(20) }),
);
type Message = ReturnType<typeof message>;

let sent = 0;

function play(said: Message[], what: typeof step extends fc.Arbitrary<infer S> ? S : never): void {
  // All are different, so the place of each is known.
  if (what.do === 'append') for (let i = 0; i < what.count; i++) said.push(message(`sent ${sent++}`));
  // In place, in an object that an earlier save was given.
  else if (what.do === 'change') said[what.at % said.length]!.content[0]!.text += '!';
  else if (what.do === 'reorder') {
    const { role, content } = said[what.at % said.length]!;
    said[what.at % said.length] = { content, role };
  } else if (what.do === 'drop' && said.length > 80) said.splice(what.from % said.length, what.count);
}

describe('a long array that is shared version by version', () => {
  it(`always equals the given one, and shares equal elements (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let said = messages(90);
        let base = copyJson(said);
        const versions = [base];
        for (const what of steps) {
          // From an earlier version on: a branch.
          if (what.do === 'return') {
            base = versions[what.to % versions.length]!;
            said = copyJson(base);
          } else play(said, what);
          const before = JSON.stringify(base);
          const shared = shareJson(base, said);
          expect(jsonEqual(shared, said)).toBe(true);
          expect(JSON.stringify(base)).toBe(before);
          for (const [i, each] of shared.entries()) {
            expect(each).not.toBe(said[i]);
            if (jsonEqual(each, base[i])) expect(each).toBe(base[i]);
          }
          base = shared;
          versions.push(shared);
        }
      }),
      random(50, 3000),
    );
  });

  it('is refused with the path where JSON ends', () => {
    const base = shareJson(messages(90), messages(91));
    const said: unknown[] = messages(91);
    said[80] = { ...message('x'), content: [{ text: undefined }, undefined] };
    expect(() => shareJson<unknown>(base, said)).toThrow(expect.objectContaining({ path: '/80/content/1' }));
    expect(() => shareJson<unknown>(base, said)).toThrow(JsonValueError);
  });
});
