import { describe, expect, it } from 'vitest';
import type { SessionSnapshot, SnapshotStatus } from '../../../src/store/contract.ts';
import { WatchHub } from '../../../src/store/parts/watch-hub.ts';

const turn = (status: SnapshotStatus, n = 0): SessionSnapshot => ({ snapshotId: 'one', createdAt: `${n}`, status });
const told = (): Promise<unknown> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** A hub, and what a listener of `one` heard. */
function listening() {
  const hub = new WatchHub<unknown>();
  const heard: string[] = [];
  const end = hub.subscribe('one', (news) => heard.push(`${news.status} ${news.createdAt}`));
  const publish = (status: SnapshotStatus, n = 0): void => hub.publish('one', status, () => turn(status, n));
  return { hub, heard, end, publish };
}

describe('WatchHub', () => {
  it('tells each status once, in order, and never inside the call', async () => {
    const { heard, publish } = listening();
    for (const status of ['pending', 'expired', 'pending', 'completed'] as const) publish(status);
    expect(heard).toEqual([]);
    await told();
    expect(heard).toEqual(['pending 0', 'expired 0', 'pending 0', 'completed 0']);
  });

  it('merges rewrites that keep the status into news not told yet, and tells them when there are none', async () => {
    const { heard, publish } = listening();
    for (const n of [1, 2, 3]) publish('pending', n);
    await told();
    publish('pending', 4);
    publish('completed', 5);
    await told();
    expect(heard).toEqual(['pending 3', 'pending 4', 'completed 5']);
  });

  it('announces to those that nothing was told, and after news nothing older', async () => {
    const { hub, heard, publish } = listening();
    publish('completed', 2);
    hub.announce('one', 'pending', () => turn('pending', 1));
    const late: string[] = [];
    hub.subscribe('one', (news) => late.push(news.status!));
    hub.announce('one', 'completed', () => turn('completed', 2));
    await told();
    expect([heard, late]).toEqual([['completed 2'], ['completed']]);
  });

  it('gives every listener its own copy, and makes none without a listener', async () => {
    const hub = new WatchHub<unknown>();
    const heard: SessionSnapshot[] = [];
    const [first] = [
      hub.subscribe('one', (news) => heard.push(news)),
      hub.subscribe('one', (news) => heard.push(news)),
    ];
    hub.publish('one', 'pending', () => turn('pending'));
    hub.publish('two', 'pending', () => expect.unreachable('a copy without a listener'));
    await told();
    expect(heard).toHaveLength(2);
    expect(heard[0]).not.toBe(heard[1]);
    first();
  });

  const thrown: readonly [string, () => unknown][] = [
    ['an error', () => new Error('mine')],
    ['what has no text', () => Object.create(null) as unknown],
    ['what throws when it is to become a text', () => ({ toString: () => expect.unreachable('mine') })],
    [
      'an error whose stack throws',
      () => Object.defineProperty(new Error(), 'stack', { get: () => expect.unreachable('mine') }),
    ],
  ];
  it.each(thrown)('goes on after a listener that throws %s, at once or later', async (_name, make) => {
    const { hub, heard, publish } = listening();
    hub.subscribe('one', () => {
      throw make();
    });
    // What is typed as a function without an answer is given async ones all the same. An unhandled rejection fails the test run.
    // oxlint-disable-next-line typescript/no-misused-promises
    hub.subscribe('one', async () => {
      throw make();
    });
    const after: string[] = [];
    hub.subscribe('one', (news) => after.push(news.status!));
    publish('pending');
    publish('failed');
    await told();
    expect([heard, after]).toEqual([
      ['pending 0', 'failed 0'],
      ['pending', 'failed'],
    ]);
  });

  it('tells nothing after the end, though it was queued', async () => {
    const { hub, heard, end, publish } = listening();
    publish('pending');
    end();
    end();
    await told();
    expect([heard, hub.size]).toEqual([[], 0]);
  });

  it('ends inside a callback: no further news, and the next listener is told', async () => {
    const hub = new WatchHub<unknown>();
    const heard: string[] = [];
    const end = hub.subscribe('one', (news) => {
      heard.push(`first ${news.status}`);
      end();
    });
    hub.subscribe('one', (news) => heard.push(`second ${news.status}`));
    for (const status of ['pending', 'aborted'] as const) hub.publish('one', status, () => turn(status));
    await told();
    expect(heard).toEqual(['first pending', 'second pending', 'second aborted']);
  });

  it('says when a key has lost its last listener, once, and holds nothing of it', () => {
    const hub = new WatchHub<unknown>();
    const idle: string[] = [];
    const ends = [1, 2].map((n) =>
      hub.subscribe(
        'one',
        () => {},
        () => idle.push(`listener ${n}`),
      ),
    );
    expect(hub.size).toBe(1);
    ends[1]!();
    expect(idle).toEqual([]);
    ends[0]!();
    ends[0]!();
    expect([idle, hub.size]).toEqual([['listener 1'], 0]);
  });

  it('closes: nothing more is told, and ending afterwards is harmless', async () => {
    const { hub, heard, end, publish } = listening();
    publish('pending');
    hub.close();
    publish('completed');
    await told();
    end();
    expect([heard, hub.size]).toEqual([[], 0]);
  });
});
