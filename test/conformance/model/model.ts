import { forAll } from '../support/for-all.ts';
import { Player } from '../support/player.ts';
import type { Stage, Subject } from '../support/kit.ts';
import { tapes, type Operation } from '../support/tape.ts';

/** A random sequence of operations has the same results in the store and in the reference model. */
export const model: Subject = {
  name: 'model',
  tests(kit) {
    const random = kit.property(150, 5000);
    kit.test(
      `on ${random.numRuns} random tapes the store and the reference model agree (seed ${random.seed})`,
      async () => {
        const isShared = kit.hasTenants;
        const play = (operations: Operation[]): Promise<void> =>
          kit.onStage(
            (stage) => new Player(kit, callers(stage, isShared)).play(operations),
            isShared ? kit.manyTenants : {},
          );
        await forAll(tapes(kit.capabilities, isShared ? 3 : 1), play, random);
      },
    );
  },
};

/** The handles of one tenant, or of three tenants whose prefixes are easily confused. */
function callers({ a, b }: Stage, isShared: boolean): [Stage['a'], Stage['b']][] {
  if (!isShared) return [[a, b]];
  return ['tenant', 'Tenant', '../tenant'].map((tenant) => [a.as(tenant), b.as(tenant)]);
}
