import { setImmediate } from 'node:timers/promises';
import { FileSessionStore, InMemorySessionStore, type SessionStore } from 'genkitx-agents';
import { expect, it } from 'vitest';
import { Kit } from './support/kit.ts';
import { Player } from './support/player.ts';
import type { Edit, Operation } from './support/tape.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Racing saves with the same outcome in either order of the first two; only the snapshots in between differ. */
const EDITS: Edit[] = [
  { n: 25, resend: true, session: 'none', messages: 'same' },
  { n: 15, resend: false, session: 'same', messages: 'more' },
  { status: 'expired', n: 59, resend: true, session: 'same', messages: 'same' },
];
const RACE: Operation[] = [
  { op: 'watch', by: 0, tenant: 0, target: 'future' },
  { op: 'race', by: 0, tenant: 0, target: 'new', edits: EDITS },
];

/** A store that makes racing saves in this order, and notifies the watchers of each before the next. */
function storeWithOrder(order: readonly number[]): InMemorySessionStore {
  const store = new InMemorySessionStore();
  const waiting: (() => Promise<void>)[] = [];
  const save = async (...args: Parameters<SessionStore['saveSnapshot']>): Promise<string | null> => {
    const answer = new Promise<string | null>((resolve, reject) => {
      waiting.push(() => store.saveSnapshot(...args).then(resolve, reject));
    });
    if (waiting.length === order.length) {
      for (const i of order) {
        await waiting[i]!();
        await setImmediate();
      }
    }
    return answer;
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === 'saveSnapshot') return save;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

type Stores = readonly [InMemorySessionStore, InMemorySessionStore] | readonly [FileSessionStore, FileSessionStore];

function play([a, b]: Stores, tape: readonly Operation[]): Promise<void> {
  const open = async () => ({ a, b, close: async () => void (await Promise.all([a.close(), b.close()])) });
  const runner = { describe: () => {}, it: () => {} };
  const kit = new Kit(
    { name: 'player', open, manifest: { capabilities: a.capabilities }, watchTimeoutMs: 1000 },
    runner,
    false,
  );
  return kit.onStage((stage) => new Player(kit, [[stage.a, stage.b]]).play(tape));
}

it.each([[[0, 1, 2]], [[1, 0, 2]]])(
  'a watcher may see racing saves in any order that explains their outcome: %o',
  async (order) => {
    const store = storeWithOrder(order);
    await play([store, store], RACE);
  },
);

it('but no snapshot that none of these orders gives', async () => {
  const store = storeWithOrder([0, 1, 2]);
  const watch: typeof store.onSnapshotStateChange = (id, callback, options) =>
    store.onSnapshotStateChange(id, (received) => callback({ ...received, state: { custom: { n: 1 } } }), options);
  const lying = new Proxy(store, {
    get: (target, name) => (name === 'onSnapshotStateChange' ? watch : Reflect.get(target, name)),
  });
  await expect(play([lying, lying], RACE)).rejects.toThrow(
    'was delivered, but "turn 0" did not have this value at that time',
  );
});

/** An edit that saves a snapshot under the id of the first. */
const edit: Edit = { n: 0, resend: false, session: 'same', messages: 'same' };

it('if saves of another store overtake each other, a watcher may get only the last status', async () => {
  const folder = temporaryFolder();
  const open = (): FileSessionStore => new FileSessionStore(folder, { durability: 'fast' });
  await play(
    [open(), open()],
    [
      { op: 'rewrite', by: 0, tenant: 0, target: 0, edit },
      { op: 'watch', by: 0, tenant: 0, target: 0 },
      { op: 'delete', by: 0, tenant: 0, session: 0 },
      { op: 'rewrite', by: 1, tenant: 0, target: 0, edit },
      { op: 'rewrite', by: 0, tenant: 0, target: 0, edit: { ...edit, status: 'completed' } },
    ],
  );
});
