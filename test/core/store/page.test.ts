import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPage, pageOf } from '../../../src/store/list/page.ts';
import { anyCharacter } from '../../support/any-character.ts';
import { random } from '../../support/scale.ts';

const refused = (status: string): Error => expect.objectContaining({ status }) as Error;

/** The cursor of a page whose last item stands there. */
function cursorOf(...position: (string | number)[]): string {
  return pageOf([1, 2], 1, (item) => ({ position, item })).nextCursor!;
}

describe('a cursor', () => {
  const position = fc.array(fc.oneof(fc.string({ unit: anyCharacter }), fc.string(), fc.integer()), { maxLength: 4 });

  it('names the position that it was made of, and holds nothing that a URL changes', () => {
    fc.assert(
      fc.property(position, (parts) => {
        const cursor = cursorOf(...parts);
        const shape = parts.map((part) => typeof part as 'string' | 'number');
        expect(checkPage({ cursor }, shape).after).toEqual(parts);
        expect(cursor).toMatch(/^[\w=-]+$/);
      }),
      random(200, 5000),
    );
    expect(checkPage({ cursor: cursorOf('\uD800') }, ['string']).after).toEqual(['\uD800']);
  });

  it.each(['', 'x', '%', 'nonsense', 'bnVsbA', cursorOf(), cursorOf('a', 1), cursorOf('a'), 7, null, {}])(
    'is refused where it is %j and a number is due',
    (cursor) => {
      expect(() => checkPage({ cursor: cursor as string }, ['number'])).toThrow(refused('INVALID_ARGUMENT'));
    },
  );
});

describe('a limit', () => {
  it('is 100 by default, and at most 1,000', () => {
    const limits = [undefined, {}, { limit: 1 }, { limit: 1000 }].map(
      (options) => checkPage(options, ['number']).limit,
    );
    expect(limits).toEqual([100, 100, 1, 1000]);
  });

  it.each([0, -1, 1.5, 1001, Number.NaN, '5'])('is refused where it is %j', (limit) => {
    expect(() => checkPage({ limit: limit as number }, ['number'])).toThrow(refused('INVALID_ARGUMENT'));
  });
});

describe('a page', () => {
  const describeNumber = (n: number) => ({ position: [n], item: n % 2 === 0 ? `item ${n}` : undefined });

  it('has a cursor exactly when there is more', () => {
    expect(pageOf([], 2, describeNumber)).toEqual({ items: [] });
    expect(pageOf([2, 4], 2, describeNumber)).toEqual({ items: ['item 2', 'item 4'] });
    const page = pageOf([2, 4, 6], 2, describeNumber);
    expect(page.items).toEqual(['item 2', 'item 4']);
    expect(checkPage({ cursor: page.nextCursor }, ['number']).after).toEqual([4]);
  });

  it('goes on after what it has nothing to show of', () => {
    const page = pageOf([2, 3, 5], 2, describeNumber);
    expect(page.items).toEqual(['item 2']);
    expect(checkPage({ cursor: page.nextCursor }, ['number']).after).toEqual([3]);
  });
});
