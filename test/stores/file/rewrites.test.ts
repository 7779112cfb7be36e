import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { scale, seed } from '../../support/scale.ts';
import { temporaryFolder } from './support/folders.ts';
import { Random } from '../../support/random.ts';
import { openStore, saveTurn, SESSION, stateOf } from './support/scenarios.ts';

describe(`F3 rewrites (seed ${seed})`, () => {
  const rewrites = scale(500, 5000);
  const turns = 30;

  it(`${rewrites} random rewrites of any snapshot leave every other one as it was`, async () => {
    const random = new Random(seed);
    const folder = temporaryFolder();
    const options = { durability: 'fast', checkpointInterval: 25 } as const;
    const store = openStore(folder, options);
    const states = new Map<string, unknown>();
    for (let turn = 1; turn <= turns; turn++) {
      const parent = turn === 1 ? {} : { parent: `t${1 + Math.floor((turn - 1) * Math.sqrt(random.next()))}` };
      await saveTurn(store, turn, { ...parent, wide: true });
      states.set(`t${turn}`, stateOf(turn, true));
    }
    for (let rewrite = 1; rewrite <= rewrites; rewrite++) {
      const id = `t${1 + random.below(turns)}`;
      // Small changes are appended as patches, large ones make a checkpoint of their own.
      const state = { ...stateOf(1 + random.below(turns), random.below(2) === 0), artifacts: [], extra: rewrite };
      await store.saveSnapshot(
        id,
        (current) =>
          ({
            ...current!,
            state: random.below(2) === 0 ? state : { ...current!.state, extra: rewrite },
          }) as never,
      );
      states.set(id, (await store.getSnapshot({ snapshotId: id }))?.state);
      const reader = rewrite % 10 === 0 ? openStore(folder, options) : store;
      const looked = rewrite % 10 === 0 ? [...states.keys()] : [`t${1 + random.below(turns)}`];
      for (const other of looked) {
        const state = (await reader.getSnapshot({ snapshotId: other }))?.state;
        expect(isDeepStrictEqual(state, states.get(other)), `${other} after rewrite ${rewrite}, of ${id}`).toBe(true);
      }
    }
    expect((await store.listSnapshots({ sessionId: SESSION })).items).toHaveLength(turns);
  });
});
