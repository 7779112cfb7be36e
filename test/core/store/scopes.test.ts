import { describe, expect, it } from 'vitest';
import { StateError } from '../../../src/errors.ts';
import type { ScopeChange, ScopeId } from '../../../src/store/contract.ts';
import {
  checkScopeChanges,
  MAX_RECORD_BYTES,
  runScopeChange,
  scopeKey,
} from '../../../src/store/records/record-scopes.ts';

const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };
const change = (answer: unknown): ScopeChange => ({ id: ADA, change: () => answer as never });

describe('a change of a record', () => {
  it('that changes nothing has nothing to be written', () => {
    expect(runScopeChange(change(undefined), { n: 1 })).toBeUndefined();
    expect(runScopeChange(change({ b: [1], a: 0 }), { a: 0, b: [1] })).toBeUndefined();
    expect(runScopeChange(change({}))).toBeUndefined();
    expect(runScopeChange(change({ a: -0 }), { a: 0 })).toEqual({ a: -0 });
    expect(runScopeChange(change({}), { a: 0 })).toEqual({});
  });

  it('may take as many bytes as a record', () => {
    const large = { x: 'x'.repeat(MAX_RECORD_BYTES - '{"x":""}'.length) };
    expect(runScopeChange(change(large))).toEqual(large);
    expect(() => runScopeChange(change({ x: `${large.x}x` }))).toThrow('more than 524288 bytes');
  });

  it('is refused with the key and the path in its value', () => {
    try {
      runScopeChange(change({ 'a/b': { list: [undefined] } }));
      expect.unreachable();
    } catch (error) {
      if (!StateError.isInstance(error)) throw error;
      expect([error.status, error.key, error.path]).toEqual(['INVALID_ARGUMENT', 'a/b', '/list/0']);
    }
  });
});

describe('the name of a record', () => {
  it('is another text for another record', () => {
    const ids: ScopeId[] = [
      { scope: 'app', appName: 'a' },
      { scope: 'user', appName: 'a', userId: 'b' },
      { scope: 'user', appName: 'a","b', userId: 'c' },
      { scope: 'user', appName: 'a', userId: 'b","c' },
      { scope: 'user', appName: '\uD800', userId: 'b' },
      { scope: 'user', appName: '\\ud800', userId: 'b' },
      { scope: 'user', appName: '\uFFFD', userId: 'b' },
    ];
    expect(new Set(ids.map(scopeKey)).size).toBe(ids.length);
    expect(scopeKey({ userId: 'b', appName: 'a', scope: 'user' })).toBe(scopeKey(ids[1]!));
  });
});

describe('scopes of a save', () => {
  it('may be none', () => {
    expect([...checkScopeChanges(undefined)]).toEqual([]);
  });
});
