import * as fc from 'fast-check';
import { equal, refuses } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { second, snapshot } from '../support/snapshots.ts';
import { forAll } from '../support/for-all.ts';

/** A plan of a session: for each snapshot its parent (an earlier one, or none), its clock, and the snapshot to rewrite after it. */
interface Plan {
  parent: number | undefined;
  clock: number;
  rewrite: number | undefined;
}

const index = (below: number): fc.Arbitrary<number | undefined> =>
  fc.option(fc.integer({ min: 0, max: Math.max(0, below - 1) }), { nil: undefined, freq: 4 });

function plans(clock: fc.Arbitrary<number>): fc.Arbitrary<Plan[]> {
  const plan = fc.integer({ min: 1, max: 9 }).chain((size) => {
    const steps = Array.from({ length: size }, (_, i) => fc.record({ parent: index(i), clock, rewrite: index(i) }));
    return fc.tuple(...steps);
  });
  return plan.map((steps) =>
    steps.map((step, i) => (i === 0 ? { ...step, parent: undefined, rewrite: undefined } : step)),
  );
}

/** Returns the snapshots that no other names as parent, in the order of saving. */
function leavesOf(steps: readonly Plan[]): number[] {
  return steps.map((_, i) => i).filter((i) => steps.every((step) => step.parent !== i));
}

/** Saves the snapshots one after the other, and calls `check` with the names of the leaves after each. */
async function build(
  handles: readonly Handle[],
  sessionId: string,
  steps: readonly Plan[],
  check: (leaves: string[]) => Promise<void>,
): Promise<void> {
  const nameOf = (i: number): string => `${sessionId}, turn ${i}`;
  const save = (i: number, n: number): Promise<unknown> => {
    const { parent, clock } = steps[i]!;
    const parentId = parent === undefined ? {} : { parentId: nameOf(parent) };
    return handles[n % 2]!.save(
      nameOf(i),
      snapshot({ sessionId, ...parentId, createdAt: second(clock), updatedAt: second(n), custom: { i } }),
    );
  };
  for (const [i, { rewrite }] of steps.entries()) {
    await save(i, i);
    if (rewrite !== undefined) await save(rewrite, i + 1);
    await check(leavesOf(steps.slice(0, i + 1)).map(nameOf));
  }
}

/** The snapshot that a lookup by `sessionId` returns. */
export const leafRule: Subject = {
  name: 'leaf rule',
  tests(kit) {
    randomTrees(kit, 'equal clocks', fc.constant(0));
    randomTrees(kit, 'skewed clocks', fc.integer({ min: -1000, max: 1000 }));
    branching(kit);
  },
};

function randomTrees(kit: Kit, clocks: string, clock: fc.Arbitrary<number>): void {
  const random = kit.property(250, 5000);
  kit.test(
    `leaf rule: of ${random.numRuns} random trees with ${clocks} the leaf is the one first saved last (seed ${random.seed})`,
    ({ a, b }) => {
      let trees = 0;
      const grow = async (steps: Plan[]): Promise<void> => {
        const sessionId = `tree ${trees++}`;
        await build([a, b], sessionId, steps, async (leaves) => {
          equal(await a.leafId(sessionId), leaves.at(-1), 'the leaf');
          equal(await b.leafId(sessionId), leaves.at(-1), 'the leaf through the other handle');
        });
      };
      return forAll(plans(clock), grow, random);
    },
  );
}

function branching(kit: Kit): void {
  if (!kit.canRejectBranching) return;
  const random = kit.property(40, 1000);
  const name = `leaf rule: with rejectBranchingSessions, of ${random.numRuns} random trees those with several leaves are refused (seed ${random.seed})`;
  const body = async ({ a, b }: { a: Handle; b: Handle }): Promise<void> => {
    let trees = 0;
    const grow = async (steps: Plan[]): Promise<void> => {
      const sessionId = `tree ${trees++}`;
      await build([a, b], sessionId, steps, async (leaves) => {
        if (leaves.length === 1) equal(await b.leafId(sessionId), leaves[0], 'the leaf');
        else await refuses('FAILED_PRECONDITION', () => b.bySession(sessionId), sessionId);
        for (const leaf of leaves) equal((await a.mustGet(leaf)).snapshotId, leaf, 'the leaf by its id');
        if (leaves.length > 1 && kit.capabilities.metadata) {
          await refuses('FAILED_PRECONDITION', () => a.metadata({ sessionId }), sessionId);
        }
      });
    };
    await forAll(plans(fc.constant(0)), grow, random);
  };
  kit.test(name, body, { rejectBranchingSessions: true });
}
