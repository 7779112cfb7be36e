import type { MemoryDraft, MemoryOperation, MemoryScopeId } from '../../../src/store/memory/contract.ts';
import { each, equal, refuses } from '../support/assertions.ts';
import { ADA, draft, note, put } from './support/drafts.ts';
import type { MemorySubject } from './support/kit.ts';

const BAD_SCOPES: readonly unknown[] = [
  undefined,
  null,
  'user',
  {},
  { scope: 'user', appName: 'shop' },
  { scope: 'user', appName: 'shop', userId: '' },
  { scope: 'user', appName: ' ', userId: 'ada' },
  { scope: 'user', appName: 'shop', userId: 'ada', sessionId: 's' },
  { scope: 'app', appName: 'shop', userId: 'ada' },
  { scope: 'session', appName: 'shop', userId: 'ada' },
  { scope: '*', appName: 'shop' },
  { scope: 'user', appName: 'shop', userId: 'l'.repeat(1025) },
  { scope: 'user', appName: 'shop', userId: ['ada'] },
  { scope: 'toString', appName: 'shop' },
];

const BAD_DRAFTS: readonly [string, Partial<Record<keyof MemoryDraft, unknown>>][] = [
  ['a blank id', { id: ' ' }],
  ['a kind', { kind: 'other' }],
  ['no text', { text: undefined }],
  ['topics', { topics: 'said' }],
  ['a confidence', { confidence: 1.1 }],
  ['an importance', { importance: NaN }],
  ['no validFrom', { validFrom: undefined }],
  ['a validTo', { validTo: 'tomorrow' }],
  ['an expiresAt', { expiresAt: 5 }],
  ['no sources', { sources: [] }],
  ['a source without an id', { sources: [{}] }],
  ['a function', { data: () => 1 }],
  ['a date', { data: new Date(0) }],
  ['too many bytes', { data: 'x'.repeat(300_000) }],
];

/** Invalid calls are refused with a message, before anything is written. */
export const refusals: MemorySubject = {
  name: 'refusals',
  tests(kit) {
    kit.test('every method refuses an invalid scope', async ({ a }) => {
      await each(
        BAD_SCOPES,
        (scope) => JSON.stringify(scope) ?? 'undefined',
        async (given) => {
          const scope = given as MemoryScopeId;
          const calls = [
            () => a.get(scope, ['x']),
            () => a.query(scope),
            () => a.revision(scope),
            () => a.changes(scope, { since: 0 }),
            () => a.commit(scope, [put('x')]),
            () => a.revisions(scope, 'x'),
            () => a.bySource(scope, 'x'),
            () => a.notes(scope, 'x'),
            () => a.erase(scope),
            () => a.addJob({ id: 'x', scope, input: 1, sourceId: 's' }, { maxJobs: 1 }),
          ];
          for (const call of calls) await refuses('INVALID_ARGUMENT', call);
        },
      );
      equal((await a.listScopes()).items, [], 'the scopes');
    });

    kit.test('invalid memories, notes and operations are refused, and nothing is written', async ({ a }) => {
      const one = draft('one');
      await each(
        BAD_DRAFTS,
        ([what]) => what,
        async ([, members]) => {
          const memory = { ...one, ...members } as unknown as MemoryDraft;
          await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [put('good'), { op: 'put', memory }]));
        },
      );
      const bad: readonly unknown[] = [
        undefined,
        {},
        { op: 'drop' },
        { op: 'remove' },
        note('', 'x', 1),
        note('n', ' ', 1),
        note('n', 'x', NaN),
      ];
      for (const operation of bad)
        await refuses('INVALID_ARGUMENT', () => a.commit(ADA, [put('good'), operation as MemoryOperation]));
      for (const twice of [
        [put('good'), put('good')],
        [{ op: 'remove', id: 'good' } as const, { op: 'remove', id: 'good' } as const],
        [note('n', 'x', 1), note('n', 'x', 2)],
      ]) {
        await refuses('INVALID_ARGUMENT', () => a.commit(ADA, twice));
      }
      const large = Array.from({ length: 10 }, (_, i) => put(`large ${i}`, { data: 'x'.repeat(250_000) }));
      await refuses('INVALID_ARGUMENT', () => a.commit(ADA, large));
      equal(await a.revision(ADA), 0, 'the revision');
    });

    kit.test('invalid limits, cursors and times are refused', async ({ a }) => {
      const calls = [
        () =>
          a.get(
            ADA,
            Array.from({ length: 101 }, (_, i) => `${i}`),
          ),
        () => a.get(ADA, ['']),
        () => a.query(ADA, { k: 0 }),
        () => a.query(ADA, { k: 1001 }),
        () => a.query(ADA, { k: 1.5 }),
        () => a.query(ADA, { cursor: 'x' }),
        () => a.query(ADA, { asOf: 'yesterday' }),
        () => a.query(ADA, { filter: { kind: 'other' as never } }),
        () => a.changes(ADA, { since: -1 }),
        () => a.commit(ADA, [put('x')], { expectedRevision: -1 }),
        () => a.listScopes({ limit: 0 }),
        () => a.listScopes({ cursor: 'x' }),
        () => a.listJobs({ limit: 1001 }),
        () => a.listJobs({ cursor: 'x' }),
        () => a.listJobs({ state: 'done' as never }),
        () => a.addJob({ id: '', scope: ADA, input: 1, sourceId: 's' }, { maxJobs: 1 }),
        () => a.addJob({ id: 'x', scope: ADA, input: undefined as never, sourceId: 's' }, { maxJobs: 1 }),
        () => a.addJob({ id: 'x', scope: ADA, input: 'x'.repeat(600_000), sourceId: 's' }, { maxJobs: 1 }),
        () => a.changeJob('x', { owner: 'w', to: 'waiting', dueAt: 'soon' }),
        () => a.claimJob({ owner: '', leaseMs: 1 }),
        () => a.claimJob({ owner: 'w', leaseMs: 0 }),
        () => a.changeJob('x', { owner: 'w', to: 'renew' }),
        () => a.changeJob('x', { owner: 'w', to: 'done' as never }),
      ];
      for (const call of calls) await refuses('INVALID_ARGUMENT', call);
    });

    kit.test('a closed store refuses every call', async ({ a, b }) => {
      await a.close();
      await a.close();
      await refuses('FAILED_PRECONDITION', () => a.get(ADA, ['x']));
      await refuses('FAILED_PRECONDITION', () => a.commit(ADA, [put('x')]));
      if (b !== a) equal(await b.get(ADA, ['x']), [], 'the other store');
    });
  },
};
