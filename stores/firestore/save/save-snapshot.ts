import { GenkitError } from 'genkit';
import { quote } from '../../../src/errors.ts';
import { assertId, reserveSnapshotId } from '../../../src/snapshot/ids.ts';
import type { SessionSnapshotInput } from '../../../src/snapshot/snapshot.ts';
import type { SaveRequest } from '../../../src/store/base-session-store.ts';
import { AlreadySaved, FinalRefusal, isTransportFailure, Stale, tooContended } from '../failures.ts';
import type { SnapshotReader } from '../read/snapshot-reader.ts';
import type { Watches } from '../watch/watches.ts';
import { Save } from './save-call.ts';
import { createSnapshot, rewriteSnapshot } from './create-or-rewrite.ts';

/** How often a save is tried because of other writers. A time limit would allow few attempts with a slow database. */
const MOST_ATTEMPTS = 60;
/** After this many attempts a save no longer pauses, so that it does not always lose against newer ones, which do. */
const PAUSING_ATTEMPTS = 7;

/**
 * Saves a snapshot: first with cached data, then with data that is read, as often as other writers are faster.
 *
 * @returns The snapshot's id; `null`: the mutator skipped the write.
 */
export async function saveSnapshot<S>(
  reader: SnapshotReader,
  watches: Watches<S>,
  request: SaveRequest<S>,
): Promise<string | null> {
  const save = new Save(reader, watches, request);
  const answer = request.snapshotId === undefined ? request.mutator(undefined) : undefined;
  if (answer === null) return null;
  const id = request.snapshotId ?? answer?.snapshotId ?? reserveSnapshotId();
  assertId(id, 'snapshotId');
  const { tenant } = save;
  // All saves use the same order, so that two saves never wait for each other.
  const records = [...request.scopes.keys()].toSorted();
  const inTurn = records.reduceRight(
    (work, key) => () => tenant.queues.scopes.run(tenant.keyOf(key), work),
    () => tryRepeatedly(save, id, answer),
  );
  return tenant.queues.snapshots.run(tenant.keyOf(id), inTurn);
}

async function tryRepeatedly<S>(
  save: Save<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
): Promise<string | null> {
  for (let attempt = 1; ; attempt++) {
    let begun = performance.now();
    const again = (): Promise<string | null> => {
      begun = performance.now();
      return createOrRewrite(save, id, answer);
    };
    try {
      if (attempt > 1) return await save.attemptToRead(id, again);
      const isKnown = save.tenant.caches.snapshots.get(save.tenant.keyOf(id));
      return await (isKnown ? createOrRewrite(save, id, answer) : createSnapshot(save, id, answer));
    } catch (error) {
      if (error instanceof AlreadySaved) return id;
      if (!(error instanceof Stale) && (attempt > 1 || isFinal(error))) throw error;
      if (attempt === MOST_ATTEMPTS) throw tooContended(`Saving snapshot ${quote(id)}`);
      // No pause after the first attempt: it may have failed only because the cache was outdated.
      if (attempt > 1) await pause(longestPause(attempt, performance.now() - begun));
    }
  }
}

/** The longest pause after an attempt whose commit took `ms`: at first two and a half times as long, and shorter after each further attempt. */
function longestPause(attempt: number, ms: number): number {
  return ms * Math.max(0, (PAUSING_ATTEMPTS - attempt) / 2);
}

async function createOrRewrite<S>(
  save: Save<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
): Promise<string | null> {
  const current = await save.snapshot(id);
  if (!current) return createSnapshot(save, id, answer);
  return current.by.includes(save.nonce) ? id : rewriteSnapshot(save, current);
}

/** Whether a further attempt is useless: the refusal does not depend on stored data, or the database does not answer. */
function isFinal(error: unknown): boolean {
  const isOutage = error instanceof GenkitError && error.status === 'UNAVAILABLE';
  return error instanceof FinalRefusal || isTransportFailure(error) || isOutage;
}

async function pause(longest: number): Promise<void> {
  if (longest > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
}
