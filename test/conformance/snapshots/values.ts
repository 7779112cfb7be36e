import type { SessionSnapshotInput } from '../../../src/store/contract.ts';
import { each, equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { message, second, snapshot } from '../support/snapshots.ts';
import { NO_VALUES, VALUES } from '../support/value-corpus.ts';

/** Values come back as saved, or are refused before anything is written. */
export const values: Subject = {
  name: 'values',
  tests(kit) {
    kept(kit);
    refused(kit);
  },
};

/** A snapshot with the value as its custom state, in a message, and as a separate field. */
function holding(value: unknown, plan: { sessionId: string; parentId?: string; turn: number }): SessionSnapshotInput {
  const { turn, ...lineage } = plan;
  const messages = Array.from({ length: turn + 1 }, (_, i) => message(i));
  const last = { ...message(turn + 1), metadata: { value, beside: turn } };
  const state = { sessionId: lineage.sessionId, custom: value, messages: [...messages, last] };
  return Object.assign(snapshot(lineage), { state, field: value });
}

const nameOf = ([name]: readonly [string, unknown]): string => name;

function kept(kit: Kit): void {
  const all = kit.some(VALUES);
  const title = `values: ${all.length} values come back`;
  kit.test(`${title} from a first save, from a change, from the next turn and from a rewrite`, async ({ a, b }) => {
    let serial = 0;
    await each(all, nameOf, ([name, value]) => everywhere(a, b, `value ${serial++}`, name, value));
    equal(({} as { polluted?: unknown }).polluted, undefined, 'Object.prototype');
  });

  kit.test('values: fields that are not part of the contract are kept', async ({ a, b }) => {
    const field = { lease: { owner: 'me', generation: 3 }, tags: ['x'], '': null };
    const state = { ...snapshot({ sessionId: 'chat' }).state, unknown: { kept: [1, 2] } };
    await keeps(a, b, 'one', { ...snapshot({ sessionId: 'chat' }), ...field, state });
    await a.save('one', (current) => ({ ...current!, updatedAt: '2026-02-02T00:00:00.000Z' }));
    const expected = { ...snapshot({ sessionId: 'chat' }), ...field, state, updatedAt: '2026-02-02T00:00:00.000Z' };
    equal(await b.byId('one'), { ...expected, snapshotId: 'one' }, 'after a heartbeat');
  });

  if (kit.capabilities.metadata) {
    kit.test('a snapshot that is saved without updatedAt gets its createdAt', async ({ a, b }) => {
      const { updatedAt: _, ...first } = snapshot({ sessionId: 'chat' });
      await a.save('one', first);
      await a.save('one', (current) => ({ ...first, createdAt: second(9), status: current!.status }));
      equal((await b.byId('one'))?.updatedAt, first.createdAt, 'updatedAt');
    });
  }

  kit.test('values: undefined members are dropped', async ({ a }) => {
    const custom = { there: 1, gone: undefined, deep: [{ there: 2, gone: undefined }] };
    const saved = { ...snapshot({ sessionId: 'chat', custom }), finishReason: undefined, error: undefined };
    await a.save('one', saved);
    const expected = { ...snapshot({ sessionId: 'chat' }), snapshotId: 'one' };
    expected.state!.custom = { there: 1, deep: [{ there: 2 }] };
    equal(await a.byId('one'), expected, 'the snapshot');
  });

  kit.test(
    'values: a snapshot without a state and a snapshot with an empty state come back unchanged',
    async ({ a }) => {
      const { state: _, ...bare } = snapshot({ sessionId: 'chat', status: 'pending' });
      equal(await a.save('bare', bare), 'bare', 'the save');
      equal(await a.byId('bare'), { ...bare, snapshotId: 'bare' }, 'the bare one');
      await a.save('empty', { ...bare, state: {} });
      equal(await a.byId('empty'), { ...bare, state: {}, snapshotId: 'empty' }, 'the empty one');
      await a.save('bare', snapshot({ sessionId: 'chat', messages: 2 }));
      equal(await a.byId('bare'), { ...snapshot({ sessionId: 'chat', messages: 2 }), snapshotId: 'bare' }, 'filled');
    },
  );
}

/** Saves `value` in every way in which a store may store it; `prefix` begins the ids. */
async function everywhere(a: Handle, b: Handle, prefix: string, name: string, value: unknown): Promise<void> {
  const ids = ['before', 'change', 'next', 'after'].map((when) => `${prefix}-${when}`);
  const held = [{ was: 'something else' }, value, value, 'something else'];
  const turns = ids.map((_, turn) => {
    const parentId = turn === 0 ? {} : { parentId: ids[turn - 1]! };
    return holding(held[turn], { sessionId: prefix, ...parentId, turn });
  });
  await keeps(
    a,
    b,
    `${prefix}-first`,
    holding(value, { sessionId: `${prefix}-alone`, turn: 0 }),
    `${name}, saved first`,
  );
  await keeps(a, b, ids[0]!, turns[0]!, `before ${name}`);
  await keeps(a, b, ids[1]!, turns[1]!, `${name}, as a change`);
  await keeps(b, a, ids[2]!, turns[2]!, `${name}, on the next turn`);
  await keeps(a, b, ids[3]!, turns[3]!, `after ${name}`);
  const rewrite = holding(value, { sessionId: prefix, parentId: ids[2]!, turn: 7 });
  await keeps(b, a, ids[3]!, rewrite, `${name}, as a rewrite`);
  equal(await a.byId(ids[2]!), { ...turns[2]!, snapshotId: ids[2] }, `${name}, after its child was rewritten`);
}

async function keeps(
  writer: Handle,
  reader: Handle,
  id: string,
  input: SessionSnapshotInput,
  what: string = id,
): Promise<void> {
  await writer.save(id, input);
  equal(await reader.byId(id), { ...input, snapshotId: id }, what);
}

function refused(kit: Kit): void {
  kit.test(
    'values: a value that JSON can’t represent is refused with its path, and nothing is written',
    async ({ a, b }) => {
      const good = snapshot({ sessionId: 'chat', custom: { n: 1 }, messages: 2 });
      await a.save('good', good);
      for (const [name, make] of NO_VALUES) {
        const inState = { ...good, parentId: 'good', state: { ...good.state, custom: { list: [{ bad: make() }] } } };
        const inField = Object.assign({ ...good, parentId: 'good' }, { field: { bad: make() } });
        for (const id of ['new', 'good', undefined]) {
          await refuses('INVALID_ARGUMENT', () => b.save(id, inState), '/state/custom/list/0/bad');
          await refuses('INVALID_ARGUMENT', () => b.save(id, inField), '/field/bad');
        }
        equal(await a.byId('new'), undefined, `a new snapshot with ${name}`);
        equal(await b.bySession('chat'), { ...good, snapshotId: 'good' }, `the leaf after ${name}`);
      }
    },
  );

  kit.test('values: symbol keys are dropped, and a null prototype does not matter', async ({ a }) => {
    const custom = Object.assign(Object.create(null) as object, { n: 1, [Symbol('s')]: 2 });
    await a.save('one', snapshot({ custom }));
    equal((await a.mustGet('one')).state?.custom, { n: 1 }, 'the state');
  });
}
