import { describe, expect, it } from 'vitest';
import { JsonValueError } from '../../../src/json/value.ts';
import { guarded } from '../../../src/snapshot/own-copy.ts';
import { revise, type SessionSnapshotInput } from '../../../src/snapshot/snapshot.ts';

const now = (): string => '2026-06-01T00:00:00.000Z';
const createdAt = '2026-01-01T00:00:00.000Z';
const input: SessionSnapshotInput = { createdAt, updatedAt: createdAt, sessionId: 'chat', status: 'pending' };

describe('revise', () => {
  it('makes a new snapshot of an answer, with its id, and with a time when it has none', () => {
    expect(revise('one', undefined, { ...input, snapshotId: 'other' }, now)).toEqual({ ...input, snapshotId: 'one' });
    const { createdAt: _, ...timeless } = input;
    expect(revise('one', undefined, timeless as SessionSnapshotInput, now).createdAt).toBe(now());
  });

  it('takes createdAt for an updatedAt that is not given', () => {
    const { updatedAt: _, ...first } = input;
    expect(revise('one', undefined, first, now)).toEqual({ ...input, snapshotId: 'one' });
    const current = { ...input, snapshotId: 'one', updatedAt: 'later' };
    expect(revise('one', current, { ...first, createdAt: 'other' }, now).updatedAt).toBe(createdAt);
    expect(revise('one', current, { ...first, updatedAt: 'now' }, now).updatedAt).toBe('now');
  });

  it('does not change what it is given', () => {
    const current = Object.freeze({ ...input, snapshotId: 'one', parentId: 'root' });
    const answer = Object.freeze({ ...input, createdAt: 'later', status: 'completed' as const });
    expect(revise('one', current, answer, now)).toEqual({ ...current, status: 'completed' });
  });

  it('names no session beside a state that names the same one', () => {
    const byState = { createdAt: 'x', snapshotId: 'one', state: { sessionId: 'chat' } };
    expect('sessionId' in revise('one', byState, byState, now)).toBe(false);
  });

  it('refuses a promise, and leaves no rejection behind when that fails', async () => {
    const failing = Promise.reject(new Error('never seen'));
    const save = (): unknown => revise('one', undefined, failing as unknown as SessionSnapshotInput, now);
    expect(save).toThrow('promise');
    await expect(failing).rejects.toThrow('never seen');
  });
});

describe('guarded', () => {
  it('turns a value that JSON cannot hold into an invalid argument with the whole path', () => {
    const copy = (): never => {
      throw new JsonValueError('/custom/f', 'it is a function; store the data that it stands for');
    };
    const refusal = {
      status: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/"one".*"\/state\/custom\/f": it is a function/) as string,
    };
    expect(() => guarded('one', '/state', copy)).toThrow(expect.objectContaining(refusal) as Error);
  });

  it('passes on everything else', () => {
    const mine = new Error('mine');
    const fail = (): never => {
      throw mine;
    };
    expect(() => guarded('one', '', fail)).toThrow(mine);
    expect(guarded('one', '', () => 7)).toBe(7);
  });
});
