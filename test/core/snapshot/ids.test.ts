import { describe, expect, it } from 'vitest';
import { assertId, MAX_ID_LENGTH, reserveSnapshotId } from '../../../src/snapshot/ids.ts';
import { HOSTILE_IDS } from '../../conformance/support/hostile-ids.ts';

describe('assertId', () => {
  it('takes every string that is not blank and not too long', () => {
    for (const id of [...HOSTILE_IDS, 'x', 'x'.repeat(MAX_ID_LENGTH)])
      expect(() => assertId(id, 'snapshotId')).not.toThrow();
  });

  it.each([undefined, null, 7, {}, [], true, '', ' ', '\t\n', '\u00A0', 'x'.repeat(MAX_ID_LENGTH + 1)])(
    'refuses %j',
    (id) => {
      const refusal = expect.objectContaining({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('sessionId') as string,
      });
      expect(() => assertId(id, 'sessionId')).toThrow(refusal as Error);
    },
  );

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

describe('reserveSnapshotId', () => {
  it('answers a new UUID each time', () => {
    const ids = Array.from({ length: 100 }, reserveSnapshotId);
    expect(new Set(ids).size).toBe(100);
    for (const id of ids) expect(id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  });
});
