import type { SaveSnapshotOptions } from '../../../src/store/contract.ts';
import { equal, refuses, statusOf } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** Saves that name the leaf they expect. */
export const conditionalSaves: Subject = {
  name: 'conditional saves',
  tests(kit) {
    if (!kit.capabilities.compareLeaf) {
      kit.test('a store that can’t compare the leaf ignores the expectation', async ({ a }) => {
        const stale: SaveSnapshotOptions = { expectedLeafId: 'stale' };
        equal(await a.save('one', snapshot({ sessionId: 'chat' }), stale), 'one', 'the save');
      });
      return;
    }
    expectations(kit);
    races(kit);
  },
};

function expectations(kit: Kit): void {
  kit.test('a save succeeds if the session has the expected leaf', async ({ a, b }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }), { expectedLeafId: null });
    await b.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }), { expectedLeafId: 'one' });
    await a.save('two', snapshot({ sessionId: 'chat', custom: { rewritten: true } }), { expectedLeafId: 'two' });
    await b.save('branch', snapshot({ sessionId: 'chat', parentId: 'one' }), { expectedLeafId: 'two' });
    equal(await a.leafId('chat'), 'branch', 'the leaf');
  });

  kit.test('a save with another leaf throws SessionConflictError, and nothing is written', async ({ a, b }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }));
    await b.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }));
    const stale = [null, 'one', 'unknown'];
    for (const expectedLeafId of stale) {
      for (const id of ['three', 'one', undefined]) {
        const save = (): unknown =>
          a.save(id, snapshot({ sessionId: 'chat', custom: { lost: 1 } }), { expectedLeafId });
        const error = await refuses('ABORTED', save, 'chat');
        const { name, sessionId, actualLeafId, ...rest } = error as unknown as Record<string, unknown>;
        const said = [name, sessionId, actualLeafId, rest['expectedLeafId']];
        equal(said, ['SessionConflictError', 'chat', 'two', expectedLeafId], 'what the error says');
      }
    }
    equal(await b.byId('three'), undefined, 'the refused snapshot');
    equal((await b.mustGet('one')).state?.custom, {}, 'the one that was to be rewritten');
    equal(await b.leafId('chat'), 'two', 'the leaf');
    const empty = (): unknown => a.save('three', snapshot({ sessionId: 'empty' }), { expectedLeafId: 'two' });
    await refuses('ABORTED', empty, 'empty');
  });

  kit.test('a skipped save is not checked; an impossible expectation is refused', async ({ a }) => {
    equal(await a.save('one', () => null, { expectedLeafId: 'unknown' }), null, 'the answer');
    await refuses('INVALID_ARGUMENT', () => a.save('one', snapshot(), { expectedLeafId: null }));
    const chat = snapshot({ sessionId: 'chat' });
    for (const bad of ['', ' ', 7])
      await refuses('INVALID_ARGUMENT', () => a.save('one', chat, { expectedLeafId: bad as string }));
  });

  kit.test(
    'a save that requires a snapshot of its session is refused if the snapshot was removed',
    async ({ a, b }) => {
      await a.save('one', snapshot({ sessionId: 'chat' }));
      await b.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }), { ifSnapshot: 'one' });
      await a.save('three', snapshot({ sessionId: 'chat', parentId: 'two' }), { ifSnapshot: 'one' });
      await b.save('three', (current) => ({ ...current!, updatedAt: 'later' }), { ifSnapshot: 'two' });
      await a.save('elsewhere', snapshot({ sessionId: 'other' }));
      for (const ifSnapshot of ['unknown', 'elsewhere']) {
        for (const id of ['four', 'three', undefined]) {
          const refused = snapshot({ sessionId: 'chat', parentId: ifSnapshot, custom: { refused: true } });
          await refuses('ABORTED', () => b.save(id, refused, { ifSnapshot }), ifSnapshot);
        }
      }
      equal([await a.byId('four'), await a.leafId('chat')], [undefined, 'three'], 'what is there');
      await refuses('INVALID_ARGUMENT', () => a.save('alone', snapshot(), { ifSnapshot: 'one' }));
      if (!kit.capabilities.delete) return;
      await a.deleteSession('chat');
      const late: SaveSnapshotOptions = { ifSnapshot: 'two' };
      await refuses('ABORTED', () => b.save('four', snapshot({ sessionId: 'chat', parentId: 'two' }), late), 'two');
      await a.save('anew', snapshot({ sessionId: 'chat' }));
      await refuses('ABORTED', () => b.save('four', snapshot({ sessionId: 'chat', parentId: 'two' }), late), 'two');
      equal([await b.byId('four'), await b.leafId('chat')], [undefined, 'anew'], 'the session that was created again');
    },
  );
}

function races(kit: Kit): void {
  kit.test('only one of 16 concurrent saves that expect the same leaf succeeds', async ({ a, b }) => {
    for (let round = 0; round < 10; round++) {
      const leaf = (await a.leafId('chat')) ?? null;
      const ids = Array.from({ length: 16 }, (_, i) => `round ${round}, save ${i}`);
      const save = (id: string, i: number): Promise<unknown> => {
        const parentId = leaf === null ? {} : { parentId: leaf };
        return (i % 2 === 0 ? a : b).save(id, snapshot({ sessionId: 'chat', ...parentId }), { expectedLeafId: leaf });
      };
      const results = await Promise.allSettled(ids.map(save));
      const winners = ids.filter((_, i) => results[i]!.status === 'fulfilled');
      for (const result of results) {
        if (result.status === 'rejected') equal(statusOf(result.reason), 'ABORTED', 'the losers’ error');
      }
      equal([winners.length, await b.leafId('chat')], [1, winners[0]], 'the winner is the leaf');
    }
  });

  const turns = kit.runs(20, 200);
  kit.test(`one session: 8 writers of ${turns} turns make one chain of all acknowledged turns`, async ({ a, b }) => {
    const acknowledged: string[] = [];
    const write = async (handle: Handle, writer: number): Promise<void> => {
      for (let turn = 0; turn < turns;) {
        const leaf = (await handle.leafId('chat')) ?? null;
        const id = `writer ${writer}, turn ${turn}`;
        const input = snapshot({ sessionId: 'chat', custom: { id }, ...(leaf !== null && { parentId: leaf }) });
        if (await wins(handle.save(id, input, { expectedLeafId: leaf }))) {
          acknowledged.push(id);
          turn++;
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, i) => write(i % 2 === 0 ? a : b, i)));
    const line: string[] = [];
    for (let id = await a.leafId('chat'); id !== undefined; id = (await a.mustGet(id)).parentId) line.unshift(id);
    equal(line.length, 8 * turns, 'turns in the line');
    equal(line.toSorted(), acknowledged.toSorted(), 'the turns');
    const ofWriter = (ids: string[], i: number): string[] => ids.filter((id) => id.startsWith(`writer ${i},`));
    for (let i = 0; i < 8; i++) equal(ofWriter(line, i), ofWriter(acknowledged, i), `the order of writer ${i}`);
  });
}

async function wins(save: Promise<unknown>): Promise<boolean> {
  try {
    await save;
    return true;
  } catch (error) {
    equal(statusOf(error), 'ABORTED', 'the conflict');
    return false;
  }
}
