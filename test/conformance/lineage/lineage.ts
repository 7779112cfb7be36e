import { equal, refuses } from '../support/assertions.ts';
import type { Subject } from '../support/kit.ts';
import { second, snapshot } from '../support/snapshots.ts';

/** Parents and sessions: the allowed values, and that they never change. */
export const lineage: Subject = {
  name: 'lineage',
  tests(kit) {
    kit.test('a parent that does not exist is allowed, and kept', async ({ a }) => {
      await a.save('child', snapshot({ sessionId: 'chat', parentId: 'pruned long ago' }));
      equal((await a.mustGet('child')).parentId, 'pruned long ago', 'the parent');
      equal(await a.leafId('chat'), 'child', 'the leaf');
    });

    kit.test('a parent that is saved after its child is not a leaf', async ({ a }) => {
      await a.save('child', snapshot({ sessionId: 'chat', parentId: 'parent' }));
      await a.save('parent', snapshot({ sessionId: 'chat' }));
      equal(await a.leafId('chat'), 'child', 'the leaf');
    });

    kit.test('a parent stays a leaf if only a snapshot of another session names it', async ({ a }) => {
      await a.save('here', snapshot({ sessionId: 'chat' }));
      await a.save('there', snapshot({ sessionId: 'other', parentId: 'here' }));
      equal(await a.leafId('chat'), 'here', 'the leaf of the one');
      equal(await a.leafId('other'), 'there', 'the leaf of the other');
    });

    kit.test('no snapshot becomes its own parent', async ({ a }) => {
      const own = snapshot({ sessionId: 'chat', parentId: 'one' });
      await refuses('FAILED_PRECONDITION', () => a.save('one', own), 'one');
      equal(await a.byId('one'), undefined, 'the snapshot');
      equal(await a.bySession('chat'), undefined, 'the session');
    });

    kit.test('no snapshot becomes its own ancestor', async ({ a, b }) => {
      await a.save('two', snapshot({ sessionId: 'chat', parentId: 'one' }));
      await b.save('three', snapshot({ sessionId: 'chat', parentId: 'two' }));
      const closing = snapshot({ sessionId: 'chat', parentId: 'three' });
      await refuses('FAILED_PRECONDITION', () => b.save('one', closing), 'one');
      equal(await a.byId('one'), undefined, 'the snapshot');
      equal(await a.leafId('chat'), 'three', 'the leaf');
      await a.save('one', snapshot({ sessionId: 'chat' }));
      equal(await a.leafId('chat'), 'three', 'the leaf');
    });

    kit.test('a snapshot without a session has no tree: its parentId is data', async ({ a, b }) => {
      await a.save('one', snapshot({ parentId: 'two', custom: { n: 1 } }));
      await b.save('two', snapshot({ parentId: 'one', custom: { n: 2 } }));
      await a.save('own', snapshot({ parentId: 'own' }));
      await a.save('one', snapshot({ parentId: 'own', custom: { n: 3 } }));
      equal([(await b.mustGet('one')).parentId, (await b.mustGet('own')).parentId], ['two', 'own'], 'the parents');
      equal((await b.mustGet('one')).state?.custom, { n: 3 }, 'a state that was saved again, though it has a child');
    });

    kit.test('a snapshot with a session and one without are never parent and child', async ({ a, b }) => {
      await a.save('here', snapshot({ sessionId: 'chat', parentId: 'alone' }));
      await b.save('alone', snapshot({ parentId: 'here' }));
      equal((await a.mustGet('alone')).parentId, 'here', 'the parent');
      equal(await a.leafId('chat'), 'here', 'the leaf');
    });

    kit.test('one of several racing saves that together would make a cycle is refused', async ({ a, b }) => {
      for (let round = 0; round < 12; round++) {
        const ids = ['one', 'two', 'three', 'four'].slice(0, 2 + (round % 3)).map((id) => `${id} of ${round}`);
        const saves = ids.map((id, i) => {
          const parentId = ids[(i + 1) % ids.length]!;
          return (i % 2 === 0 ? a : b).save(id, snapshot({ sessionId: 'chat', parentId }));
        });
        const refused = (await Promise.allSettled(saves)).filter((outcome) => outcome.status === 'rejected');
        equal(
          refused.map(({ reason }) => (reason as { status?: unknown }).status),
          ['FAILED_PRECONDITION'],
          `the refusals of round ${round}`,
        );
      }
    });

    kit.test('a rewrite can’t change parentId and createdAt', async ({ a, b }) => {
      await a.save('root', snapshot({ sessionId: 'chat', createdAt: second(1), status: 'pending' }));
      await a.save('turn', snapshot({ sessionId: 'chat', parentId: 'root', createdAt: second(2), status: 'pending' }));
      for (const parentId of ['elsewhere', 'turn', undefined]) {
        const { createdAt: _, ...rewrite } = snapshot({
          sessionId: 'chat',
          status: 'pending',
          ...(parentId && { parentId }),
        });
        for (const createdAt of [second(900), second(-900)]) await b.save('turn', { ...rewrite, createdAt });
        const turn = await a.mustGet('turn');
        equal([turn.parentId, turn.createdAt], ['root', second(2)], 'parent and time');
      }
      await b.save('root', snapshot({ sessionId: 'chat', parentId: 'turn', createdAt: second(3), status: 'pending' }));
      const root = await a.mustGet('root');
      equal(['parentId' in root, root.createdAt], [false, second(1)], 'no parent, and the time');
      equal(await a.leafId('chat'), 'turn', 'the leaf');
    });

    kit.test('a snapshot never moves to another session', async ({ a, b }) => {
      await a.save('one', snapshot({ sessionId: 'chat', custom: { n: 1 } }));
      await a.save('alone', snapshot({ custom: { n: 1 } }));
      const { sessionId: _, ...byState } = snapshot({ sessionId: 'other' });
      for (const id of ['one', 'alone']) {
        const before = await a.mustGet(id);
        await refuses('FAILED_PRECONDITION', () => b.save(id, snapshot({ sessionId: 'other' })), id);
        await refuses('FAILED_PRECONDITION', () => b.save(id, byState), id);
        equal(await b.byId(id), before, 'the snapshot');
      }
      equal(await a.bySession('other'), undefined, 'the other session');
    });

    kit.test('a rewrite without a session keeps the snapshot in its session', async ({ a }) => {
      await a.save('stamped', snapshot({ sessionId: 'chat', status: 'pending' }));
      const { sessionId: _, ...byState } = snapshot({ sessionId: 'by-state', status: 'pending' });
      await a.save('unstamped', byState);
      for (const id of ['stamped', 'unstamped']) {
        await a.save(id, (current) => ({ createdAt: current!.createdAt, status: 'aborted' }));
      }
      equal((await a.mustGet('stamped')).sessionId, 'chat', 'the sessionId');
      equal((await a.bySession('chat'))?.status, 'aborted', 'the status of the leaf');
      equal((await a.bySession('by-state'))?.status, 'aborted', 'the status of the leaf by state');
    });
  },
};
