import type { SessionSnapshotInput, SessionStore } from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Stage, Subject } from '../support/kit.ts';
import { message, second, snapshot } from '../support/snapshots.ts';
import { VALUES } from '../support/value-corpus.ts';

/** The data after a restart, and the calls of a closed store. */
export const reopening: Subject = {
  name: 'reopening and closing',
  usesNames: true,
  // A foreign store without `durable` may or may not keep its data.
  isFor: (kit) => kit.capabilities.durable || !kit.isForeign,
  tests(kit) {
    restart(kit);
    if (kit.underTenant) return;
    if (kit.capabilities.durable && kit.capabilities.prune) pruningRewritten(kit);
    if (!kit.isForeign) closing(kit);
    if (!kit.isForeign && kit.capabilities.durable) closingMidway(kit);
  },
};

function turnsOf(kit: Kit): number {
  return kit.isBrief ? 30 : 70;
}

/** Saves a few sessions: a long one with branches, rewrites and all values, one that runs, one with hostile names. */
async function fill(kit: Kit, { a, b }: Stage): Promise<void> {
  const turns = turnsOf(kit);
  for (let turn = 0; turn < turns; turn++) {
    const messages = Array.from({ length: turn }, (_, i) => message(i));
    const [, custom] = VALUES[turn % VALUES.length]!;
    const input = snapshot({ sessionId: 'long', createdAt: second(turn % 7), custom });
    const parentId = turn === 0 ? {} : { parentId: `turn ${turn % 10 === 0 ? turn - 5 : turn - 1}` };
    await (turn % 2 === 0 ? a : b).save(`turn ${turn}`, { ...input, ...parentId, state: { ...input.state, messages } });
  }
  for (const id of new Set(['turn 9', `turn ${turns - 21}`, `turn ${turns - 1}`])) {
    await b.save(id, (current) => ({ ...current!, updatedAt: second(1000), state: { custom: { rewritten: id } } }));
  }
  await a.save('running', snapshot({ sessionId: 'runs', status: 'pending' }));
  await a.save('../é/\u0000', snapshot({ sessionId: 'chat/../\uD800' }));
}

/** Reads everything that {@link fill} saved. */
async function readAll(kit: Kit, handle: Handle): Promise<unknown[]> {
  const ids = [...Array.from({ length: turnsOf(kit) }, (_, turn) => `turn ${turn}`), 'running', '../é/\u0000'];
  const all: unknown[] = [];
  for (const id of ids) all.push(await handle.byId(id));
  for (const sessionId of ['long', 'runs', 'chat/../\uD800']) {
    all.push(await handle.leafId(sessionId));
    if (kit.capabilities.list) all.push((await handle.listSnapshots({ sessionId })).items);
  }
  if (kit.capabilities.list) all.push((await handle.listSessions()).items);
  return all;
}

/** Closes both stores and runs `body` on a new one. */
async function reopened(kit: Kit, { a, b, stores }: Stage, body: (again: Handle) => Promise<void>): Promise<void> {
  if (!stores.reopen) throw new Error('the stores that open() returns need reopen()');
  for (const store of new Set<SessionStore>([a.store, b.store])) await close(kit.handle(store));
  const again = kit.handle(await stores.reopen());
  try {
    await body(again);
  } finally {
    await close(again);
  }
}

/** A foreign store may have no close method. */
async function close(handle: Handle): Promise<void> {
  if ('close' in handle.store) await handle.close();
}

function restart(kit: Kit): void {
  kit.either(
    'durable',
    {
      name: 'all saved data is there after reopening, and the session can be continued',
      body: async (stage) => {
        await fill(kit, stage);
        const before = await readAll(kit, stage.a);
        await reopened(kit, stage, async (again) => {
          equal(await readAll(kit, again), before, 'what is read');
          await again.save('next', snapshot({ sessionId: 'long', parentId: `turn ${turnsOf(kit) - 1}` }));
          equal(await again.leafId('long'), 'next', 'the leaf');
          await again.save('running', snapshot({ sessionId: 'runs', status: 'completed' }));
          await refuses('FAILED_PRECONDITION', () => again.save('running', snapshot({ status: 'failed' })), 'running');
        });
      },
    },
    {
      name: 'a store that is not durable is empty after reopening',
      body: async (stage) => {
        await fill(kit, stage);
        await reopened(kit, stage, async (again) => {
          equal(await again.byId('turn 1'), undefined, 'a snapshot');
          equal(await again.bySession('long'), undefined, 'a session');
          if (kit.capabilities.list) equal((await again.listSessions()).items, [], 'the sessions');
        });
      },
    },
  );
}

function closingMidway(kit: Kit): void {
  kit.test('saves that run when the store is closed are kept or refused', async (stage) => {
    const ids = Array.from({ length: 20 }, (_, i) => `late ${i}`);
    const saves = ids.map((id) => stage.a.save(id, snapshot({ sessionId: id, custom: id })));
    await stage.a.close();
    const results = await Promise.allSettled(saves);
    await reopened(kit, stage, async (again) => {
      for (const [i, id] of ids.entries()) {
        if (results[i]!.status === 'fulfilled') equal((await again.mustGet(id)).state?.custom, id, id);
        else equal(await again.byId(id), undefined, `${id}, which was refused`);
      }
    });
  });
}

function closing(kit: Kit): void {
  kit.test('the store’s capabilities are those of the manifest', async ({ a }) => {
    equal((a.store as { capabilities?: unknown }).capabilities, kit.capabilities, 'the capabilities');
  });

  kit.test('a closed store refuses every call, and may be closed again', async ({ a }) => {
    await a.save('one', snapshot({ sessionId: 'chat' }));
    await a.close();
    await a.close();
    const calls: (() => unknown)[] = [() => a.byId('one'), () => a.bySession('chat')];
    calls.push(
      () => a.save('two', snapshot()),
      () => a.save(undefined, () => null),
    );
    if (kit.capabilities.watch) calls.push(() => a.watch('one', () => {}));
    if (kit.capabilities.metadata) calls.push(() => a.metadata({ snapshotId: 'one' }));
    if (kit.capabilities.list)
      calls.push(
        () => a.listSnapshots({ sessionId: 'chat' }),
        () => a.listSessions(),
      );
    if (kit.capabilities.delete) calls.push(() => a.deleteSession('chat'));
    if (kit.capabilities.prune) calls.push(() => a.prune({ idleMs: 0 }));
    for (const call of calls) await refuses('FAILED_PRECONDITION', call);
  });

  if (kit.capabilities.watch) {
    kit.test('closing ends the watchers', async (stage) => {
      const { a } = stage;
      await a.save('one', snapshot({ status: 'pending' }));
      const received: unknown[] = [];
      const end = a.watch('one', (news) => received.push(news.status));
      await kit.eventually(() => received.length === 1, 'the first notification');
      await a.save('one', snapshot({ status: 'expired' }));
      await a.close();
      const receivedAtClose = received.length;
      await reopened(kit, stage, async (again) => {
        let isNotified = false;
        again.watch('one', (news) => (isNotified ||= news.status === 'completed'));
        await again.save('one', snapshot({ status: 'completed' }));
        await kit.eventually(() => isNotified, 'the notification of a new watcher');
      });
      equal(received.length, receivedAtClose, 'notifications after the end');
      end();
    });
  }

  if (!kit.capabilities.scopes) {
    kit.test('a store without scopes has no readScopes', async ({ a }) => {
      equal('readScopes' in a.store, false, 'readScopes');
    });
  }
}

/** A state that is too large for one document or one ordinary file. */
function large(n: number): { n: number; lines: string[] } {
  return { n, lines: Array.from({ length: 4000 }, (_, i) => `line ${i} of ${n}: ${Math.sin(i + n)}`) };
}

function pruningRewritten(kit: Kit): void {
  kit.test('rewritten snapshots, also with large states, are unchanged after pruning and reopening', async (stage) => {
    const { a, b } = stage;
    const sessions = ['chat', undefined];
    for (const sessionId of sessions) {
      const turn = (n: number, parent?: number): SessionSnapshotInput => {
        const whose = {
          ...(sessionId && { sessionId }),
          ...(parent !== undefined && { parentId: `${sessionId} ${parent}` }),
        };
        return snapshot({ ...whose, status: 'pending', custom: large(n) });
      };
      for (const [n, parent] of [undefined, 0, 1, undefined, 3].entries()) {
        await (n % 2 === 0 ? a : b).save(`${sessionId} ${n}`, turn(n, parent));
      }
      await b.save(`${sessionId} 0`, (current) => ({ ...current!, state: turn(9).state! }));
      // Rewrites by the handle that saved it, and by the other.
      for (const n of [0, 2, 3]) await a.save(`${sessionId} ${n}`, (current) => ({ ...current!, status: 'completed' }));
    }
    const ids = sessions.flatMap((session) => [0, 1, 2, 3, 4].map((n) => `${session} ${n}`));
    const before = await Promise.all(ids.map((id) => b.mustGet(id)));
    for (const handle of [a, b]) equal((await handle.prune({ maxChainLength: 100 })).snapshots, 0, 'pruned snapshots');
    await reopened(kit, stage, async (again) => {
      for (const [i, id] of ids.entries()) equal(await again.mustGet(id), before[i], id);
    });
  });
}
