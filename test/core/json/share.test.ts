import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shareJson } from '../../../src/json/share.ts';
import { copyJson, jsonEqual, JsonValueError, type Json } from '../../../src/json/value.ts';

const key = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', ''),
  fc.string({ maxLength: 4 }),
);
const scalar = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom<Json>(null, true, 'x', 'y', -0, 0, ''));
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('json'), { maxLength: 6 }),
    fc.array(fc.tuple(key, tie('json')), { maxLength: 5 }).map((members) => {
      const object = {};
      for (const [name, value] of members) {
        Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
      }
      return object;
    }),
  ),
}));

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}

describe('shareJson', () => {
  it('returns an equal value, and changes neither argument', () => {
    fc.assert(
      fc.property(json, json, (base, value) => {
        const before = [copyJson(base), copyJson(value)];
        const shared = shareJson(freeze(copyJson(base)), value);
        expect(jsonEqual(shared, value)).toBe(true);
        expect(jsonEqual(base, before[0])).toBe(true);
        expect(jsonEqual(value, before[1])).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  it('aliases no container of the value', () => {
    fc.assert(
      fc.property(json, json, (base, value) => {
        const shared = shareJson(copyJson(base), value);
        const own = new Set<unknown>();
        const walk = (node: unknown, visit: (object: object) => void): void => {
          if (typeof node !== 'object' || node === null) return;
          visit(node);
          for (const member of Object.values(node)) walk(member, visit);
        };
        walk(value, (object) => own.add(object));
        walk(shared, (object) => expect(own.has(object)).toBe(false));
      }),
      { numRuns: 2000 },
    );
  });

  const message = (text: string) => ({ role: 'user', content: [{ text }] });
  const many = Array.from({ length: 200 }, (_, i) => message(`message ${i}`));
  const base = copyJson({ messages: many, custom: { list: [1, 2, 3], name: 'x' } });

  it('returns the base itself when both are equal', () => {
    expect(shareJson(base, copyJson(base))).toBe(base);
  });

  it('keeps earlier messages when one is appended', () => {
    const shared = shareJson(base, { ...copyJson(base), messages: [...copyJson(many), message('new')] });
    expect(shared.custom).toBe(base.custom);
    expect(base.messages.every((known, i) => shared.messages[i] === known)).toBe(true);
  });

  it.each<[string, Json[], (i: number) => number]>([
    ['a window slides on', [...many.slice(10), message('new')], (i) => i + 10],
    ['one is put in at the head', [message('new'), ...many], (i) => i - 1],
    ['some are taken out of the middle', [...many.slice(0, 50), ...many.slice(70)], (i) => (i < 50 ? i : i + 20)],
  ])('keeps messages where they moved to: %s', (_, messages, from) => {
    const shared = shareJson(base, { messages: copyJson(messages) });
    const kept = shared.messages.filter((known, i) => known === base.messages[from(i)]);
    expect(kept.length).toBeGreaterThanOrEqual(messages.length - 1);
  });

  it('spends a bounded number of comparisons on arrays that have nothing in common', () => {
    let reads = 0;
    const counted = (text: string) => ({
      get text() {
        reads++;
        return text;
      },
    });
    const other = Array.from({ length: 2000 }, (_, i) => counted(`other ${i}`));
    shareJson(copyJson(Array.from({ length: 2000 }, (_, i) => ({ text: `base ${i}` }))), other);
    expect(reads).toBeLessThan(2000 * 20);
  });

  it('distinguishes 0 and -0', () => {
    expect(Object.is(shareJson({ n: 0 }, { n: -0 }).n, -0)).toBe(true);
    expect(Object.is(shareJson({ n: -0 }, { n: 0 }).n, 0)).toBe(true);
    expect(Object.is(shareJson([-0], [0])[0], 0)).toBe(true);
  });

  it('refuses what JSON cannot hold, with the path, beside an equal base too', () => {
    const cyclic: Record<string, unknown> = { a: { b: 1 } };
    cyclic['a'] = { b: cyclic };
    for (const [value, path] of [
      [{ a: { b: () => 1 } }, '/a/b'],
      [{ a: { b: new Date(0) } }, '/a/b'],
      [{ a: [1, undefined] }, '/a/1'],
      [cyclic, '/a/b'],
    ] as const) {
      const error = (() => {
        try {
          return shareJson({ a: { b: 1 } }, value as unknown);
        } catch (thrown) {
          return thrown;
        }
      })();
      expect(error).toBeInstanceOf(JsonValueError);
      expect((error as JsonValueError).path).toBe(path);
    }
  });
});
