import { expect, it } from 'vitest';
import { scale } from '../../../../support/scale.ts';
import type { Contenders } from '../support/fleet.ts';
import { findAnomaly } from '../support/linearizability.ts';
import { idsOf, textsOf, turn } from '../support/snapshots.ts';
import { storeOf, type StoreSpec } from '../support/stores.ts';
import type { Observed, Recorded } from './tasks.ts';

const WRITERS = 8;
const TURNS = scale(10, 200);

function observed({ start, end, ...call }: Recorded): Observed {
  return { ...call, start: BigInt(start), end: BigInt(end) };
}

/** Saves of several processes to one session. */
export function oneSession(contenders: Contenders): void {
  async function play(store: StoreSpec, turns: number): Promise<Observed[]> {
    const seen = await Promise.all(
      contenders.children.map((child, i) =>
        child.call('play', { store, sessionId: 'shared', by: `writer ${i}`, turns }),
      ),
    );
    return seen.flat().map(observed);
  }

  it(`one session: ${WRITERS} writers x ${TURNS} turns make one chain of all acknowledged saves, linearizably`, async () => {
    const spec = { folder: contenders.folder() };
    const seen = await play(spec, TURNS);
    const store = storeOf(spec);
    const history = await idsOf(store, 'shared');
    const saves = seen.filter((call) => call.kind === 'save').map((call) => call.leaf!);
    expect(saves).toHaveLength(WRITERS * TURNS);
    expect(history.toSorted()).toEqual(saves.toSorted());
    expect(findAnomaly(history, seen)).toBeUndefined();

    const texts: string[] = [];
    for (const [i, snapshotId] of history.entries()) {
      const snapshot = await store.getSnapshot({ snapshotId });
      expect(snapshot?.parentId).toBe(history[i - 1]);
      texts.push(textsOf(snapshot).at(-1)!);
      expect(textsOf(snapshot)).toEqual(texts);
    }
    const expected = Array.from(
      { length: WRITERS * TURNS },
      (_, i) => `writer ${i % WRITERS} ${Math.floor(i / WRITERS)}`,
    );
    expect(texts.toSorted()).toEqual(expected.toSorted());
  });

  it('one session: with maxPersistedChainLength the writers keep the newest snapshots of the one chain', async () => {
    const spec = { folder: contenders.folder(), options: { maxPersistedChainLength: 5, checkpointInterval: 3 } };
    const seen = await play(spec, 10);
    const store = storeOf(spec);
    const history = await idsOf(store, 'shared');
    expect(history).toHaveLength(5);
    const saves = new Set(seen.filter((call) => call.kind === 'save').map((call) => call.leaf));
    for (const id of history) expect(saves).toContain(id);
    expect(textsOf(await store.getSnapshot({ sessionId: 'shared' }))).toHaveLength(WRITERS * 10);
  });

  it(`one session: siblings that ${WRITERS} processes save at once are all there, each a leaf`, async () => {
    const spec = { folder: contenders.folder() };
    const store = storeOf(spec);
    await store.saveSnapshot('root', () => turn('shared', undefined, 'root'));
    const ids = contenders.children.map((_, i) => Array.from({ length: 10 }, (_, n) => `branch-${i}-${n}`));
    await Promise.all(
      contenders.children.map((child, i) =>
        child.call('branch', { store: spec, sessionId: 'shared', parentId: 'root', ids: ids[i]! }),
      ),
    );
    const order = await idsOf(store, 'shared');
    expect(order.toSorted()).toEqual(['root', ...ids.flat()].toSorted());
    for (const own of ids)
      expect(
        order.filter((id) => own.includes(id)),
        'a process in its own order',
      ).toEqual(own);
    const { items } = await store.listSessions();
    expect(items[0]).toMatchObject({ leafCount: WRITERS * 10, leafId: order.at(-1) });
    for (const id of ids.flat()) expect(textsOf(await store.getSnapshot({ snapshotId: id }))).toEqual(['root', id]);
  });
}
