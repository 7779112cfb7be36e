/** The part of an error that a client sees. */
import { GenkitError, UserFacingError, z, type StatusName } from 'genkit';
import { parseSchema } from 'genkit/schema';
import { describe, expect, it } from 'vitest';
import { toRuntimeError } from '../../../src/agent/runtime-error.ts';
import { invalidArgument, notFound } from '../../../src/errors.ts';
import { Refusal } from '../../../src/server/answer/refusal.ts';
import { toSafeError } from '../../../src/server/answer/error-for-caller.ts';
import { catchErrorLog } from '../support/log.ts';

const errorLog = catchErrorLog();
const theirs = '6c1b8a52-3f0e-4a43-9d2f-0123456789ab';
const mine = 'a3b5c7d9-3f0e-4a43-9d2f-0123456789ab';

const genkitError = (status: StatusName, message: string, detail?: unknown) =>
  new GenkitError({ status, message, detail });

describe('an error for the caller', () => {
  it.each([
    "Snapshot 'x' is not resumable (status: failed). Only 'completed' snapshots can be resumed.",
    'Give a date as 31/12/2026, and/or a ratio as 1/2.',
    "resume.restart for tool 'pay' (ref: r1) has modified inputs.",
    'You have used 5 of 5 requests. Try again at 12:30:00.',
    'Größe über 5 € — nicht möglich…',
  ])('keeps its message: %s', (message) => {
    for (const error of [invalidArgument(message), new UserFacingError('INVALID_ARGUMENT', message)]) {
      expect(toSafeError(error)).toEqual({ status: 'INVALID_ARGUMENT', message });
      expect(toSafeError(toRuntimeError(error))).toEqual({ status: 'INVALID_ARGUMENT', message });
    }
    expect(errorLog()).toBe('');
  });

  it('keeps details that are meant for the caller', () => {
    const details = { field: 'sum', max: 5 };
    expect(toSafeError(new UserFacingError('OUT_OF_RANGE', 'Too much.', details))).toMatchObject({ details });
    for (const inside of [{ dsn: 'postgres://db/app' }, { owner: theirs }, { text: 'x'.repeat(5000) }, { n: 1n }]) {
      const safe = toSafeError(genkitError('ABORTED', 'No.', inside));
      expect(safe.details).not.toEqual(inside);
    }
  });

  it('names only those ids that the caller named', () => {
    const error = invalidArgument(`Snapshot ${mine} does not belong to you (it belongs to ${theirs}).`);
    const { message } = toSafeError(error, `{"snapshotId":"${mine}"}`);
    expect(message).toBe(`Snapshot ${mine} does not belong to you (it belongs to …).`);
  });

  it('may repeat text that the caller sent, even a path', () => {
    const error = notFound("Snapshot '/etc/app/secrets' not found.");
    expect(toSafeError(error, '{"snapshotId":"/etc/app/secrets"}').message).toBe(error.originalMessage);
    expect(toSafeError(error, '{"snapshotId":"/etc/app/"}').message).not.toContain('/etc');
    expect(toSafeError(error, '{"snapshotId":"/etc/app/s"}').message).not.toContain('/etc');
  });
});

describe('any other error', () => {
  it('becomes its status, a sentence, and an id that the log has too', () => {
    const safe = toSafeError(genkitError('UNAVAILABLE', 'Backend db-7 is down.'));
    expect(safe.status).toBe('UNAVAILABLE');
    expect(safe.message).not.toContain('db-7');
    const { errorId } = safe.details as { errorId: string };
    expect(errorLog()).toContain(errorId);
    expect(errorLog()).toContain('db-7');
  });

  it('keeps the id under which the runtime has logged it already', () => {
    const record = { status: 'INTERNAL', message: 'boom', details: { errorId: mine } };
    expect(toSafeError(record).details).toEqual({ errorId: mine });
  });

  it('is INTERNAL when it is not a GenkitError, with any status', () => {
    const claimed = Object.assign(new Error('User 7 not found in shard 3'), { status: 'WHATEVER' });
    expect(toSafeError(claimed)).toMatchObject({ status: 'INTERNAL' });
    const foreign = Object.assign(new Error('User 7 not found in shard 3'), { status: 'NOT_FOUND' });
    expect(toSafeError(foreign).message).not.toContain('shard');
  });

  it('in a turn is INTERNAL when a model refused the server’s credentials: the caller must not sign in again', () => {
    const message = 'Error fetching from https://models.example/v1: [401 Unauthorized]';
    expect(toSafeError({ status: 'UNAUTHENTICATED', message })).toMatchObject({ status: 'INTERNAL' });
    expect(toSafeError(toRuntimeError(new UserFacingError('PERMISSION_DENIED', 'Refunds need a manager.')))).toEqual({
      status: 'PERMISSION_DENIED',
      message: 'Refunds need a manager.',
    });
    expect(toSafeError(genkitError('UNAUTHENTICATED', message))).toMatchObject({ status: 'UNAUTHENTICATED' });
  });

  it('keeps its status, not its message, when it is a GenkitError that was not written for callers', () => {
    const copy = Object.assign(new Error('ABORTED: Again.'), { status: 'ABORTED', originalMessage: 'Again.' });
    for (const error of [copy, genkitError('ABORTED', 'Again.'), toRuntimeError(copy), { ...toRuntimeError(copy) }]) {
      const safe = toSafeError(error);
      expect(safe).toMatchObject({ status: 'ABORTED', details: { errorId: expect.any(String) as string } });
      expect(safe.message).not.toContain('Again.');
    }
    expect(toSafeError(Object.assign(copy, { name: 'UserFacingError' }))).toEqual({
      status: 'ABORTED',
      message: 'Again.',
    });
  });

  it('is INTERNAL when it was thrown in a turn with an unknown status', () => {
    const foreign = Object.assign(new Error('User 7 not found in shard 3'), { status: 'NOT_FOUND' });
    const safe = toSafeError(toRuntimeError(foreign));
    expect(safe.status).toBe('INTERNAL');
    expect(errorLog()).toContain((safe.details as { errorId: string }).errorId);
    expect(errorLog()).toContain('shard 3');
  });
});

describe('a message that was written for callers', () => {
  it.each([
    'hf_abcdefghijklmnop is not valid',
    'glpat-abcdefghijklmnop',
    'npm_abcdefghijklmnop',
    'SG.abcdefghijk.lmnop',
    'Cookie session=abcdef',
    'x-api-key was 12345',
    'connect ECONNREFUSED 10.0.3.7:5432',
    'ENOENT: no such file, open /secrets',
    'Mail ada@example.com',
    'organization org-a1b2c3 has no quota',
    'at Foo (app.js:10:5)',
  ])('is withheld when it shows something of the inside all the same: %s', (message) => {
    const safe = toSafeError(invalidArgument(message));
    expect(safe).toEqual({
      status: 'INVALID_ARGUMENT',
      message: 'The agent refused the request.',
      details: { errorId: expect.any(String) as string },
    });
  });
});

describe('an error of the application for its user', () => {
  it.each([
    'Sign in at https://app.example/login?next=/orders',
    'Send a header "Bearer <your key>".',
    'Ask ada@example.com.',
  ])('keeps its words, thrown for the request or in a turn: %s', (message) => {
    for (const status of ['UNAUTHENTICATED', 'UNAVAILABLE'] as const) {
      const error = new UserFacingError(status, message, { at: 'https://app.example' });
      const told = { status, message, details: { at: 'https://app.example' } };
      expect(toSafeError(error)).toEqual(told);
      expect(toSafeError(toRuntimeError(error))).toEqual(told);
    }
    expect(errorLog()).toBe('');
  });
});

describe('Genkit’s error about a value that does not fit its schema', () => {
  const mismatch = ((): GenkitError => {
    try {
      parseSchema({ count: 'hunter2' }, { schema: z.object({ count: z.number() }) });
      throw new Error('It fits.');
    } catch (error) {
      return error as GenkitError;
    }
  })();

  it('in a failed turn of Genkit’s keeps its status alone', () => {
    const { status, message, detail } = mismatch;
    const safe = toSafeError({ status, message, details: detail });
    expect(safe.status).toBe('INVALID_ARGUMENT');
    expect(JSON.stringify(safe)).not.toMatch(/hunter2|count/);
  });

  it('thrown is an error of the server: the request was checked before', () => {
    const safe = toSafeError(mismatch);
    expect(safe.status).toBe('INTERNAL');
    expect(JSON.stringify(safe)).not.toContain('hunter2');
  });
});

describe('a refusal', () => {
  it('is sent unchanged', () => {
    expect(toSafeError(new Refusal(413, 'INVALID_ARGUMENT', 'Too long.'))).toEqual({
      status: 'INVALID_ARGUMENT',
      message: 'Too long.',
    });
  });
});
