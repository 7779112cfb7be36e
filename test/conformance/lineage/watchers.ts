import assert from 'node:assert/strict';
import type { SessionSnapshot, SnapshotStatus } from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** Watches a snapshot and remembers what it was told. */
class Watcher {
  readonly told: SessionSnapshot[] = [];
  readonly end: () => void;

  constructor(handle: Handle, snapshotId: string, onNews: (news: SessionSnapshot) => void = () => {}) {
    this.end = handle.watch(snapshotId, (news) => {
      this.told.push(news);
      onNews(news);
    });
  }

  /** The statuses told, a repeated one once. */
  get statuses(): (SnapshotStatus | undefined)[] {
    return this.told.map((news) => news.status).filter((status, i, all) => i === 0 || status !== all[i - 1]);
  }

  get last(): SnapshotStatus | undefined {
    return this.told.at(-1)?.status;
  }
}

/** Statuses as they are told: soon, in order, each once, and no more than that. */
export const watchers: Subject = {
  name: 'watchers',
  tests(kit) {
    if (!kit.capabilities.watch) {
      kit.test('a store that can’t watch has no such method', async ({ a }) => {
        equal('onSnapshotStateChange' in a.store, false, 'the method');
      });
      return;
    }
    beginning(kit);
    statuses(kit);
    ending(kit);
    otherHandle(kit);
  },
};

function beginning(kit: Kit): void {
  kit.test('a watcher is told the snapshot as it is, soon, but not while it subscribes', async ({ a }) => {
    const saved = snapshot({ sessionId: 'chat', status: 'pending', custom: { n: 1 }, messages: 3 });
    await a.save('one', saved);
    const watcher = new Watcher(a, 'one');
    equal(watcher.told, [], 'told inside the call');
    await kit.eventually(() => watcher.told.length > 0, 'the first telling');
    watcher.end();
    equal(watcher.told, [{ ...saved, snapshotId: 'one' }], 'the notification');
  });

  kit.test('a watcher of a snapshot that is not there yet is told its first save', async ({ a }) => {
    const [watcher, neighbour] = [new Watcher(a, 'one'), new Watcher(a, 'two')];
    await a.save('two', snapshot());
    await kit.eventually(() => neighbour.told.length > 0, 'the telling of another watcher');
    equal(watcher.told, [], 'told of nothing');
    await a.save('one', snapshot({ status: 'pending' }));
    await kit.eventually(() => watcher.told.length > 0, 'the first telling');
    equal([watcher.last, watcher.told[0]?.snapshotId], ['pending', 'one'], 'the notification');
    watcher.end();
    neighbour.end();
  });

  kit.test('an id that is none is refused', async ({ a }) => {
    for (const id of ['', ' ', 'x'.repeat(1025), 7, undefined]) {
      await refuses('INVALID_ARGUMENT', () => a.watch(id as string, () => {}));
    }
  });
}

function statuses(kit: Kit): void {
  kit.test('each status is told once and in order; other rewrites may be merged', async ({ a }) => {
    const history: SnapshotStatus[] = ['pending', 'pending', 'expired', 'pending', 'pending', 'completed', 'completed'];
    const early = new Watcher(a, 'one');
    for (const [n, status] of history.entries()) await a.save('one', snapshot({ status, custom: { n } }));
    await kit.eventually(() => early.last === 'completed', 'the last status');
    equal(early.statuses, ['pending', 'expired', 'pending', 'completed'], 'the statuses');
    const revisions = early.told.map((news) => (news.state?.custom as { n: number } | undefined)?.n ?? -1);
    equal(
      revisions,
      [...new Set(revisions)].toSorted((x, y) => x - y),
      'the notifications, in order and not twice',
    );
    for (const [i, n] of revisions.entries()) equal(early.told[i]!.status, history[n], 'the status of a revision');
    early.end();
  });

  kit.test('a watcher that comes later is told from where the snapshot is', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    const first = new Watcher(a, 'one');
    await kit.eventually(() => first.last === 'pending', 'the first status');
    await a.save('one', snapshot({ status: 'failed' }));
    await kit.eventually(() => first.last === 'failed', 'the second status');
    const late = new Watcher(a, 'one');
    await kit.eventually(() => late.told.length > 0, 'the first telling of the late one');
    equal([late.statuses, first.told.length], [['failed'], 2], 'the late one is told, the first not again');
    first.end();
    late.end();
  });

  kit.test('a save that was skipped, refused or failed is not told', async ({ a }) => {
    await a.save('one', snapshot({ status: 'aborted', custom: { n: 1 } }));
    const [watcher, sentinel] = [new Watcher(a, 'one'), new Watcher(a, 'two')];
    await kit.eventually(() => watcher.told.length > 0, 'the first telling');
    await a.save('one', () => null);
    await assert.rejects(a.save('one', snapshot({ status: 'completed' })));
    await assert.rejects(a.save('one', () => assert.fail('mine')));
    await a.save('two', snapshot());
    await kit.eventually(() => sentinel.told.length > 0, 'the telling of another watcher');
    equal(watcher.told.length, 1, 'tellings');
    watcher.end();
    sentinel.end();
  });

  kit.test('a watcher that throws harms neither the save nor the others', async ({ a, b }) => {
    const bad = new Watcher(a, 'one', () => assert.fail('a watcher that throws'));
    const good = new Watcher(a, 'one');
    for (const status of ['pending', 'completed'] as const) {
      equal(await a.save('one', snapshot({ status })), 'one', 'the save');
      await kit.eventually(() => good.last === status && bad.last === status, `the telling of ${status}`);
    }
    equal((await b.mustGet('one')).status, 'completed', 'what was saved');
    equal(
      [bad.statuses, good.statuses],
      [
        ['pending', 'completed'],
        ['pending', 'completed'],
      ],
      'what both were told',
    );
    bad.end();
    good.end();
  });

  if (kit.capabilities.delete) {
    kit.test('a deletion is not told; the snapshot that comes next under the id is', async ({ a }) => {
      await a.save('one', snapshot({ sessionId: 'chat', status: 'completed' }));
      const watcher = new Watcher(a, 'one');
      await kit.eventually(() => watcher.told.length > 0, 'the first telling');
      await a.deleteSession('chat');
      await a.save('one', snapshot({ sessionId: 'chat', status: 'pending' }));
      await kit.eventually(() => watcher.last === 'pending', 'the telling of the new one');
      equal(watcher.statuses, ['completed', 'pending'], 'the notification');
      watcher.end();
    });

    const removers = kit.capabilities.watchAcrossProcesses ? (['a', 'b'] as const) : (['a'] as const);
    for (const remover of removers) {
      const whose = remover === 'a' ? 'its own' : 'another';
      kit.test(
        `who watches after ${whose} handle deleted the snapshot is not told of it, though others still watch`,
        async (stage) => {
          const { a } = stage;
          await a.save('one', snapshot({ sessionId: 'chat', status: 'aborted' }));
          const early = new Watcher(a, 'one');
          await kit.eventually(() => early.last === 'aborted', 'the first telling');
          await stage[remover].deleteSession('chat');
          const late = new Watcher(a, 'one');
          await stage[remover].save('one', snapshot({ sessionId: 'chat', status: 'completed' }));
          await kit.eventually(
            () => [early, late].every(({ last }) => last === 'completed'),
            'the telling of the new one',
          );
          equal([early.statuses, late.statuses], [['aborted', 'completed'], ['completed']], 'the notification');
          early.end();
          late.end();
        },
      );
    }
  }
}

function ending(kit: Kit): void {
  kit.test('nothing is told after the end, be it before or after the first telling', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    const [never, once, witness] = [new Watcher(a, 'one'), new Watcher(a, 'one'), new Watcher(a, 'one')];
    never.end();
    await kit.eventually(() => once.told.length > 0 && witness.told.length > 0, 'the first tellings');
    once.end();
    await a.save('one', snapshot({ status: 'completed' }));
    await kit.eventually(() => witness.last === 'completed', 'the telling of the witness');
    equal([never.statuses, once.statuses], [[], ['pending']], 'what the ended ones were told');
    witness.end();
  });

  kit.test('ending a watcher inside a callback does not skip the next', async ({ a }) => {
    const order: string[] = [];
    const watching = ['first', 'second', 'third'].map((name): Watcher => {
      const watcher: Watcher = new Watcher(a, 'one', () => {
        order.push(name);
        if (name !== 'third') watcher.end();
      });
      return watcher;
    });
    await a.save('one', snapshot({ status: 'pending' }));
    await kit.eventually(() => order.length === 3, 'the telling of all three');
    await a.save('one', snapshot({ status: 'aborted' }));
    await kit.eventually(() => watching[2]!.last === 'aborted', 'the telling of the third');
    equal(
      watching.map((watcher) => watcher.told.length),
      [1, 1, 2],
      'tellings',
    );
    watching[2]!.end();
  });

  kit.test('a watcher that another one ends is told nothing more', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    let toldWhenEnded: number | undefined;
    const killer: Watcher = new Watcher(a, 'one', (news) => {
      if (news.status !== 'failed') return;
      victim.end();
      toldWhenEnded = victim.told.length;
    });
    const [victim, witness] = [new Watcher(a, 'one'), new Watcher(a, 'one')];
    await kit.eventually(() => [killer, victim, witness].every((one) => one.told.length > 0), 'the first tellings');
    await a.save('one', snapshot({ status: 'failed' }));
    await kit.eventually(() => killer.last === 'failed' && witness.last === 'failed', 'the telling of the others');
    equal(victim.told.length, toldWhenEnded, 'tellings of the ended one');
    killer.end();
    witness.end();
  });

  kit.test('one callback subscribed twice is two watchers; ending twice is harmless', async ({ a }) => {
    let calls = 0;
    const count = (): void => void calls++;
    const ends = [a.watch('one', count), a.watch('one', count)];
    const witness = new Watcher(a, 'one');
    await a.save('one', snapshot({ status: 'pending' }));
    await kit.eventually(() => calls === 2 && witness.told.length > 0, 'both tellings');
    ends[0]!();
    ends[0]!();
    await a.save('one', snapshot({ status: 'completed' }));
    await kit.eventually(() => calls === 3 && witness.last === 'completed', 'the telling of the one that is left');
    ends[1]!();
    witness.end();
  });
}

function otherHandle(kit: Kit): void {
  kit.either(
    'watchAcrossProcesses',
    {
      name: 'a watcher hears what another handle saves',
      body: async ({ a, b }) => {
        await b.save('one', snapshot({ status: 'pending' }));
        const watcher = new Watcher(a, 'one');
        await kit.eventually(() => watcher.last === 'pending', 'the first telling');
        await b.save('one', snapshot({ status: 'aborted' }));
        await kit.eventually(() => watcher.last === 'aborted', 'the telling of the other handle’s save');
        equal(watcher.statuses, ['pending', 'aborted'], 'the notification');
        watcher.end();
      },
    },
    {
      name: 'a watcher hears what its own store object saves, and is told no wrong of others',
      body: async ({ a, b }) => {
        await b.save('one', snapshot({ status: 'pending' }));
        const watcher = new Watcher(a, 'one');
        await kit.eventually(() => watcher.last === 'pending', 'the first telling');
        await b.save('one', snapshot({ status: 'aborted' }));
        await a.save('one', snapshot({ status: 'aborted', custom: { last: true } }));
        await kit.eventually(() => watcher.last === 'aborted', 'the telling of the last save');
        equal(watcher.statuses, ['pending', 'aborted'], 'the notification');
        watcher.end();
      },
    },
  );
}
