import { describe, expect, it } from 'vitest';
import { assertId, reserveSnapshotId } from '../../../src/snapshot/ids.ts';

describe('assertId', () => {
  it('says what is too long in one line', () => {
    let message = '';
    try {
      assertId('\n'.repeat(3000) + 'x', 'parentId');
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message.length).toBeLessThan(250);
    expect(message).toContain('3001 characters');
    expect(message).not.toContain('\n');
  });
});

it.each([
  ['appName', 'An appName must not be blank.'],
  ['expectedLeafId', 'An expectedLeafId must not be blank.'],
  ['userId', 'A userId must not be blank.'],
  ['sessionId', 'A sessionId must not be blank.'],
] as const)('assertId names a blank %s with its article', (kind, message) => {
  expect(() => assertId(' ', kind)).toThrow(message);
});

describe('reserveSnapshotId', () => {
  it('answers a new UUID each time', () => {
    const ids = Array.from({ length: 100 }, reserveSnapshotId);
    expect(new Set(ids).size).toBe(100);
    for (const id of ids) expect(id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  });
});
