import assert from 'node:assert/strict';
import type { Json } from '../../../src/json/value.ts';
import type { RecordStore, SessionRecord, WriteRecordOptions } from '../../../src/store/contract.ts';
import { hoursAgo } from './retention.ts';
import { forAll } from '../support/for-all.ts';
import { each, equal, refuses, statusOf, textOf } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import { HOSTILE_IDS, HOSTILE_PREFIXES, hostileOnes } from '../support/hostile-ids.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { playRecords, recordTapes, type RecordOperation } from '../support/record-tape.ts';
import { snapshot } from '../support/snapshots.ts';
import { keyed, NO_VALUES, VALUES } from '../support/value-corpus.ts';

/** Values that belong to a session but are not snapshots. */
export const sessionRecords: Subject = {
  name: 'session records',
  isFor: (kit) => !kit.isForeign && kit.capabilities.records,
  tests(kit) {
    writes(kit);
    expectations(kit);
    concurrency(kit);
    removal(kit);
    values(kit);
    refusals(kit);
    fences(kit);
    tapes(kit);
    lifetime(kit);
  },
};

/** A record of the kind and session that most tests use. */
const NOTE = { sessionId: 'chat', kind: 'note', key: 'one' };

async function write(handle: Handle, options: Partial<WriteRecordOptions>): Promise<string> {
  const revision = await handle.writeRecord({ value: 1, ...NOTE, ...options });
  assert.ok(typeof revision === 'string', `writing a record answered ${String(revision)}`);
  return revision;
}

/** The records, without their revisions. */
function plain(records: readonly SessionRecord[]): unknown[] {
  return records.map(({ kind, key, value }) => [kind, key, value]);
}

async function valueOf(
  handle: Handle,
  name: { sessionId: string; kind: string; key: string } = NOTE,
): Promise<unknown> {
  const { sessionId, kind, key } = name;
  const [record] = await handle.readRecords({ sessionId, kind, keys: [key] });
  return record?.value;
}

function writes(kit: Kit): void {
  kit.test('a record is created, replaced and removed; each write returns a new revision', async ({ a, b }) => {
    equal(await a.readRecords({ sessionId: 'chat' }), [], 'before the first write');
    const revisions: string[] = [];
    for (const [i, value] of ([{ n: 1 }, { n: 2 }, { n: 2 }] as const).entries()) {
      const revision = await write(i % 2 === 0 ? a : b, { value });
      revisions.push(revision);
      for (const handle of [a, b]) {
        const expected = [{ kind: 'note', key: 'one', value, revision }];
        equal(await handle.readRecords({ sessionId: 'chat', kind: 'note' }), expected, `the record after write ${i}`);
      }
    }
    for (const handle of [b, a]) equal(await handle.writeRecord({ ...NOTE, value: undefined }), null, 'a removal');
    equal(await b.readRecords({ sessionId: 'chat' }), [], 'after the removal');
    revisions.push(await write(a, { value: { n: 2 } }));
    equal(new Set(revisions).size, 4, 'distinct revisions');
  });

  kit.test('records are sorted by kind and key in UTF-16 code unit order; kind and keys select', async ({ a, b }) => {
    const keys = ['b', 'a', 'B', '10', '9', '\u{1F600}', '\uFFFD', 'a/b', 'é'];
    const kinds = ['note', 'Note', 'a'];
    for (const [i, key] of keys.entries()) {
      for (const kind of kinds) await write(i % 2 === 0 ? a : b, { kind, key, value: `${kind} ${key}` });
      await write(a, { sessionId: 'other', key, value: 'other' });
    }
    const ofKind = (kind: string, some = keys): unknown[] =>
      some.toSorted().map((key) => [kind, key, `${kind} ${key}`]);
    equal(plain(await b.readRecords({ sessionId: 'chat', kind: 'note' })), ofKind('note'), 'one kind');
    equal(
      plain(await b.readRecords({ sessionId: 'chat' })),
      kinds.toSorted().flatMap((kind) => ofKind(kind)),
      'all kinds',
    );
    const chosen = { sessionId: 'chat', kind: 'Note', keys: ['b', 'unknown', '10', 'b', 'B'] };
    equal(plain(await a.readRecords(chosen)), ofKind('Note', ['b', '10', 'B']), 'some keys, one of them twice');
    const many = Array.from({ length: 100 }, (_, i) => (i === 7 ? 'a' : `unknown ${i}`));
    equal(plain(await a.readRecords({ ...chosen, keys: many })), ofKind('Note', ['a']), '100 keys');
    equal(await a.readRecords({ ...chosen, keys: [] }), [], 'no keys');
    equal(await a.readRecords({ ...chosen, kind: 'unknown' }), [], 'an unknown kind');
  });

  kit.test('a record can be written before the session’s first snapshot, and stays after it', async ({ a, b }) => {
    const revision = await write(a, {});
    equal(await b.bySession('chat'), undefined, 'the session');
    await b.save(
      'first',
      snapshot({ sessionId: 'chat' }),
      kit.capabilities.compareLeaf ? { expectedLeafId: null } : {},
    );
    const expected = [{ kind: 'note', key: 'one', value: 1, revision }];
    equal(await a.readRecords({ sessionId: 'chat' }), expected, 'the records after the first snapshot');
  });

  kit.test('records change no snapshot and no list', async ({ a, b }) => {
    await a.save('one', snapshot({ sessionId: 'chat', messages: 3 }));
    await a.save('two', snapshot({ sessionId: 'later' }));
    const read = async (): Promise<unknown[]> => {
      const all: unknown[] = [await b.byId('one'), await b.bySession('chat')];
      if (kit.capabilities.metadata) all.push(await b.metadata({ snapshotId: 'one' }));
      if (kit.capabilities.list) all.push(await b.listSnapshots({ sessionId: 'chat' }), await b.listSessions());
      return all;
    };
    const before = await read();
    for (const sessionId of ['chat', 'without snapshots']) await write(a, { sessionId });
    await write(b, { ifSnapshot: 'one' });
    equal(await read(), before, 'what is read');
  });
}

function expectations(kit: Kit): void {
  kit.test('a write succeeds only if the record has the expected revision, else it is ABORTED', async ({ a, b }) => {
    const attempt = (expectedRevision: string | null, value: Json | undefined): Promise<unknown> =>
      refuses('ABORTED', () => b.writeRecord({ ...NOTE, value, expectedRevision }), 'chat');
    const first = await write(a, { value: 'first', expectedRevision: null });
    await attempt(null, 'lost');
    const second = await write(b, { value: 'second', expectedRevision: first });
    for (const stale of [first, null, '', 'unknown']) {
      await attempt(stale, 'lost');
      await attempt(stale, undefined);
    }
    for (const handle of [a, b]) await attempt(await write(handle, { key: 'two' }), 'lost');
    equal(await valueOf(a), 'second', 'the record');
    equal(await a.writeRecord({ ...NOTE, value: undefined, expectedRevision: second }), null, 'the removal');
    for (const stale of [first, second]) {
      await attempt(stale, 'lost');
      await attempt(stale, undefined);
    }
    equal(
      await b.writeRecord({ ...NOTE, value: undefined, expectedRevision: null }),
      null,
      'the removal of a missing record',
    );
    equal(await valueOf(a), undefined, 'the record after its removal');
    await write(a, { value: 'second', expectedRevision: null });
    await attempt(second, 'lost');
    equal(await valueOf(b), 'second', 'the record that was created again');
  });

  kit.test('ifSnapshot: a write succeeds only if the session has that snapshot', async ({ a, b }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }));
    await a.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }));
    await a.save('foreign', snapshot({ sessionId: 'other' }));
    await a.save('alone', snapshot());
    for (const ifSnapshot of ['one', 'two']) await write(b, { ifSnapshot, value: ifSnapshot });
    const revision = await write(b, { ifSnapshot: 'two', value: 'kept' });
    for (const ifSnapshot of ['foreign', 'alone', 'unknown', 'chat']) {
      for (const value of ['lost', undefined]) {
        await refuses('ABORTED', () => a.writeRecord({ ...NOTE, value, ifSnapshot }), 'chat');
        await refuses(
          'ABORTED',
          () => a.writeRecord({ ...NOTE, value, ifSnapshot, expectedRevision: revision }),
          'chat',
        );
      }
    }
    const stale = { ...NOTE, value: 'lost', ifSnapshot: 'one', expectedRevision: null };
    await refuses('ABORTED', () => a.writeRecord(stale), 'chat');
    equal(await valueOf(a), 'kept', 'the record');
  });
}

function concurrency(kit: Kit): void {
  kit.test('only one of several concurrent creations through two handles succeeds', async ({ a, b }) => {
    for (let round = 0; round < kit.runs(10, 100); round++) {
      const key = `round ${round}`;
      const create = (value: number): Promise<string | null> =>
        (value % 2 === 0 ? a : b).writeRecord({ ...NOTE, key, value, expectedRevision: null });
      const results = await Promise.allSettled(Array.from({ length: 6 }, (_, i) => create(i)));
      const winners = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [i] : []));
      for (const result of results) {
        if (result.status === 'rejected') equal(statusOf(result.reason), 'ABORTED', 'the losers’ error');
      }
      equal([winners.length, await valueOf(b, { ...NOTE, key })], [1, winners[0]], `the winner of ${key}`);
    }
  });

  kit.test('30 concurrent increments through two handles, tried again on ABORTED, give 30', async ({ a, b }) => {
    const increment = async (handle: Handle): Promise<void> => {
      const [record] = await handle.readRecords({ sessionId: 'chat', kind: 'note', keys: ['one'] });
      const value = Number(record?.value ?? 0) + 1;
      try {
        await handle.writeRecord({ ...NOTE, value, expectedRevision: record?.revision ?? null });
      } catch (error) {
        equal(statusOf(error), 'ABORTED', 'the conflict');
        await increment(handle);
      }
    };
    await Promise.all(Array.from({ length: 30 }, (_, i) => increment(i % 2 === 0 ? a : b)));
    for (const handle of [a, b]) equal(await valueOf(handle), 30, 'the count');
  });

  kit.test('concurrent writes of different records are all kept', async ({ a, b }) => {
    const keys = Array.from({ length: 20 }, (_, i) => `key ${String(i).padStart(2, '0')}`);
    await Promise.all(keys.map((key, i) => write(i % 2 === 0 ? a : b, { key, value: i })));
    const expected = keys.map((key, i) => ['note', key, i]);
    equal(plain(await a.readRecords({ sessionId: 'chat' })), expected, 'the records');
  });
}

function removal(kit: Kit): void {
  /** Tests that `remove` removes the records of its session, and not those of another session. */
  const goesWith = (what: string, remove: (handle: Handle) => Promise<unknown>): void =>
    kit.test(
      `${what} removes the records of its session; a writer that read before can’t write them again`,
      async ({ a, b }) => {
        const revisions = new Map<string, string>();
        for (const sessionId of ['chat', 'kept']) {
          const createdAt = hoursAgo(sessionId === 'chat' ? 9 : 0);
          await a.save(`${sessionId} leaf`, snapshot({ sessionId, createdAt }));
          for (const key of ['one', 'two'])
            revisions.set(sessionId, await write(b, { sessionId, key, value: sessionId }));
          await write(a, { sessionId, kind: 'other', value: sessionId });
        }
        await remove(a);
        for (const handle of [a, b]) equal(await handle.readRecords({ sessionId: 'chat' }), [], 'the records');
        equal((await b.readRecords({ sessionId: 'kept' })).length, 3, 'the records of the other session');
        const late = { ...NOTE, key: 'two', value: 'late' };
        const expectedRevision = revisions.get('chat')!;
        for (const again of [false, true]) {
          // A new session with the same id has none of the records, and refuses a writer that knows the old session.
          if (again) await a.save('new leaf', snapshot({ sessionId: 'chat' }));
          for (const handle of [a, b]) {
            await refuses('ABORTED', () => handle.writeRecord({ ...late, expectedRevision }), 'chat');
            await refuses('ABORTED', () => handle.writeRecord({ ...late, ifSnapshot: 'chat leaf' }), 'chat');
          }
          equal(await b.readRecords({ sessionId: 'chat' }), [], `the records${again ? ' of the new session' : ''}`);
        }
        await write(b, { ifSnapshot: 'new leaf', value: 'new', expectedRevision: null });
        equal(
          plain(await a.readRecords({ sessionId: 'chat' })),
          [['note', 'one', 'new']],
          'the record of the new session',
        );
      },
    );

  if (kit.capabilities.delete) {
    goesWith('deleteSession', (handle) => handle.deleteSession('chat'));
    kit.test('deleteSession removes records of a session without snapshots', async ({ a, b }) => {
      for (const sessionId of ['chat', 'kept']) await write(a, { sessionId });
      equal((await b.deleteSession('chat')).snapshots, 0, 'deleted snapshots');
      for (const handle of [a, b]) equal(await handle.readRecords({ sessionId: 'chat' }), [], 'the records');
      equal((await a.readRecords({ sessionId: 'kept' })).length, 1, 'the records of the other session');
    });
    kit.test('no record outlives a deletion that it races with', async ({ a, b }) => {
      for (let round = 0; round < kit.runs(10, 100); round++) {
        await a.save(`leaf ${round}`, snapshot({ sessionId: 'chat' }));
        const revision = await write(b, {});
        const late = [
          { ...NOTE, value: 'late', expectedRevision: revision },
          { ...NOTE, key: 'late', value: 'late', ifSnapshot: `leaf ${round}` },
          { ...NOTE, key: 'created', value: 'late', ifSnapshot: `leaf ${round}`, expectedRevision: null },
        ];
        const [gone, ...results] = await Promise.allSettled([
          a.deleteSession('chat'),
          ...late.map((options) => b.writeRecord(options)),
        ]);
        equal(gone.status, 'fulfilled', `the deletion in round ${round}`);
        for (const result of results) {
          if (result.status === 'rejected') equal(statusOf(result.reason), 'ABORTED', 'the late write');
        }
        equal(plain(await b.readRecords({ sessionId: 'chat' })), [], `the records after round ${round}`);
      }
    });
  }
  if (!kit.capabilities.prune) return;
  goesWith('prune', (handle) => handle.prune({ idleMs: 3_600_000 }));
  kit.test(
    'pruning snapshots and a dry run keep the records, also those of a session without a snapshot',
    async ({ a, b }) => {
      for (const [i, id] of ['r', 's', 't'].entries()) {
        const parentId = i === 0 ? {} : { parentId: ['r', 's'][i - 1]! };
        await a.save(id, snapshot({ sessionId: 'chat', createdAt: hoursAgo(9 - i), ...parentId }));
      }
      for (const sessionId of ['chat', 'without snapshots']) await write(b, { sessionId });
      equal((await a.prune({ maxChainLength: 1 })).snapshots, 2, 'pruned snapshots');
      equal((await b.prune({ idleMs: 0 }, { dryRun: true })).sessions, 1, 'sessions that would go');
      await a.prune({ maxAgeMs: 0 });
      for (const sessionId of ['chat', 'without snapshots']) {
        equal((await b.readRecords({ sessionId })).length, 1, `the records of ${sessionId}`);
      }
      equal(
        (await b.prune({ idleMs: 3_600_000 })).sessions,
        1,
        'the session that is idle, though a record was written',
      );
    },
  );
}

function values(kit: Kit): void {
  kit.test(`values: ${VALUES.length} values come back from records`, async ({ a, b }) => {
    await each(
      VALUES,
      ([name]) => name,
      async ([name, value]) => {
        const key = name.slice(0, 1024);
        await write(a, { key, value: value as Json });
        equal(await valueOf(b, { ...NOTE, key }), value, name);
        await write(b, { key, value: keyed('__proto__', value) });
        equal(await valueOf(a, { ...NOTE, key }), keyed('__proto__', value), `${name}, as a member`);
      },
    );
    equal((await b.readRecords({ sessionId: 'chat' })).length, VALUES.length, 'the records');
  });

  kit.test('the store shares no object of a record with its callers', async ({ a, b }) => {
    const given: Json = { list: [{ n: 1 }] };
    const spoil = (value: unknown): void => void (value as { list: unknown[] }).list.push({ n: 2 });
    await write(a, { value: given });
    spoil(given);
    for (const handle of [a, b]) spoil(await valueOf(handle));
    for (const handle of [a, b]) equal(await valueOf(handle), { list: [{ n: 1 }] }, 'the record');
  });
}

function refusals(kit: Kit): void {
  kit.test('invalid ids, values, revisions and keys are refused, and nothing is written', async ({ a, b }) => {
    const revision = await write(a, { value: 'kept' });
    const refusesWrite = (options: object, mention?: string): Promise<unknown> =>
      refuses('INVALID_ARGUMENT', () => a.writeRecord({ ...NOTE, value: 'lost', ...options }), mention);
    const refusesRead = (options: unknown): Promise<unknown> =>
      refuses('INVALID_ARGUMENT', () => a.readRecords(options as { sessionId: string }));
    for (const bad of ['', ' ', 7, null, {}, 'x'.repeat(1025)]) {
      for (const name of ['sessionId', 'kind', 'key', 'ifSnapshot']) await refusesWrite({ [name]: bad });
      for (const name of ['sessionId', 'kind']) await refusesRead({ ...NOTE, [name]: bad });
      await refusesRead({ sessionId: 'chat', kind: 'note', keys: ['one', bad] });
    }
    for (const bad of [7, {}, true]) await refusesWrite({ expectedRevision: bad });
    const tooMany = Array.from({ length: 101 }, (_, i) => `key ${i}`);
    for (const keys of [tooMany, 'one', null]) await refusesRead({ sessionId: 'chat', kind: 'note', keys });
    await refusesRead({ sessionId: 'chat', keys: ['one'] });
    for (const [, make] of NO_VALUES) await refusesWrite({ value: { list: [{ bad: make() }] } }, '/list/0/bad');
    for (const large of ['x'.repeat(512 * 1024), Array.from({ length: 90_000 }, () => '日')]) {
      await refusesWrite({ value: large }, 'chat');
      await refusesWrite({ value: large, key: 'new' }, 'chat');
    }
    const store = a.store as unknown as RecordStore;
    await refuses('INVALID_ARGUMENT', () => store.readRecords(undefined as never));
    await refuses('INVALID_ARGUMENT', () => store.writeRecord(undefined as never));
    const kept = [{ kind: 'note', key: 'one', value: 'kept', revision }];
    for (const handle of [a, b]) equal(await handle.readRecords({ sessionId: 'chat' }), kept, 'the records');
    const largest = 'x'.repeat(512 * 1024 - 2);
    await write(a, { value: largest });
    equal((await valueOf(b)) === largest, true, 'the largest value came back');
  });
}

function fences(kit: Kit): void {
  const ids = hostileOnes(kit, HOSTILE_IDS);
  kit.test(`record fence: ${ids.length} hostile ids name a session, a kind and a key each`, async ({ a, b }) => {
    const names = ids.flatMap((id) => [
      { ...NOTE, sessionId: id },
      { ...NOTE, kind: id },
      { ...NOTE, key: id },
    ]);
    for (let at = 0; at < names.length; at += 30) {
      const some = names.slice(at, at + 30);
      await Promise.all(some.map((name, i) => write(i % 2 === 0 ? a : b, { ...name, value: at + i })));
    }
    await each(
      [...names.entries()],
      ([, name]) => JSON.stringify(name),
      async ([value, name]) => equal(await valueOf(value % 2 === 0 ? b : a, name), value, 'the record'),
    );
    equal((await b.readRecords({ sessionId: 'chat', kind: 'note' })).length, ids.length, 'the keys');
    equal((await b.readRecords({ sessionId: 'chat' })).length, 2 * ids.length, 'all records of the session');
  });

  kit.test('record fence: names that would join to the same text have separate records', async ({ a, b }) => {
    const names = ['/', ':', '","', '\u0000'].flatMap((between) => {
      const parts = ['a', 'b', `a${between}b`, `b${between}b`];
      const pairs = parts.flatMap((kind) => parts.map((key) => ({ kind, key })));
      return ['a', `a${between}b`].flatMap((sessionId) => pairs.map((pair) => ({ sessionId, ...pair })));
    });
    for (const name of names) await write(a, { ...name, value: textOf(name) });
    const expectedOf = (sessionId: string): unknown[] => [
      ...new Set(names.filter((name) => name.sessionId === sessionId).map(textOf)),
    ];
    const sessions = new Set(names.map(({ sessionId }) => sessionId));
    for (const sessionId of sessions) {
      const read = (await b.readRecords({ sessionId })).map(({ value }) => value);
      equal(sorted(read), sorted(expectedOf(sessionId)), `the records of ${sessionId}`);
    }
    if (!kit.capabilities.delete) return;
    await a.deleteSession('a');
    for (const sessionId of sessions) {
      const count = sessionId === 'a' ? 0 : expectedOf(sessionId).length;
      equal((await b.readRecords({ sessionId })).length, count, `the records of ${sessionId} after a deletion`);
    }
  });

  if (!kit.hasTenants) return;
  const prefixes = hostileOnes(kit, HOSTILE_PREFIXES);
  kit.test(
    `tenant fence: ${prefixes.length} hostile prefixes have separate records`,
    async ({ a, b }) => {
      const revisions: string[] = [];
      for (const [value, tenant] of prefixes.entries()) {
        equal(await b.as(tenant).readRecords({ sessionId: 'chat' }), [], `${tenant} before its first write`);
        revisions.push(await write(a.as(tenant), { value, expectedRevision: null }));
      }
      for (const [own, tenant] of prefixes.entries()) {
        equal(await valueOf(b.as(tenant)), own, `the record of ${tenant}`);
        const expectedRevision = revisions.at(own - 1)!;
        await refuses('ABORTED', () => b.as(tenant).writeRecord({ ...NOTE, value: 'lost', expectedRevision }));
        if (own % 2 === 0) await b.as(tenant).writeRecord({ ...NOTE, value: undefined });
        else if (own % 3 === 0 && kit.capabilities.delete) await b.as(tenant).deleteSession('chat');
      }
      for (const [own, tenant] of prefixes.entries()) {
        const isGone = own % 2 === 0 || (own % 3 === 0 && kit.capabilities.delete);
        equal(await valueOf(a.as(tenant)), isGone ? undefined : own, `what ${tenant} has left`);
      }
      for (const bad of [undefined, null, '', 7]) {
        await refuses('INVALID_ARGUMENT', () => a.as(bad).readRecords({ sessionId: 'chat' }));
        await refuses('INVALID_ARGUMENT', () => a.as(bad).writeRecord({ ...NOTE, value: 'lost' }));
      }
    },
    kit.manyTenants,
  );
}

function tapes(kit: Kit): void {
  const random = kit.property(40, 1000);
  kit.test(
    `on ${random.numRuns} random tapes of up to 60 operations the store and a plain model agree (seed ${random.seed})`,
    () => {
      const play = (tape: RecordOperation[]): Promise<void> => kit.onStage(({ a, b }) => playRecords(tape, [a, b]));
      return forAll(recordTapes(kit.capabilities), play, random);
    },
  );
}

function lifetime(kit: Kit): void {
  const { durable } = kit.capabilities;
  kit.test(durable ? 'records outlive the store object' : 'records end with the store', async ({ a, b, stores }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }));
    for (const sessionId of ['chat', 'without snapshots']) await write(b, { sessionId, value: { of: sessionId } });
    const before = await a.readRecords({ sessionId: 'chat' });
    for (const store of new Set([a.store, b.store])) await kit.handle(store).close();
    await refuses('FAILED_PRECONDITION', () => a.readRecords({ sessionId: 'chat' }));
    await refuses('FAILED_PRECONDITION', () => a.writeRecord({ ...NOTE, value: 'lost' }));
    if (!stores.reopen) return;
    const again = kit.handle(await stores.reopen());
    equal(await again.readRecords({ sessionId: 'chat' }), durable ? before : [], 'after reopening');
    if (durable) {
      equal(
        await valueOf(again, { ...NOTE, sessionId: 'without snapshots' }),
        { of: 'without snapshots' },
        'the other',
      );
      await write(again, { expectedRevision: before[0]!.revision, ifSnapshot: 'one' });
    }
    await again.close();
  });
}

/** Sorts the values, so that the order of the list does not matter. */
function sorted(values: readonly unknown[]): string[] {
  return values.map((value) => JSON.stringify(value)).toSorted((a, b) => (a < b ? -1 : 1));
}
