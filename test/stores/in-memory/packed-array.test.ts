import { deepStrictEqual } from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shareJson } from '../../../src/json/share.ts';
import { copyJson, type Json } from '../../../src/json/value.ts';
import { PackedArray } from '../../../stores/in-memory/packed-array.ts';
import { thaw } from '../../../src/json/immutable.ts';
import { pack, RecentState, unpack, type PackedState } from '../../../stores/in-memory/packed-state.ts';
import { VALUES } from '../../conformance/support/value-corpus.ts';
import { random, seed } from '../../support/scale.ts';

/** From one version of a list to the next. */
const edit = fc.oneof(
  fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 1, max: 1500 }) }),
  fc.record({ kind: fc.constantFrom('shift' as const, 'pop' as const), count: fc.integer({ min: 1, max: 1200 }) }),
  fc.record({ kind: fc.constantFrom('insert' as const, 'remove' as const, 'replace' as const), count: fc.nat(4000) }),
);

type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

function edited(list: readonly object[], { kind, count }: Edit, fresh: () => object): object[] {
  const at = count % (list.length + 1);
  switch (kind) {
    case 'append':
      return [...list, ...Array.from({ length: count }, fresh)];
    case 'shift':
      return list.slice(count);
    case 'pop':
      return list.slice(0, Math.max(0, list.length - count));
    case 'insert':
      return list.toSpliced(at, 0, fresh());
    case 'remove':
      return list.toSpliced(at, 1);
    case 'replace':
      return list.with(Math.min(at, list.length - 1), fresh());
  }
}

describe('PackedArray', () => {
  it(`has the elements of every version of a list, each packed with the one before (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 12 }), (edits) => {
        let made = 0;
        const fresh = (): object => ({ n: made++ });
        let list = Array.from({ length: 40 }, fresh);
        let packed = PackedArray.from(list);
        const versions: [PackedArray, object[]][] = [];
        for (const one of edits) {
          const next = list.length === 0 ? [fresh()] : edited(list, one, fresh);
          if (next.length > 0) packed = PackedArray.from(next, packed, list);
          list = next.length > 0 ? next : list;
          versions.push([packed, list]);
        }
        for (const [version, expected] of versions) {
          const elements = version.elements();
          expect(elements.length).toBe(expected.length);
          expect(elements.every((element, i) => element === expected[i])).toBe(true);
        }
      }),
      random(100, 3000),
    );
  });
});

describe('a packed state', () => {
  const long = fc.array(fc.oneof(fc.integer(), fc.record({ a: fc.nat(3) })), { minLength: 0, maxLength: 80 });
  const state = fc.dictionary(
    fc.constantFrom('messages', 'custom', '__proto__', 'constructor', ''),
    fc.oneof(long, fc.dictionary(fc.constantFrom('list', '__proto__'), long), fc.constant(null), fc.string()),
  );

  it(`reads as the packed value, on any base, and every copy is the reader’s own (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(state, { minLength: 1, maxLength: 6 }), (states) => {
        let base: { plain: unknown; state: PackedState } | undefined;
        for (const value of states as unknown as Json[]) {
          const packed = pack(base ? shareJson(base.plain, value) : copyJson(value), base);
          deepStrictEqual(unpack(packed), copyJson(value));
          const copy = thaw(unpack(packed));
          deepStrictEqual(copy, copyJson(value));
          (copy as Record<string, unknown>)['vandalised'] = true;
          deepStrictEqual(unpack(packed), copyJson(value));
          base = { plain: unpack(packed), state: packed };
        }
      }),
      random(300, 10_000),
    );
  });

  it.each(VALUES)('reads %s as it was, below a packed array too', (_, value) => {
    const whole = {
      value,
      list: Array.from({ length: 40 }, () => ({ value })),
      inside: { value, list: Array.from({ length: 40 }, () => value) },
    };
    deepStrictEqual(thaw(unpack(pack(copyJson(whole)))), copyJson(whole));
  });

  it('is the base itself when nothing changed', () => {
    const first = pack(copyJson({ list: Array.from({ length: 100 }, (_, n) => ({ n })) }));
    const plain = unpack(first);
    expect(pack(shareJson(plain, copyJson(plain)), { plain, state: first })).toBe(first);
  });
});

describe('the state that was read last', () => {
  it('is unpacked once, until it is dropped; plainOf does not cache it', () => {
    const state = pack({ messages: Array.from({ length: 100 }, (_, i) => ({ i })) });
    const recent = new RecentState();
    expect(recent.plainOf(state)).not.toBe(recent.plainOf(state));
    const plain = recent.read(state);
    expect(recent.read(state)).toBe(plain);
    expect(recent.plainOf(state)).toBe(plain);
    recent.forget();
    expect(recent.plainOf(state)).not.toBe(plain);
    deepStrictEqual(recent.plainOf(state), plain);
    expect(recent.plainOf(state)).not.toBe(recent.plainOf(state));
  });
});
