import { expect, it } from 'vitest';
import type { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { scale, seed } from '../../../../support/scale.ts';
import type { Contenders } from '../support/fleet.ts';
import type { Outcome } from '../support/outcome.ts';
import { Random } from '../../../../support/random.ts';
import { pending } from '../support/snapshots.ts';
import { storeOf } from '../support/stores.ts';
import { tasks, type Wish } from './tasks.ts';

const WISHES: readonly Wish[] = ['completed', 'failed', 'aborted', 'pending'];

/** A wish and its outcome. */
type Result = readonly [Wish, Outcome];

async function createPending(store: FileSessionStore, rounds: number): Promise<string[]> {
  const ids = Array.from({ length: rounds }, (_, i) => `race-${i}`);
  for (const [i, id] of ids.entries()) await store.saveSnapshot(id, () => pending(`races-${i % 20}`));
  return ids;
}

/** The one wish that made the snapshot terminal; fails when there are more, or when a refusal is not that of a terminal snapshot. */
function winnerOf(results: readonly Result[]): Wish {
  const winners = results.filter(([wish, outcome]) => wish !== 'pending' && outcome.kind === 'saved');
  expect(winners.map(([wish]) => wish)).toHaveLength(1);
  for (const [, outcome] of results) {
    if (outcome.kind !== 'saved') expect(outcome).toMatchObject({ kind: 'refused', status: 'FAILED_PRECONDITION' });
  }
  return winners[0]![0];
}

/** The snapshot has the state of its winner, with the acknowledged heartbeats. */
async function checkSettled(store: FileSessionStore, id: string, results: readonly Result[]): Promise<void> {
  const winner = winnerOf(results);
  const beats = results.filter(([wish, outcome]) => wish === 'pending' && outcome.kind === 'saved').length;
  const snapshot = await store.getSnapshot({ snapshotId: id });
  expect(snapshot).toMatchObject({ status: winner, state: { custom: { settledBy: winner } } });
  expect(snapshot?.state?.custom).toEqual({ settledBy: winner, ...(beats > 0 && { beats }) });
}

/** The first writer that makes a snapshot terminal wins. */
export function terminalState(contenders: Contenders): void {
  const inOne = scale(100, 1000);
  it(`terminal state: each of ${inOne} races in one process has one final winner`, async () => {
    const random = new Random(seed);
    const spec = { folder: contenders.folder() };
    const store = storeOf(spec);
    const raced = new Map<string, Result[]>();
    for (const id of await createPending(store, inOne)) {
      const wishes = random.shuffled([...WISHES, 'pending' as const]);
      const outcomes = await tasks.wish({ store: spec, id, wishes });
      raced.set(
        id,
        outcomes.map((outcome, i) => [wishes[i]!, outcome]),
      );
    }
    for (const [id, results] of raced) await checkSettled(store, id, results);
  });

  const across = scale(100, 1000);
  it(`terminal state: each of ${across} races of completed against aborted across processes has one final winner`, async () => {
    const random = new Random(seed);
    const spec = { folder: contenders.folder() };
    const store = storeOf(spec);
    const raced = new Map<string, Result[]>();
    for (const id of await createPending(store, across)) {
      const sides = random.shuffled<Wish[]>([
        random.shuffled<Wish>(random.next() < 0.5 ? ['completed'] : ['completed', 'pending']),
        random.shuffled<Wish>(random.next() < 0.5 ? ['aborted'] : ['aborted', 'failed', 'pending']),
      ]);
      const outcomes = await Promise.all(
        sides.map((wishes, side) => contenders.children[side]!.call('wish', { store: spec, id, wishes })),
      );
      raced.set(
        id,
        outcomes.flatMap((answers, side) => answers.map((outcome, i) => [sides[side]![i]!, outcome] as const)),
      );
    }
    for (const [id, results] of raced) await checkSettled(store, id, results);
    const winners = new Set([...raced.values()].map(winnerOf));
    expect([...winners].toSorted(), 'each wish wins a race').toEqual(['aborted', 'completed', 'failed']);
  });
}
