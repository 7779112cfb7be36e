import { expect, it } from 'vitest';
import { scale } from '../../../../support/scale.ts';
import type { Contenders } from '../support/fleet.ts';
import { counterOf, idsOf } from '../support/snapshots.ts';
import { storeOf } from '../support/stores.ts';

const EIGHT = 8;

/** Each save of a snapshot sees the one before. */
export function atomicUpdate(contenders: Contenders): void {
  for (const [count, times] of [
    [2, 200],
    [EIGHT, 50],
  ] as const) {
    it(`atomic update: ${count} processes that add ${times} times each lose nothing`, async () => {
      const store = { folder: contenders.folder() };
      await Promise.all(
        contenders.children.slice(0, count).map((child) => child.call('increment', { store, id: 'counter', times })),
      );
      expect(counterOf(await storeOf(store).getSnapshot({ snapshotId: 'counter' }))).toBe(count * times);
    });
  }

  const directories = scale(10, 1000);
  it(`atomic update: eight processes that begin a directory together lose nothing, ${directories} times`, async () => {
    for (let i = 0; i < directories; i++) {
      const store = { folder: contenders.folder() };
      await Promise.all(
        contenders.children.map((child) => child.call('increment', { store, id: 'counter', times: 1 })),
      );
      const reader = storeOf(store);
      expect(counterOf(await reader.getSnapshot({ snapshotId: 'counter' }))).toBe(contenders.children.length);
    }
  });

  it('atomic update: an id that two processes save first in two sessions belongs to one of them', async () => {
    const store = { folder: contenders.folder() };
    const rounds = scale(20, 1000);
    for (let i = 0; i < rounds; i++) {
      const id = `claimed-${i}`;
      const outcomes = await Promise.all(
        ['left', 'right'].map((sessionId, side) => contenders.children[side]!.call('claim', { store, id, sessionId })),
      );
      const answers = outcomes.map((outcome) => outcome.kind === 'saved' && outcome.id);
      expect(new Set(answers)).toEqual(new Set([id, null]));
    }
    const [left, right] = [await idsOf(storeOf(store), 'left'), await idsOf(storeOf(store), 'right')];
    expect(new Set([...left, ...right]).size).toBe(rounds);
    expect(left.length + right.length).toBe(rounds);
  });
}
