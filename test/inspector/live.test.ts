/** Live events for the page, and their cost in requests of the store. */
import { InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { counting } from './support/counting.ts';
import { Listener } from './support/listener.ts';
import { open, type Visitor } from './support/open.ts';
import { message, saveTurns, turn } from './support/sessions.ts';

let store: SnapshotStore;
let calls: string[];
let visitor: Visitor;
let close: () => Promise<void>;
let listeners: Listener[] = [];

beforeEach(async () => {
  ({ store, calls } = counting(new InMemorySessionStore() as SnapshotStore));
  ({ visitor, close } = await open({ store, pollIntervalMs: 50 }));
});

afterEach(async () => {
  for (const listener of listeners) listener.stop();
  listeners = [];
  await close();
});

function listen(asks: object): Listener {
  const listener = new Listener(visitor, asks);
  listeners.push(listener);
  return listener;
}

/** Resolves after this many further polls of the store. */
async function looked(method: string, times: number): Promise<void> {
  const until = calls.filter((call) => call === method).length + times;
  await expect
    .poll(() => calls.filter((call) => call === method).length, { timeout: 60_000 })
    .toBeGreaterThanOrEqual(until);
}

async function addTurn(parentId: string, i: number): Promise<string> {
  const read = await store.getSnapshot({ snapshotId: parentId });
  const before = read?.state?.messages ?? [];
  const state = { messages: [...before, message(`${i}?`), message(`${i}!`, 'model')] };
  return (await store.saveSnapshot(undefined, () => turn('s', { parentId, state })))!;
}

describe('a session', () => {
  it('shows each new turn with its messages, with the one request that found it', async () => {
    const ids = await saveTurns(store, 's', 3);
    let leafId = ids.at(-1)!;
    const listener = listen({ sessionId: 's', leafId, follow: true });
    await looked('getSnapshot', 1);
    for (let i = 3; i < 8; i++) {
      const parentId = leafId;
      leafId = await addTurn(parentId, i);
      const { nodes } = await listener.next('nodes');
      expect(nodes).toMatchObject([{ snapshotId: leafId, parentId }]);
      const view = await listener.next('snapshot');
      expect(view.messagesFrom).toBe(2 * i);
      expect(view.messages).toEqual([message(`${i}?`), message(`${i}!`, 'model')]);
      expect(view.node.snapshotId).toBe(leafId);
    }
    // Besides the saves and reads of this test there were only polls, and no poll took a second request.
    expect(new Set(calls)).toEqual(new Set(['saveSnapshot', 'getSnapshot']));
  });

  it('costs one request for each poll, even without changes, and none when no page listens', async () => {
    const ids = await saveTurns(store, 's', 3);
    const listener = listen({ sessionId: 's', leafId: ids[2] });
    await looked('getSnapshotMetadata', 5);
    calls.length = 0;
    await addTurn(ids[2]!, 3);
    await listener.next('nodes');
    await looked('getSnapshotMetadata', 2);
    expect(new Set(calls)).toEqual(new Set(['getSnapshot', 'saveSnapshot', 'getSnapshotMetadata']));
    listener.stop();
    // Only the next listener makes requests.
    const other = listen({});
    await looked('listSessions', 3);
    calls.length = 0;
    await looked('listSessions', 4);
    expect(calls.filter((call) => call === 'getSnapshotMetadata').length).toBeLessThanOrEqual(1);
    other.stop();
  });

  it('shows turns that came between two polls, branches, and ended background runs', async () => {
    const ids = await saveTurns(store, 's', 3);
    const running = { status: 'pending' as const, heartbeatAt: new Date().toISOString(), parentId: ids[0]! };
    await store.saveSnapshot('runs', () => turn('s', running));
    await store.saveSnapshot('known', () => turn('s', { parentId: 'runs' }));
    const listener = listen({ sessionId: 's', leafId: 'known', pending: ['runs'] });
    await looked('getSnapshotMetadata', 2);
    await store.saveSnapshot('runs', (current) => ({ ...current!, status: 'completed' }));
    expect((await listener.next('nodes')).nodes).toMatchObject([{ snapshotId: 'runs', status: 'completed' }]);
    // A branch from an early turn.
    await store.saveSnapshot('branch', () => turn('s', { parentId: ids[0]! }));
    expect((await listener.next('nodes')).nodes.map(({ snapshotId }) => snapshotId)).toContain('branch');
    // A running leaf, and its end.
    await store.saveSnapshot('leaf', () => turn('s', { ...running, parentId: 'branch' }));
    expect((await listener.next('nodes')).nodes.at(-1)).toMatchObject({ snapshotId: 'leaf', status: 'pending' });
    await store.saveSnapshot('leaf', (current) => ({ ...current!, status: 'aborted' }));
    expect((await listener.next('nodes')).nodes.at(-1)).toMatchObject({ snapshotId: 'leaf', status: 'aborted' });
    await store.deleteSession({ sessionId: 's' });
    await listener.next('gone');
  });

  it('sends a page that was disconnected all turns that it missed', async () => {
    const ids = await saveTurns(store, 's', 3);
    let leafId = ids[2]!;
    const missed: string[] = [];
    for (let i = 3; i < 8; i++) missed.push((leafId = await addTurn(leafId, i)));
    const { nodes } = await listen({ sessionId: 's', leafId: ids[2] }).next('nodes');
    expect(nodes.map(({ snapshotId }) => snapshotId)).toEqual(missed);
  });

  it('of a store that refuses lookups of sessions with branches is read by its list', async () => {
    const strict = counting(new InMemorySessionStore({ rejectBranchingSessions: true }) as SnapshotStore);
    await close();
    ({ visitor, close } = await open({ store: strict.store, pollIntervalMs: 50 }));
    const ids = await saveTurns(strict.store, 's', 3);
    await strict.store.saveSnapshot('branch', () => turn('s', { parentId: ids[0]! }));
    const listener = listen({ sessionId: 's', follow: true });
    expect((await listener.next('nodes')).nodes.at(-1)).toMatchObject({ snapshotId: 'branch' });
    await strict.store.saveSnapshot('more', () => turn('s', { parentId: 'branch' }));
    expect((await listener.next('snapshot')).node).toMatchObject({ snapshotId: 'branch' });
    expect((await listener.next('snapshot')).node).toMatchObject({ snapshotId: 'more' });
  });
});

describe('the list', () => {
  it('shows sessions that were written, and reports failed polls', async () => {
    await saveTurns(store, 'a', 1);
    await saveTurns(store, 'b', 1);
    const listener = listen({});
    // The first poll sends all, so that no save after the page's read of the list is missed.
    expect((await listener.next('sessions')).items).toMatchObject([{ sessionId: 'b' }, { sessionId: 'a' }]);
    await saveTurns(store, 'c', 1);
    expect((await listener.next('sessions')).items).toMatchObject([{ sessionId: 'c', snapshotCount: 1 }]);
    await store.saveSnapshot('a2', () => turn('a', { parentId: 'a-00000' }));
    expect((await listener.next('sessions')).items).toMatchObject([{ sessionId: 'a', snapshotCount: 2 }]);
    await store.close();
    expect((await listener.next('failure')).error.message).toContain('closed');
  });

  it('with conditions shows sessions that meet them now, and names those that were written', async () => {
    await saveTurns(store, 'a', 1);
    await saveTurns(store, 'b', 1);
    const listener = listen({ status: 'completed', search: 'A' });
    expect(await listener.next('sessions')).toMatchObject({ items: [{ sessionId: 'a' }], written: ['b', 'a'] });
    const saveA = (id: string, parentId: string, status: 'failed' | 'completed') =>
      store.saveSnapshot(id, () => turn('a', { parentId, status }));
    await saveA('a2', 'a-00000', 'failed');
    expect(await listener.next('sessions')).toEqual({ items: [], written: ['a'] });
    await saveA('a3', 'a2', 'completed');
    expect(await listener.next('sessions')).toMatchObject({
      items: [{ sessionId: 'a', status: 'completed' }],
      written: ['a'],
    });
  });

  it('ends when the inspector is closed', async () => {
    const listener = listen({});
    await looked('listSessions', 2);
    await close();
    await expect(listener.next('sessions')).rejects.toThrow(/ended|terminated/);
  });
});
