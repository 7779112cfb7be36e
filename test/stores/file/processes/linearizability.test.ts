import { describe, expect, it } from 'vitest';
import { findAnomaly } from './support/linearizability.ts';
import type { Observed } from './scripts/tasks.ts';

describe('findAnomaly', () => {
  const call = (kind: 'save' | 'read', leaf: string | null, start: number, end: number): Observed => ({
    kind,
    leaf,
    start: BigInt(start),
    end: BigInt(end),
  });

  it('accepts calls that overlap', () => {
    const seen = [call('save', 'a', 1, 9), call('save', 'b', 2, 8), call('read', 'a', 3, 7), call('read', null, 1, 6)];
    expect(findAnomaly(['a', 'b'], seen)).toBeUndefined();
  });

  it.each([
    [
      'a save that was acknowledged before the one that precedes it began',
      [call('save', 'a', 5, 6), call('save', 'b', 1, 2)],
    ],
    [
      'a read of a leaf after its successor was acknowledged',
      [call('save', 'a', 1, 2), call('save', 'b', 3, 4), call('read', 'a', 5, 6)],
    ],
    [
      'a read of a leaf before its save began',
      [call('save', 'a', 5, 6), call('save', 'b', 7, 8), call('read', 'a', 1, 2)],
    ],
    ['a save that is not in the history', [call('save', 'a', 1, 2), call('save', 'b', 3, 4), call('save', 'c', 5, 6)]],
    [
      'two reads in the wrong order',
      [call('save', 'a', 1, 9), call('save', 'b', 1, 9), call('read', 'b', 2, 3), call('read', 'a', 4, 5)],
    ],
  ])('finds %s', (_name, seen) => {
    expect(findAnomaly(['a', 'b'], seen)).toBeDefined();
  });
});
