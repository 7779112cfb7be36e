import assert from 'node:assert/strict';
import type {
  ScopeChange,
  ScopeId,
  ScopeRecord,
  SessionSnapshotInput,
  ScopeStore,
} from '../../../src/store/contract.ts';
import { each, equal, refuses, textOf } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import { HOSTILE_IDS, HOSTILE_PREFIXES, hostileOnes } from '../support/hostile-ids.ts';
import type { Kit, Stage, Subject } from '../support/kit.ts';
import { playScopes, scopeTapes, type ScopeOperation } from '../support/scope-tape.ts';
import { message, snapshot } from '../support/snapshots.ts';
import { keyed, NO_VALUES, VALUES } from '../support/value-corpus.ts';
import { forAll } from '../support/for-all.ts';

const APP: ScopeId = { scope: 'app', appName: 'shop' };
const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };
const EVE: ScopeId = { scope: 'user', appName: 'shop', userId: 'eve' };

/** Records that sessions share and that change with the snapshots. */
export const scopes: Subject = {
  name: 'scopes',
  isFor: (kit) => !kit.isForeign,
  tests(kit) {
    if (!kit.capabilities.scopes) return without(kit);
    changes(kit);
    allOrNothing(kit);
    concurrency(kit);
    time(kit);
    values(kit);
    fences(kit);
    removal(kit);
    if (kit.capabilities.details) listing(kit);
  },
};

/** Puts these members into the record. */
function put(id: ScopeId, members: ScopeRecord): ScopeChange {
  return { id, change: (record) => ({ ...record, ...members }) };
}

function increment(id: ScopeId, key = 'n'): ScopeChange {
  return { id, change: (record) => ({ ...record, [key]: Number(record[key] ?? 0) + 1 }) };
}

function changing(id: ScopeId, change: unknown): ScopeChange {
  return { id, change: change as ScopeChange['change'] };
}

function without(kit: Kit): void {
  kit.test('a store without scopes refuses a save with scopes, and saves nothing', async ({ a, b }) => {
    const save = (): unknown =>
      a.save('one', () => assert.fail('the mutator ran'), { scopes: [put(ADA, { theme: 'dark' })] });
    await refuses('FAILED_PRECONDITION', save, 'scopes');
    equal(await b.byId('one'), undefined, 'the snapshot');
    equal(await a.save('one', snapshot({ sessionId: 'chat' }), { scopes: [] }), 'one', 'a save that names none');
  });
}

function changes(kit: Kit): void {
  kit.test('a record is empty at first, and changes together with a snapshot', async ({ a, b }) => {
    equal(await a.readScopes([ADA, APP]), [{}, {}], 'before the first save');
    equal(await a.readScopes([]), [], 'no scopes');
    const saved = await a.save('one', snapshot({ sessionId: 'chat' }), {
      scopes: [put(ADA, { theme: 'dark' }), put(APP, { discount: 5 })],
    });
    equal(saved, 'one', 'the id');
    for (const handle of [a, b]) {
      equal(
        await handle.readScopes([APP, ADA, EVE, APP]),
        [{ discount: 5 }, { theme: 'dark' }, {}, { discount: 5 }],
        'all',
      );
    }
    await b.save(undefined, snapshot({ sessionId: 'chat', parentId: 'one' }), { scopes: [put(ADA, { size: 2 })] });
    equal(await a.scope(ADA), { theme: 'dark', size: 2 }, 'after the next turn');
  });

  kit.test(
    'a change gets the current record, keeps it with undefined, removes it with an empty record',
    async ({ a, b }) => {
      const seen: unknown[] = [];
      const noting = (answer: ScopeRecord | undefined): ScopeChange =>
        changing(ADA, (record: ScopeRecord) => {
          seen.push(record);
          return answer;
        });
      const answers: (ScopeRecord | undefined)[] = [{ n: 1 }, undefined, {}, { n: 2 }];
      for (const [i, answer] of answers.entries()) {
        await (i % 2 === 0 ? a : b).save(`turn ${i}`, snapshot({ sessionId: 'chat' }), { scopes: [noting(answer)] });
      }
      equal([...new Set(seen.map(textOf))], ['{}', '{"n":1}'], 'what the changes got');
      equal(await b.scope(ADA), { n: 2 }, 'the record');
    },
  );

  kit.test(
    'an invalid record id, a repeated record id and an invalid change are refused before the mutator runs',
    async ({ a }) => {
      const noIds = [
        undefined,
        null,
        'user',
        {},
        { scope: 'tenant', appName: 'shop' },
        { scope: 'user', appName: 'shop' },
      ];
      const badNames = ['', ' ', 7, null, 'x'.repeat(1025)].flatMap((name) => [
        { scope: 'app', appName: name },
        { scope: 'user', appName: 'shop', userId: name },
      ]);
      for (const id of [...noIds, ...badNames, { ...ADA, scope: 'app' }] as ScopeId[]) {
        await refuses('INVALID_ARGUMENT', () => a.readScopes([id]));
        await refuses('INVALID_ARGUMENT', () => a.deleteScope(id));
        await refusesBefore(a, [put(id, { n: 1 })]);
      }
      await refuses('INVALID_ARGUMENT', () => a.readScopes('all' as never));
      await refuses('INVALID_ARGUMENT', () => (a.store as unknown as ScopeStore).readScopes(undefined as never));
      await refuses('INVALID_ARGUMENT', () => (a.store as unknown as ScopeStore).deleteScope(undefined as never));
      await refusesBefore(a, [put(ADA, { n: 1 }), put({ ...ADA }, { m: 1 })]);
      await refusesBefore(a, [changing(ADA, { n: 1 })]);
      await refusesBefore(a, {} as never);
      equal(await a.scope(ADA), {}, 'the record');
    },
  );
}

async function refusesBefore(handle: Handle, list: readonly ScopeChange[]): Promise<void> {
  const save = (): unknown => handle.save('one', () => assert.fail('the mutator ran'), { scopes: list });
  await refuses('INVALID_ARGUMENT', save);
}

/** Saves a session with the leaf `two`, and records that are not empty. */
async function begin({ a }: Stage): Promise<void> {
  await a.save('one', snapshot({ sessionId: 'chat' }), { scopes: [put(ADA, { n: 1 }), put(APP, { n: 1 })] });
  await a.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }));
}

async function isAsBegun({ a, b }: Stage, what: string): Promise<void> {
  for (const handle of [a, b]) {
    equal(await handle.readScopes([ADA, APP, EVE]), [{ n: 1 }, { n: 1 }, {}], `the records after ${what}`);
    equal(await handle.byId('three'), undefined, `the snapshot after ${what}`);
    equal(await handle.leafId('chat'), 'two', `the leaf after ${what}`);
  }
}

function allOrNothing(kit: Kit): void {
  const three = snapshot({ sessionId: 'chat', parentId: 'two' });
  const all = [increment(ADA), increment(APP), increment(EVE)];

  kit.test('a save that is skipped, fails or is refused changes no record', async (stage) => {
    const { a } = stage;
    await begin(stage);
    const mine = new Error('mine');
    equal(await a.save('three', () => null, { scopes: all }), null, 'the answer of a skipped save');
    await isAsBegun(stage, 'a skipped save');
    const throwing = (): never => {
      throw mine;
    };
    await assert.rejects(a.save('three', throwing, { scopes: all }), (error) => error === mine);
    await isAsBegun(stage, 'a mutator that throws');
    const refusals: [string, string, SessionSnapshotInput][] = [
      ['a status that is final', 'one', { ...snapshot({ sessionId: 'chat' }), status: 'failed' }],
      ['a move to another session', 'one', snapshot({ sessionId: 'other' })],
      ['a parent that it is itself', 'three', { ...three, parentId: 'three' }],
    ];
    for (const [what, id, input] of refusals) {
      await refuses('FAILED_PRECONDITION', () => a.save(id, input, { scopes: all }));
      await isAsBegun(stage, what);
    }
    const bad = snapshot({ sessionId: 'chat', custom: { bad: Number.NaN } });
    await refuses('INVALID_ARGUMENT', () => a.save('three', bad, { scopes: all }));
    await isAsBegun(stage, 'a state that is not JSON');
  });

  if (kit.capabilities.compareLeaf) {
    kit.test('a save that loses to another turn changes no record', async (stage) => {
      await begin(stage);
      for (const expectedLeafId of ['one', null]) {
        const save = (): unknown => stage.b.save('three', three, { expectedLeafId, scopes: all });
        await refuses('ABORTED', save, 'chat');
        await isAsBegun(stage, 'a conflict');
      }
      await stage.b.save('three', three, { expectedLeafId: 'two', scopes: all });
      equal(await stage.a.readScopes([ADA, APP, EVE]), [{ n: 2 }, { n: 2 }, { n: 1 }], 'after the save that won');
    });
  }

  kit.test(
    'a change that throws or does not return a record saves nothing, at any position in the list',
    async (stage) => {
      await begin(stage);
      const mine = new Error('mine');
      const throwing = changing(EVE, () => {
        throw mine;
      });
      for (const list of [
        [throwing, increment(ADA)],
        [increment(ADA), throwing],
      ]) {
        await assert.rejects(stage.a.save('three', three, { scopes: list }), (error) => error === mine);
        await isAsBegun(stage, 'a change that throws');
      }
      for (const answer of [null, 7, 'text', [], new Map(), Promise.resolve({ n: 2 })]) {
        const list = [increment(ADA), changing(EVE, () => answer)];
        await refuses('INVALID_ARGUMENT', () => stage.b.save('three', three, { scopes: list }), 'eve');
        await isAsBegun(stage, 'no record');
      }
    },
  );

  kit.test('a save that is tried again under its own id changes a record once', async ({ a, b }) => {
    for (const handle of [a, b, a]) {
      await handle.save('one', (current) => (current ? null : snapshot({ sessionId: 'chat' })), {
        scopes: [increment(ADA)],
      });
    }
    equal(await b.scope(ADA), { n: 1 }, 'the record');
  });
}

function concurrency(kit: Kit): void {
  const total = 4 * kit.runs(50, 50);
  kit.test(
    `atomic update: ${total} concurrent increments from as many sessions through two handles give ${total}`,
    async ({ a, b }) => {
      const saves = Array.from({ length: total }, (_, i) =>
        (i % 2 === 0 ? a : b).save(`turn ${i}`, snapshot({ sessionId: `session ${i}` }), {
          scopes: [increment(APP), increment(i % 4 < 2 ? ADA : EVE)],
        }),
      );
      await Promise.all(saves);
      for (const handle of [a, b]) {
        equal(
          await handle.readScopes([APP, ADA, EVE]),
          [{ n: total }, { n: total / 2 }, { n: total / 2 }],
          'the records',
        );
      }
    },
  );

  kit.test('changes of different keys of one user by two sessions are all kept', async ({ a, b }) => {
    for (let round = 0; round < kit.runs(20, 200); round++) {
      const keys = ['first', 'second', 'third', 'fourth'];
      const saves = keys.map((key, i) =>
        (i % 2 === 0 ? a : b).save(`round ${round}, ${key}`, snapshot({ sessionId: key }), {
          scopes: [put(ADA, { [key]: round })],
        }),
      );
      await Promise.all(saves);
      equal(await b.scope(ADA), Object.fromEntries(keys.map((key) => [key, round])), `round ${round}`);
    }
  });

  kit.test('racing first saves of one snapshot that skip change no record', async ({ a, b }) => {
    for (let round = 0; round < kit.runs(20, 20); round++) {
      const saves = Array.from({ length: 6 }, (_, i) =>
        (i % 2 === 0 ? a : b).save(`turn ${round}`, (current) => (current ? null : snapshot({ sessionId: 'chat' })), {
          scopes: [increment(ADA)],
        }),
      );
      const answers = await Promise.all(saves);
      equal(answers.filter((id) => id !== null).length, 1, 'saves that were made');
      equal(await a.scope(ADA), { n: round + 1 }, `the record after round ${round}`);
    }
  });
}

function time(kit: Kit): void {
  kit.test('rewriting, branching, deleting and pruning do not change records', async ({ a, b }) => {
    for (let turn = 0; turn < 6; turn++) {
      const parentId = turn === 0 ? {} : { parentId: `turn ${turn - 1}` };
      await a.save(`turn ${turn}`, snapshot({ sessionId: 'chat', ...parentId }), { scopes: [increment(ADA)] });
    }
    await b.save('turn 5', (current) => ({ ...current!, state: { custom: { rewritten: true } } }));
    equal(await a.scope(ADA), { n: 6 }, 'after a rewrite');
    await b.save('branch', snapshot({ sessionId: 'chat', parentId: 'turn 1' }), { scopes: [increment(ADA)] });
    equal(await a.scope(ADA), { n: 7 }, 'after a turn on an early snapshot');
    if (kit.capabilities.prune) await a.prune({ maxChainLength: 1 });
    if (kit.capabilities.prune) await a.prune({ idleMs: 0 });
    if (kit.capabilities.delete) await b.deleteSession('chat');
    equal(await a.scope(ADA), { n: 7 }, 'after its sessions were removed');
  });

  kit.test('snapshots and lists contain no part of a record', async ({ a, b }) => {
    const canary = 'canary of the record';
    const list = [put(ADA, { [`key ${canary}`]: canary }), put(APP, { [`key ${canary}`]: canary })];
    await a.save('one', snapshot({ sessionId: 'chat', messages: 3 }), { scopes: list });
    await b.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }), { scopes: list });
    const read: unknown[] = [await b.byId('one'), await b.byId('two'), await b.bySession('chat')];
    if (kit.capabilities.metadata) read.push(await b.metadata({ snapshotId: 'two' }));
    if (kit.capabilities.list) read.push(await b.listSnapshots({ sessionId: 'chat' }), await b.listSessions());
    assert.ok(!textOf(read).includes(canary), 'the canary is in what was read');
  });

  kit.test(
    kit.capabilities.durable ? 'records outlive the store object' : 'records end with the store',
    async (stage) => {
      await stage.a.save('one', snapshot({ sessionId: 'chat' }), { scopes: [put(ADA, { theme: 'dark' })] });
      for (const handle of new Set([stage.a.store, stage.b.store])) await kit.handle(handle).close();
      await refuses('FAILED_PRECONDITION', () => stage.a.readScopes([ADA]));
      await refuses('FAILED_PRECONDITION', () => stage.a.deleteScope(ADA));
      if (!stage.stores.reopen) return;
      const again = kit.handle(await stage.stores.reopen());
      equal(await again.scope(ADA), kit.capabilities.durable ? { theme: 'dark' } : {}, 'after reopening');
      await again.close();
    },
  );
}

function values(kit: Kit): void {
  const all = kit.some(VALUES);
  kit.test(`values: ${all.length} values come back from records, in one record and in many`, async ({ a, b }) => {
    await each(
      all,
      ([name]) => name,
      async ([name, value]) => {
        const id: ScopeId = { scope: 'user', appName: 'values', userId: name };
        const record = keyed(name, value);
        await a.save(undefined, snapshot(), { scopes: [changing(id, () => record)] });
        equal(await b.scope(id), record, name);
        await b.save(undefined, snapshot(), {
          scopes: [changing(id, (all: ScopeRecord) => Object.assign(all, { more: 1 }))],
        });
        equal(await a.scope(id), Object.assign(keyed(name, value), { more: 1 }), `${name}, after another change`);
      },
    );
  });

  kit.test('values: keys are data', async ({ a, b }) => {
    for (const key of [
      '__proto__',
      'constructor',
      'toString',
      'a.b',
      '~/',
      '',
      ' ',
      '\u0000',
      '\uD800',
      'user:x',
      '__x__',
    ]) {
      const record = keyed(key, { deep: [1] });
      await a.save(undefined, snapshot(), { scopes: [changing(ADA, () => record)] });
      equal(await b.scope(ADA), record, key);
    }
  });

  kit.test(
    'values: a value that JSON can’t represent is refused with its key and path, and nothing is saved',
    async (stage) => {
      await begin(stage);
      for (const [, make] of NO_VALUES) {
        const bad = changing(ADA, () => ({ theme: { list: [{ bad: make() }] } }));
        const save = (): unknown => stage.a.save('three', snapshot({ sessionId: 'chat' }), { scopes: [bad] });
        const { message: text } = await refuses('INVALID_ARGUMENT', save, '/list/0/bad');
        assert.ok(text.includes('"theme"'), `the message does not name the key: ${text}`);
      }
      await isAsBegun(stage, 'what JSON can’t hold');
    },
  );

  kit.test('a record that is too large is refused; one of 500,000 bytes is not', async (stage) => {
    await begin(stage);
    const grow = (bytes: number): ScopeChange => put(EVE, { large: 'x'.repeat(bytes) });
    const save = (): unknown => stage.a.save('three', snapshot({ sessionId: 'chat' }), { scopes: [grow(600_000)] });
    await refuses('INVALID_ARGUMENT', save, 'eve');
    await isAsBegun(stage, 'a record that is too large');
    await stage.a.save('three', snapshot({ sessionId: 'chat' }), { scopes: [grow(500_000)] });
    equal(await stage.b.scope(EVE), { large: 'x'.repeat(500_000) }, 'the large record');
  });

  kit.test('the store shares no object of a record with its callers', async ({ a, b }) => {
    const given: ScopeRecord = { list: [{ n: 1 }] };
    await a.save('one', snapshot(), { scopes: [changing(ADA, () => given)] });
    const spoil = (record: ScopeRecord): void => void (record['list'] as ScopeRecord[]).push({ n: 2 });
    spoil(given);
    spoil(await a.scope(ADA));
    await b.save('two', () => snapshot(), {
      scopes: [
        changing(ADA, (record: ScopeRecord) => {
          spoil(record);
          return undefined;
        }),
      ],
    });
    for (const handle of [a, b]) equal(await handle.scope(ADA), { list: [{ n: 1 }] }, 'the record');
  });
}

function fences(kit: Kit): void {
  const title = `tenant fence: scope fence: ${HOSTILE_IDS.length} hostile names`;
  kit.test(`${title} of users and apps have a record each`, async ({ a, b }) => {
    const ids = HOSTILE_IDS.flatMap((name): ScopeId[] => [
      { scope: 'app', appName: name },
      { scope: 'user', appName: 'shop', userId: name },
      { scope: 'user', appName: name, userId: 'ada' },
    ]);
    for (let at = 0; at < ids.length; at += 30) {
      const list = ids.slice(at, at + 30).map((id, i) => put(id, { own: at + i }));
      await a.save(undefined, snapshot({ sessionId: 'all' }), { scopes: list });
    }
    const expected = ids.map((_, own) => ({ own }));
    equal(await b.readScopes(ids), expected, 'the records');
  });

  kit.test(
    'tenant fence: scope fence: names that would join to the same text have separate records',
    async ({ a, b }) => {
      const parts = ['a', 'a/b', 'b', 'a:b', 'a","b', 'user', 'app', 'a\u0000b', '.', '..'];
      const ids = parts.flatMap((appName) => [
        { scope: 'app', appName } as const,
        ...parts.map((userId) => ({ scope: 'user', appName, userId }) as const),
      ]);
      for (const [own, id] of ids.entries()) await a.save(undefined, snapshot(), { scopes: [put(id, { own })] });
      equal(
        await b.readScopes(ids),
        ids.map((_, own) => ({ own })),
        'the records',
      );
    },
  );

  if (kit.hasTenants) {
    const prefixes = hostileOnes(kit, HOSTILE_PREFIXES);
    kit.test(
      `tenant fence: ${prefixes.length} hostile prefixes have separate records`,
      async ({ a, b }) => {
        for (const [own, tenant] of prefixes.entries()) {
          equal(await b.as(tenant).readScopes([ADA, APP]), [{}, {}], `${tenant} before its first save`);
          await a.as(tenant).save('one', snapshot(), { scopes: [put(ADA, { own }), put(APP, { own })] });
        }
        for (const [own, tenant] of prefixes.entries()) {
          equal(await b.as(tenant).readScopes([ADA, APP]), [{ own }, { own }], `the records of ${tenant}`);
          if (own % 2 === 0) equal(await b.as(tenant).deleteScope(ADA), true, `the removal in ${tenant}`);
        }
        for (const [own, tenant] of prefixes.entries()) {
          equal(await a.as(tenant).scope(ADA), own % 2 === 0 ? {} : { own }, `what ${tenant} has left`);
        }
        for (const bad of [undefined, null, '', 7]) {
          await refuses('INVALID_ARGUMENT', () => a.as(bad).readScopes([ADA]));
          await refuses('INVALID_ARGUMENT', () => a.as(bad).deleteScope(ADA));
        }
      },
      kit.manyTenants,
    );
  }

  const random = kit.property(60, 1000);
  kit.test(
    `tenant fence: scope fence: on ${random.numRuns} random tapes of up to 80 operations with hostile names the store and a plain model agree (seed ${random.seed})`,
    async () => {
      const tenants = kit.hasTenants ? ['tenant', 'Tenant', '../tenant'] : [undefined];
      const play = (tape: ScopeOperation[]): Promise<void> =>
        kit.onStage(
          ({ a, b }) => {
            const handles = tenants.map((tenant) => [a, b].map((h) => (tenant === undefined ? h : h.as(tenant))));
            return playScopes(tape, handles, kit.capabilities.details);
          },
          kit.hasTenants ? kit.manyTenants : {},
        );
      await forAll(scopeTapes(kit.capabilities, tenants.length), play, random);
    },
  );
}

function listing(kit: Kit): void {
  kit.test('all records are listed, on pages of any size', async ({ a, b }) => {
    const ids: ScopeId[] = [APP, ADA, EVE, { scope: 'app', appName: 'shop/ada' }];
    for (const name of HOSTILE_IDS.slice(0, 40)) ids.push({ scope: 'user', appName: 'shop', userId: name });
    for (const [i, id] of ids.entries()) {
      await (i % 2 === 0 ? a : b).save(`turn ${i}`, snapshot({ sessionId: 'chat' }), { scopes: [put(id, { i })] });
    }
    const names = (found: readonly ScopeId[]): string[] => found.map(textOf).toSorted();
    for (const limit of [1, 7, 1000]) {
      const found: ScopeId[] = [];
      for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
        const page = await b.listScopes({ limit, ...(cursor !== undefined && { cursor }) });
        found.push(...page.items);
        cursor = page.nextCursor;
      }
      equal(names(found), names(ids), `the records in pages of ${limit}`);
    }
    await a.deleteScope(ADA);
    equal(names((await b.listScopes({ limit: 1000 })).items), names(ids.filter((id) => id !== ADA)), 'after a removal');
  });
}

function removal(kit: Kit): void {
  kit.test('a record can be removed by itself', async ({ a, b }) => {
    await a.save('one', snapshot({ sessionId: 'chat', messages: 1 }), {
      scopes: [put(ADA, { n: 1 }), put(EVE, { n: 1 }), put(APP, { n: 1 })],
    });
    equal(await b.deleteScope(ADA), true, 'the answer');
    equal(await a.readScopes([ADA, EVE, APP]), [{}, { n: 1 }, { n: 1 }], 'what is left');
    equal(await b.deleteScope(ADA), false, 'the answer when there is none');
    equal((await a.mustGet('one')).state?.messages, [message(0)], 'its session');
    await b.save('two', snapshot({ sessionId: 'chat' }), { scopes: [increment(ADA)] });
    equal(await a.scope(ADA), { n: 1 }, 'a new record');
  });
}
