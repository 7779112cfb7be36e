import { expect, test } from 'vitest';
import { escapeToken, formatPointer, parsePointer } from '../../../src/json/pointer.ts';
import { HOSTILE_KEYS } from './generate.ts';

test.each<[string, string[]]>([
  ['', []],
  ['/', ['']],
  ['//', ['', '']],
  ['/foo/0', ['foo', '0']],
  ['/a~1b', ['a/b']],
  ['/m~0n', ['m~n']],
  ['/~01', ['~1']],
  ['/~10', ['/0']],
  ['/c%d', ['c%d']],
  ['/ ', [' ']],
  ['/-', ['-']],
])('the pointer "%s" leads through its tokens and back', (pointer, tokens) => {
  expect(parsePointer(pointer)).toEqual(tokens);
  expect(formatPointer(tokens)).toBe(pointer);
});

test('any key survives being escaped', () => {
  for (const key of HOSTILE_KEYS) expect(parsePointer(`/${escapeToken(key)}/x`)).toEqual([key, 'x']);
  expect(parsePointer(formatPointer(HOSTILE_KEYS))).toEqual(HOSTILE_KEYS);
});

test.each(['a', 'a/b', ' /a', '#/a', '/~', '/a~', '/~2', '/a/~b', '/~~0', '-'])(
  '"%s" is refused as no pointer',
  (pointer) => {
    expect(() => parsePointer(pointer)).toThrow(SyntaxError);
  },
);
