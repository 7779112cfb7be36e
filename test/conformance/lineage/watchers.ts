import assert from 'node:assert/strict';
import type { SessionSnapshot, SnapshotStatus } from '../../../src/store/contract.ts';
import { equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** Watches a snapshot and records the notifications. */
class Watcher {
  readonly received: SessionSnapshot[] = [];
  readonly end: () => void;

  constructor(handle: Handle, snapshotId: string, onNews: (news: SessionSnapshot) => void = () => {}) {
    this.end = handle.watch(snapshotId, (news) => {
      this.received.push(news);
      onNews(news);
    });
  }

  /** The statuses of the notifications, each repeated status once. */
  get statuses(): (SnapshotStatus | undefined)[] {
    return this.received.map((news) => news.status).filter((status, i, all) => i === 0 || status !== all[i - 1]);
  }

  get last(): SnapshotStatus | undefined {
    return this.received.at(-1)?.status;
  }
}

/** Notifications of statuses: soon, in order, each once, and no others. */
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
  kit.test('a watcher gets the current snapshot soon, but not while it subscribes', async ({ a }) => {
    const saved = snapshot({ sessionId: 'chat', status: 'pending', custom: { n: 1 }, messages: 3 });
    await a.save('one', saved);
    const watcher = new Watcher(a, 'one');
    equal(watcher.received, [], 'notifications inside the call');
    await kit.eventually(() => watcher.received.length > 0, 'the first notification');
    watcher.end();
    equal(watcher.received, [{ ...saved, snapshotId: 'one' }], 'the notification');
  });

  kit.test('a watcher of a snapshot that does not exist yet gets its first save', async ({ a }) => {
    const [watcher, neighbour] = [new Watcher(a, 'one'), new Watcher(a, 'two')];
    await a.save('two', snapshot());
    await kit.eventually(() => neighbour.received.length > 0, 'the notification of another watcher');
    equal(watcher.received, [], 'notifications without a save');
    await a.save('one', snapshot({ status: 'pending' }));
    await kit.eventually(() => watcher.received.length > 0, 'the first notification');
    equal([watcher.last, watcher.received[0]?.snapshotId], ['pending', 'one'], 'the notification');
    watcher.end();
    neighbour.end();
  });

  kit.test('an invalid id is refused', async ({ a }) => {
    for (const id of ['', ' ', 'x'.repeat(1025), 7, undefined]) {
      await refuses('INVALID_ARGUMENT', () => a.watch(id as string, () => {}));
    }
  });
}

function statuses(kit: Kit): void {
  kit.test('each status is delivered once and in order; other rewrites may be merged', async ({ a }) => {
    const history: SnapshotStatus[] = ['pending', 'pending', 'expired', 'pending', 'pending', 'completed', 'completed'];
    const early = new Watcher(a, 'one');
    for (const [n, status] of history.entries()) await a.save('one', snapshot({ status, custom: { n } }));
    await kit.eventually(() => early.last === 'completed', 'the last status');
    equal(early.statuses, ['pending', 'expired', 'pending', 'completed'], 'the statuses');
    const revisions = early.received.map((news) => (news.state?.custom as { n: number } | undefined)?.n ?? -1);
    equal(
      revisions,
      [...new Set(revisions)].toSorted((x, y) => x - y),
      'the notifications, in order and not twice',
    );
    for (const [i, n] of revisions.entries()) equal(early.received[i]!.status, history[n], 'the status of a revision');
    early.end();
  });

  kit.test('a later watcher begins with the current snapshot', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    const first = new Watcher(a, 'one');
    await kit.eventually(() => first.last === 'pending', 'the first status');
    await a.save('one', snapshot({ status: 'failed' }));
    await kit.eventually(() => first.last === 'failed', 'the second status');
    const late = new Watcher(a, 'one');
    await kit.eventually(() => late.received.length > 0, 'the first notification of the late one');
    equal(
      [late.statuses, first.received.length],
      [['failed'], 2],
      'the late watcher gets the snapshot, the first one not again',
    );
    first.end();
    late.end();
  });

  kit.test('a save that is skipped, refused or fails notifies no watcher', async ({ a }) => {
    await a.save('one', snapshot({ status: 'aborted', custom: { n: 1 } }));
    const [watcher, sentinel] = [new Watcher(a, 'one'), new Watcher(a, 'two')];
    await kit.eventually(() => watcher.received.length > 0, 'the first notification');
    await a.save('one', () => null);
    await assert.rejects(a.save('one', snapshot({ status: 'completed' })));
    await assert.rejects(a.save('one', () => assert.fail('mine')));
    await a.save('two', snapshot());
    await kit.eventually(() => sentinel.received.length > 0, 'the notification of another watcher');
    equal(watcher.received.length, 1, 'notifications');
    watcher.end();
    sentinel.end();
  });

  kit.test('a watcher that throws harms neither the save nor the others', async ({ a, b }) => {
    const bad = new Watcher(a, 'one', () => assert.fail('a watcher that throws'));
    const good = new Watcher(a, 'one');
    for (const status of ['pending', 'completed'] as const) {
      equal(await a.save('one', snapshot({ status })), 'one', 'the save');
      await kit.eventually(() => good.last === status && bad.last === status, `the notification of ${status}`);
    }
    equal((await b.mustGet('one')).status, 'completed', 'what was saved');
    equal(
      [bad.statuses, good.statuses],
      [
        ['pending', 'completed'],
        ['pending', 'completed'],
      ],
      'the notifications of both',
    );
    bad.end();
    good.end();
  });

  if (kit.capabilities.delete) {
    kit.test('a deletion notifies no watcher; the next snapshot with the same id does', async ({ a }) => {
      await a.save('one', snapshot({ sessionId: 'chat', status: 'completed' }));
      const watcher = new Watcher(a, 'one');
      await kit.eventually(() => watcher.received.length > 0, 'the first notification');
      await a.deleteSession('chat');
      await a.save('one', snapshot({ sessionId: 'chat', status: 'pending' }));
      await kit.eventually(() => watcher.last === 'pending', 'the notification of the new one');
      equal(watcher.statuses, ['completed', 'pending'], 'the notification');
      watcher.end();
    });

    const removers = kit.capabilities.watchAcrossProcesses ? (['a', 'b'] as const) : (['a'] as const);
    for (const remover of removers) {
      const whose = remover === 'a' ? 'its own' : 'another';
      kit.test(
        `a watcher that begins after ${whose} handle deleted the snapshot does not get it, even if others still watch`,
        async (stage) => {
          const { a } = stage;
          await a.save('one', snapshot({ sessionId: 'chat', status: 'aborted' }));
          const early = new Watcher(a, 'one');
          await kit.eventually(() => early.last === 'aborted', 'the first notification');
          await stage[remover].deleteSession('chat');
          const late = new Watcher(a, 'one');
          await stage[remover].save('one', snapshot({ sessionId: 'chat', status: 'completed' }));
          await kit.eventually(
            () => [early, late].every(({ last }) => last === 'completed'),
            'the notification of the new one',
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
  kit.test('an ended watcher gets nothing more, before or after the first notification', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    const [never, once, witness] = [new Watcher(a, 'one'), new Watcher(a, 'one'), new Watcher(a, 'one')];
    never.end();
    await kit.eventually(() => once.received.length > 0 && witness.received.length > 0, 'the first notifications');
    once.end();
    await a.save('one', snapshot({ status: 'completed' }));
    await kit.eventually(() => witness.last === 'completed', 'the notification of the witness');
    equal([never.statuses, once.statuses], [[], ['pending']], 'the notifications of the ended watchers');
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
    await kit.eventually(() => order.length === 3, 'the notification of all three');
    await a.save('one', snapshot({ status: 'aborted' }));
    await kit.eventually(() => watching[2]!.last === 'aborted', 'the notification of the third');
    equal(
      watching.map((watcher) => watcher.received.length),
      [1, 1, 2],
      'notifications',
    );
    watching[2]!.end();
  });

  kit.test('a watcher that another watcher ends gets nothing more', async ({ a }) => {
    await a.save('one', snapshot({ status: 'pending' }));
    let receivedWhenEnded: number | undefined;
    const killer: Watcher = new Watcher(a, 'one', (news) => {
      if (news.status !== 'failed') return;
      victim.end();
      receivedWhenEnded = victim.received.length;
    });
    const [victim, witness] = [new Watcher(a, 'one'), new Watcher(a, 'one')];
    await kit.eventually(
      () => [killer, victim, witness].every((one) => one.received.length > 0),
      'the first notifications',
    );
    await a.save('one', snapshot({ status: 'failed' }));
    await kit.eventually(() => killer.last === 'failed' && witness.last === 'failed', 'the notification of the others');
    equal(victim.received.length, receivedWhenEnded, 'notifications of the ended one');
    killer.end();
    witness.end();
  });

  kit.test('one callback subscribed twice is two watchers; ending twice is harmless', async ({ a }) => {
    let calls = 0;
    const count = (): void => void calls++;
    const ends = [a.watch('one', count), a.watch('one', count)];
    const witness = new Watcher(a, 'one');
    await a.save('one', snapshot({ status: 'pending' }));
    await kit.eventually(() => calls === 2 && witness.received.length > 0, 'both notifications');
    ends[0]!();
    ends[0]!();
    await a.save('one', snapshot({ status: 'completed' }));
    await kit.eventually(
      () => calls === 3 && witness.last === 'completed',
      'the notification of the remaining watcher',
    );
    ends[1]!();
    witness.end();
  });
}

function otherHandle(kit: Kit): void {
  kit.either(
    'watchAcrossProcesses',
    {
      name: 'a watcher gets the saves of another handle',
      body: async ({ a, b }) => {
        await b.save('one', snapshot({ status: 'pending' }));
        const watcher = new Watcher(a, 'one');
        await kit.eventually(() => watcher.last === 'pending', 'the first notification');
        await b.save('one', snapshot({ status: 'aborted' }));
        await kit.eventually(() => watcher.last === 'aborted', 'the notification of the other handle’s save');
        equal(watcher.statuses, ['pending', 'aborted'], 'the notification');
        watcher.end();
      },
    },
    {
      name: 'a watcher gets the saves of its own store object, and nothing false about others',
      body: async ({ a, b }) => {
        await b.save('one', snapshot({ status: 'pending' }));
        const watcher = new Watcher(a, 'one');
        await kit.eventually(() => watcher.last === 'pending', 'the first notification');
        await b.save('one', snapshot({ status: 'aborted' }));
        await a.save('one', snapshot({ status: 'aborted', custom: { last: true } }));
        await kit.eventually(() => watcher.last === 'aborted', 'the notification of the last save');
        equal(watcher.statuses, ['pending', 'aborted'], 'the notification');
        watcher.end();
      },
    },
  );
}
