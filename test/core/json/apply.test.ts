import { describe, expect, test, vi } from 'vitest';
import { applyPatch as applyPatchOfClient } from '../../../src/client/apply-unchecked.ts';
import { applyPatch, applyShared, PatchError } from '../../../src/json/patch/apply-checked.ts';
import { diff, type JsonPatch, type JsonPatchOperation } from '../../../src/json/patch/diff.ts';
import { copyJson, jsonEqual, JsonValueError, MAX_DEPTH, parseJson, stringifyJson } from '../../../src/json/value.ts';
import { KIND } from '../../../src/error-kind.ts';
import { deepFreeze, fromDeepStack, nestedArrays, nestedObjects } from './generate.ts';

type Apply = typeof applyPatch<unknown>;

/** The functions that refuse values that are not JSON or nested too deep. */
const CHECKED_WAYS: [string, Apply][] = [
  ['applyPatch', applyPatch],
  ['applyShared', applyShared],
];

/** All must have the same result. */
const WAYS: [string, Apply][] = [...CHECKED_WAYS, ['applyPatch of the client', applyPatchOfClient]];

/** The error that `action` throws. */
function refusalOf(action: () => unknown): PatchError {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(PatchError);
    return error as PatchError;
  }
  throw new Error('it was not refused');
}

describe.each(WAYS)('%s', (_, apply) => {
  test.each<[string, unknown, JsonPatchOperation[], unknown]>([
    ['adds a member', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
    ['adds over a member', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 }],
    [
      'adds an element before another',
      { a: ['x', 'y'] },
      [{ op: 'add', path: '/a/1', value: 'n' }],
      { a: ['x', 'n', 'y'] },
    ],
    ['adds at the end by index', ['x'], [{ op: 'add', path: '/1', value: 'n' }], ['x', 'n']],
    ['adds at the end by -', { a: ['x'] }, [{ op: 'add', path: '/a/-', value: ['y', 'z'] }], { a: ['x', ['y', 'z']] }],
    ['adds a member named -', {}, [{ op: 'add', path: '/-', value: 1 }], { '-': 1 }],
    ['adds a nested object', { a: 1 }, [{ op: 'add', path: '/c', value: { g: {} } }], { a: 1, c: { g: {} } }],
    ['adds the whole document', { a: 1 }, [{ op: 'add', path: '', value: [1] }], [1]],
    ['adds null', { a: [] }, [{ op: 'add', path: '/a/0', value: null }], { a: [null] }],
    ['removes a member', { a: 1, b: 2 }, [{ op: 'remove', path: '/b' }], { a: 1 }],
    ['removes a member that is null', { a: null }, [{ op: 'remove', path: '/a' }], {}],
    ['removes an element', { a: ['x', 'y', 'z'] }, [{ op: 'remove', path: '/a/1' }], { a: ['x', 'z'] }],
    ['removes the whole document', { a: 1 }, [{ op: 'remove', path: '' }], undefined],
    ['replaces a member', { a: 1, b: { c: 2 } }, [{ op: 'replace', path: '/b', value: [] }], { a: 1, b: [] }],
    ['replaces an element', [1, 2, 3], [{ op: 'replace', path: '/2', value: 9 }], [1, 2, 9]],
    ['replaces the whole document', 'text', [{ op: 'replace', path: '', value: { a: 1 } }], { a: 1 }],
    [
      'moves a member',
      { a: { b: 1, c: 2 }, d: {} },
      [{ op: 'move', from: '/a/b', path: '/d/e' }],
      { a: { c: 2 }, d: { e: 1 } },
    ],
    ['moves an element', { a: [1, 2, 3, 4] }, [{ op: 'move', from: '/a/1', path: '/a/3' }], { a: [1, 3, 4, 2] }],
    ['moves onto the same place', { a: [1, 2] }, [{ op: 'move', from: '/a/1', path: '/a/1' }], { a: [1, 2] }],
    ['moves a part to the root', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '' }], { b: 1 }],
    ['moves beside a key with the same beginning', { a: 1 }, [{ op: 'move', from: '/a', path: '/ab' }], { ab: 1 }],
    ['copies a member', { a: { b: [1] } }, [{ op: 'copy', from: '/a/b', path: '/c' }], { a: { b: [1] }, c: [1] }],
    ['copies into itself', { a: [1] }, [{ op: 'copy', from: '', path: '/a/0' }], { a: [{ a: [1] }, 1] }],
    [
      'tests a value',
      { a: { b: 1, c: [2] } },
      [{ op: 'test', path: '/a', value: { c: [2], b: 1 } }],
      { a: { b: 1, c: [2] } },
    ],
    ['tests for null', { a: null }, [{ op: 'test', path: '/a', value: null }], { a: null }],
    [
      'tests numbers by what they amount to',
      { a: [0, -0, 1] },
      [{ op: 'test', path: '/a', value: [-0, 0, 1] }],
      { a: [0, -0, 1] },
    ],
    [
      'finds keys that are escaped',
      { '/': 9, '~1': 10 },
      [{ op: 'test', path: '/~01', value: 10 }],
      { '/': 9, '~1': 10 },
    ],
    ['finds keys that look like indices', { '01': { '-': 1 } }, [{ op: 'remove', path: '/01/-' }], { '01': {} }],
    ['finds the empty key', { '': { '': 1 } }, [{ op: 'replace', path: '//', value: 2 }], { '': { '': 2 } }],
    [
      'ignores further members of an operation',
      {},
      [{ op: 'add', path: '/a', value: 1, note: 'x' } as JsonPatchOperation],
      { a: 1 },
    ],
    ['does nothing for an empty patch', { a: 1 }, [], { a: 1 }],
    ['replaces an absent document', undefined, [{ op: 'replace', path: '', value: { a: 1 } }], { a: 1 }],
    [
      'goes on after adding an absent document',
      undefined,
      [
        { op: 'add', path: '', value: {} },
        { op: 'add', path: '/a', value: 1 },
      ],
      { a: 1 },
    ],
    [
      'sees the result of earlier operations',
      { a: [] },
      [
        { op: 'add', path: '/a/-', value: { b: 1 } },
        { op: 'copy', from: '/a/0', path: '/a/-' },
        { op: 'replace', path: '/a/1/b', value: 2 },
        { op: 'test', path: '/a/0', value: { b: 1 } },
        { op: 'move', from: '/a/0', path: '/first' },
      ],
      { a: [{ b: 2 }], first: { b: 1 } },
    ],
  ])('%s', (_, document, patch, result) => {
    deepFreeze(document);
    deepFreeze(patch);
    expect(apply(document, patch)).toEqual(result);
  });

  test('treats keys such as __proto__ as plain members and pollutes nothing', () => {
    const document = parseJson('{"__proto__":{"a":1},"list":[]}');
    const patch = parseJson(`[
      {"op":"add","path":"/__proto__/polluted","value":true},
      {"op":"add","path":"/constructor","value":{}},
      {"op":"add","path":"/constructor/prototype","value":{"polluted":true}},
      {"op":"copy","from":"/__proto__","path":"/copied"},
      {"op":"move","from":"/__proto__/a","path":"/toString"},
      {"op":"add","path":"/list/0","value":{"__proto__":{"polluted":true}}},
      {"op":"replace","path":"/list/0/__proto__/polluted","value":1}
    ]`) as unknown as JsonPatch;
    const result = apply(deepFreeze(document), deepFreeze(patch));
    expect(stringifyJson(result)).toBe(
      '{"__proto__":{"polluted":true},"list":[{"__proto__":{"polluted":1}}],"constructor":{"prototype":{"polluted":true}},"copied":{"a":1,"polluted":true},"toString":1}',
    );
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
    for (const inherited of [{}, [], () => 1]) expect('polluted' in inherited).toBe(false);
    for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect(refusalOf(() => apply({}, [{ op: 'add', path: `/${key}/polluted`, value: 1 }])).index).toBe(0);
      expect(refusalOf(() => apply({ a: [] }, [{ op: 'remove', path: `/a/${key}` }])).index).toBe(0);
      expect(refusalOf(() => apply('text', [{ op: 'add', path: `/${key}/polluted`, value: 1 }])).index).toBe(0);
    }
  });

  test('treats operations with inherited members as incomplete', () => {
    const inheriting = Object.create({ op: 'add', path: '/a', value: 1 }) as JsonPatchOperation;
    expect(refusalOf(() => apply({}, [inheriting])).index).toBe(0);
  });

  const document = { a: { b: [1, 2] }, s: 'text', n: null };

  test.each<[string, unknown, string]>([
    ['a path that does not begin with /', { op: 'add', path: 'a', value: 1 }, 'a'],
    ['a path with a bare ~', { op: 'add', path: '/a~', value: 1 }, '/a~'],
    ['a path with a bad escape', { op: 'add', path: '/~2', value: 1 }, '/~2'],
    ['a path in fragment form', { op: 'add', path: '#/a', value: 1 }, '#/a'],
    ['a missing path', { op: 'add', value: 1 }, ''],
    ['a path that is not a string', { op: 'add', path: ['a'], value: 1 }, ''],
    ['a missing op', { path: '/a', value: 1 }, '/a'],
    ['an unknown op', { op: 'merge', path: '/a', value: 1 }, '/a'],
    ['an op in capitals', { op: 'ADD', path: '/a', value: 1 }, '/a'],
    ['an op that objects inherit', { op: 'toString', path: '/a', value: 1 }, '/a'],
    ['an add without a value', { op: 'add', path: '/x' }, '/x'],
    ['an add of undefined', { op: 'add', path: '/x', value: undefined }, '/x'],
    ['a replace without a value', { op: 'replace', path: '/a' }, '/a'],
    ['a test without a value', { op: 'test', path: '/a' }, '/a'],
    ['a move without a from', { op: 'move', path: '/x' }, '/x'],
    ['a copy without a from', { op: 'copy', path: '/x' }, '/x'],
    ['a from that is malformed', { op: 'copy', path: '/x', from: 'a' }, '/x'],
    ['an add whose parent is missing', { op: 'add', path: '/x/y', value: 1 }, '/x/y'],
    ['an add into a string', { op: 'add', path: '/s/0', value: 1 }, '/s/0'],
    ['an add into null', { op: 'add', path: '/n/x', value: 1 }, '/n/x'],
    ['an add beyond the end', { op: 'add', path: '/a/b/3', value: 1 }, '/a/b/3'],
    ['an index with a leading zero', { op: 'add', path: '/a/b/01', value: 1 }, '/a/b/01'],
    ['a negative index', { op: 'add', path: '/a/b/-1', value: 1 }, '/a/b/-1'],
    ['an index with a sign', { op: 'add', path: '/a/b/+1', value: 1 }, '/a/b/+1'],
    ['an index with an exponent', { op: 'add', path: '/a/b/1e0', value: 1 }, '/a/b/1e0'],
    ['an index with a space', { op: 'add', path: '/a/b/ 1', value: 1 }, '/a/b/ 1'],
    ['an index in other digits', { op: 'add', path: '/a/b/\u0661', value: 1 }, '/a/b/\u0661'],
    ['an empty index', { op: 'add', path: '/a/b/', value: 1 }, '/a/b/'],
    ['a huge index', { op: 'add', path: `/a/b/${'9'.repeat(400)}`, value: 1 }, `/a/b/${'9'.repeat(400)}`],
    ['the length of an array as a member', { op: 'replace', path: '/a/b/length', value: 0 }, '/a/b/length'],
    ['a remove at -', { op: 'remove', path: '/a/b/-' }, '/a/b/-'],
    ['a replace at -', { op: 'replace', path: '/a/b/-', value: 1 }, '/a/b/-'],
    ['a test at -', { op: 'test', path: '/a/b/-', value: 1 }, '/a/b/-'],
    ['a path through -', { op: 'add', path: '/a/b/-/x', value: 1 }, '/a/b/-/x'],
    ['a remove of nothing', { op: 'remove', path: '/x' }, '/x'],
    ['a remove at the end', { op: 'remove', path: '/a/b/2' }, '/a/b/2'],
    ['a replace of nothing', { op: 'replace', path: '/x', value: 1 }, '/x'],
    ['a replace at the end', { op: 'replace', path: '/a/b/2', value: 1 }, '/a/b/2'],
    ['a test of nothing', { op: 'test', path: '/x', value: null }, '/x'],
    ['a test that fails', { op: 'test', path: '/a/b', value: [1, 3] }, '/a/b'],
    ['a test for another type', { op: 'test', path: '/a/b/0', value: '1' }, '/a/b/0'],
    ['a move of nothing', { op: 'move', from: '/x', path: '/y' }, '/y'],
    ['a move of nothing onto itself', { op: 'move', from: '/x', path: '/x' }, '/x'],
    ['a copy of nothing', { op: 'copy', from: '/a/b/7', path: '/y' }, '/y'],
    ['a move into its own child', { op: 'move', from: '/a', path: '/a/b/0' }, '/a/b/0'],
    ['a move of the root into itself', { op: 'move', from: '', path: '/x' }, '/x'],
    ['a move to where its own going leaves no place', { op: 'move', from: '/a/b/0', path: '/a/b/2' }, '/a/b/2'],
    ['an operation that is null', null, ''],
    ['an operation that is a string', 'remove', ''],
    ['an operation that is an array', ['remove', '/a'], ''],
  ])('strict apply: %s is refused, and nothing is changed', (_, operation, path) => {
    const before = copyJson(document);
    const patch = [{ op: 'add', path: '/z', value: 1 }, operation] as JsonPatch;
    const error = refusalOf(() => apply(document, patch));
    expect(error).toMatchObject({ name: 'PatchError', index: 1, path });
    expect(error.reason).not.toBe('');
    expect(error.message.length).toBeLessThan(600);
    expect(document).toEqual(before);
  });

  test('strict apply: a patch that is not an array is refused', () => {
    for (const patch of [undefined, null, {}, 'x', { length: 1, 0: { op: 'remove', path: '' } }]) {
      expect(refusalOf(() => apply({}, patch as unknown as JsonPatch))).toMatchObject({ index: -1, path: '' });
    }
  });

  test('strict apply: an absent document has nothing to change', () => {
    for (const op of [
      { op: 'add', path: '/a', value: 1 },
      { op: 'remove', path: '' },
      { op: 'test', path: '', value: null },
      { op: 'copy', from: '', path: '' },
    ] as JsonPatchOperation[]) {
      expect(refusalOf(() => apply(undefined, [op])).index).toBe(0);
      expect(refusalOf(() => apply({}, [{ op: 'remove', path: '' }, op])).index).toBe(1);
    }
  });

  test('strict apply: copies that would fill the memory are refused before they do', () => {
    const doubling = Array.from({ length: 60 }, (): JsonPatchOperation => ({ op: 'copy', from: '/a', path: '/a/-' }));
    const error = refusalOf(() => apply({ a: ['x'.repeat(100)] }, doubling));
    expect(error.reason).toContain('maxCopiedBytes');
    expect(error.index).toBeLessThan(25);
    const empties = refusalOf(() => apply({ a: [[]] }, doubling, { maxCopiedBytes: 1_000_000 }));
    expect(empties.index).toBeLessThan(30);
  });

  test('strict apply: the limit of copies can be set', () => {
    const document = { a: ['x'.repeat(96)] }; // `a` is 100 bytes of JSON.
    const copies = (count: number) =>
      Array.from({ length: count }, (_, index): JsonPatchOperation => ({ op: 'copy', from: '/a', path: `/${index}` }));
    expect(apply(document, copies(10), { maxCopiedBytes: 1_000 })).toHaveProperty('9');
    expect(refusalOf(() => apply(document, copies(11), { maxCopiedBytes: 1_000 })).index).toBe(10);
  });

  test('creates errors that another copy of the package recognizes', () => {
    const error = refusalOf(() => apply({}, [{ op: 'remove', path: '/a' }]));
    const elsewhere = Object.assign(new Error('x'), { [KIND]: 'PatchError' });
    expect([error, elsewhere, new Error('x'), null].map((it) => PatchError.isInstance(it))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});

describe.each(CHECKED_WAYS)('%s', (_, apply) => {
  test('strict apply: a value that is not JSON is refused', () => {
    const operation: JsonPatchOperation = { op: 'add', path: '/x', value: { when: new Date(0) } };
    expect(refusalOf(() => apply({}, [operation]))).toMatchObject({ index: 0, path: '/x' });
  });

  test('strict apply: nesting is bounded for every operation', () => {
    for (const nested of [nestedArrays, nestedObjects]) {
      const fits = fromDeepStack(1_000, () =>
        apply({ a: null }, [{ op: 'add', path: '/a', value: nested(MAX_DEPTH - 1) }]),
      );
      expect(jsonEqual(fits, { a: nested(MAX_DEPTH - 1) })).toBe(true);
      for (const [document, operation] of [
        [{ a: null }, { op: 'add', path: '/a', value: nested(MAX_DEPTH) }],
        [{ a: null }, { op: 'replace', path: '/a', value: nested(MAX_DEPTH) }],
        [{ a: null }, { op: 'replace', path: '', value: nested(100_000) }],
        [{ a: null }, { op: 'test', path: '/a', value: nested(100_000) }],
        [
          { a: {}, b: nested(MAX_DEPTH - 1) },
          { op: 'copy', from: '/b', path: '/a/b' },
        ],
        [
          { a: {}, b: nested(MAX_DEPTH - 1) },
          { op: 'move', from: '/b', path: '/a/b' },
        ],
      ] as [object, JsonPatchOperation][]) {
        expect(refusalOf(() => apply(document, [operation])).index).toBe(0);
      }
    }
    const nesting = Array.from({ length: MAX_DEPTH }, (): JsonPatch => [
      { op: 'add', path: '/next', value: {} },
      { op: 'move', from: '/last', path: '/next/last' },
      { op: 'move', from: '/next', path: '/last' },
    ]).flat();
    expect(refusalOf(() => apply({ last: {} }, nesting)).reason).toContain('deeper');
    expect(apply({ last: {} }, [...nesting, { op: 'remove', path: '' }])).toBeUndefined();
    const selfCopies = Array.from({ length: 20 }, (): JsonPatchOperation => ({ op: 'copy', from: '', path: '/a' }));
    expect(refusalOf(() => apply({ a: nestedObjects(MAX_DEPTH - 11) }, selfCopies)).index).toBe(10);
  });
});

describe.each([
  ['applyPatch', applyPatch],
  ['applyPatch of the client', applyPatchOfClient],
])('%s', (_, apply) => {
  test('returns a new document: changing it changes neither the input nor the patch', () => {
    const document = { kept: { list: [1] }, changed: { a: 1 } };
    const patch: JsonPatch = [
      { op: 'add', path: '/changed/b', value: { deep: [1] } },
      { op: 'copy', from: '/kept', path: '/copied' },
    ];
    const before = copyJson({ document, patch });
    const result = apply<Record<string, Record<string, unknown>>>(document, patch);
    (result['kept']!['list'] as unknown[]).push('mine');
    (result['changed']!['b'] as Record<string, unknown>)['deep'] = 'mine';
    result['copied']!['list'] = 'mine';
    expect({ document, patch }).toEqual(before);
    expect(result['kept']).toEqual({ list: [1, 'mine'] });
  });
});

describe('applyPatch', () => {
  test('refuses a document that is not JSON', () => {
    expect(() => applyPatch({ when: new Date(0) }, [])).toThrow(JsonValueError);
    expect(() => applyPatch(nestedArrays(100_000), [])).toThrow(JsonValueError);
  });
});

describe('applyShared', () => {
  test('copies only the path to the change and shares the rest', () => {
    const document = deepFreeze({ custom: { n: 1 }, messages: [{ text: 'a' }, { text: 'b' }], artifacts: [{ x: 1 }] });
    const value = deepFreeze({ text: 'c' });
    const result = applyShared(document, [
      { op: 'replace', path: '/custom/n', value: 2 },
      { op: 'add', path: '/messages/-', value },
    ]);
    expect(result).toEqual({
      custom: { n: 2 },
      messages: [{ text: 'a' }, { text: 'b' }, { text: 'c' }],
      artifacts: [{ x: 1 }],
    });
    expect(result.artifacts).toBe(document.artifacts);
    expect(result.messages[0]).toBe(document.messages[0]);
    expect(result.messages[2]).toBe(value);
    expect(document.custom.n).toBe(1);
  });

  test('changes one place only of an object that the document has in two', () => {
    const twice = { n: 1 };
    const result = applyShared({ a: twice, b: twice }, [{ op: 'replace', path: '/a/n', value: 2 }]);
    expect(result).toEqual({ a: { n: 2 }, b: { n: 1 } });
    const value = { n: 1 };
    expect(
      applyShared({}, [
        { op: 'add', path: '/a', value },
        { op: 'add', path: '/b', value },
        { op: 'replace', path: '/a/n', value: 2 },
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'replace', path: '/c/n', value: 3 },
      ]),
    ).toEqual({ a: { n: 2 }, b: { n: 1 }, c: { n: 3 } });
    expect(value).toEqual({ n: 1 });
  });

  test('of a long patch copies a changed list once', () => {
    const list = Array.from({ length: 1_000 }, (_, index) => ({ index, text: `this is message number ${index}` }));
    const patch = diff({ list }, { list: list.slice(300) });
    expect(patch).toHaveLength(300);
    const slice = vi.spyOn(Array.prototype, 'slice');
    const result = applyShared({ list }, patch);
    const copies = slice.mock.contexts.filter((array) => (array as unknown[]).length >= 700);
    slice.mockRestore();
    expect(result.list).toHaveLength(700);
    expect(copies).toHaveLength(1);
  });
});
