import { GenkitError } from 'genkit';
import type { SessionSnapshot } from 'genkit/beta';
import { addressTo, logError, notFound, quote } from '../../errors.ts';
import { listAllSnapshots } from '../../store/list/items-of.ts';
import { sessionOf, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SnapshotLookup, SnapshotStore } from '../../store/contract.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { statusOf } from '../runtime-error.ts';
import { isHidden } from './visible-snapshot.ts';

/** Maximum number of earlier snapshots that are tried. */
const MAX_STEPS = 100;

/**
 * Reads a snapshot of the agent's store.
 *
 * @param sessionId The snapshot's session, if the caller names it besides the snapshot.
 * @throws `NOT_FOUND` for a damaged snapshot that is hidden from the caller, `DATA_LOSS` for another one. If the store has metadata and lists,
 *   the `DATA_LOSS` names the nearest earlier snapshot that can be read, in its message and as `healthySnapshotId` in its details.
 */
export function readOrExplain<State>(
  agent: AgentDefinition<State>,
  lookup: SnapshotLookup,
  sessionId = lookup.sessionId,
): Promise<SessionSnapshot<State> | undefined> {
  return orExplain(agent, lookup, mustHaveStore(agent, 'Reading a snapshot').getSnapshot(lookup), sessionId);
}

/** As {@link readOrExplain}, for a read that has begun. */
export function orExplain<State, T>(
  agent: AgentDefinition<State>,
  lookup: SnapshotLookup,
  reading: Promise<T>,
  sessionId = lookup.sessionId,
): Promise<T> {
  return reading.catch(async (error: unknown) => {
    const isExplained = statusOf(error) === 'DATA_LOSS' && agent.can.metadata && agent.can.list;
    throw isExplained ? await explained(agent, lookup, { sessionId, error }) : error;
  });
}

/** The snapshot that an error of {@link readOrExplain} names. */
export function healthySnapshotOf(error: unknown): string | undefined {
  return (error as { detail?: { healthySnapshotId?: string } }).detail?.healthySnapshotId;
}

async function explained<State>(
  agent: AgentDefinition<State>,
  lookup: SnapshotLookup,
  { sessionId, error }: { sessionId: string | undefined; error: unknown },
): Promise<unknown> {
  let healthySnapshotId: string | undefined;
  try {
    healthySnapshotId = await findHealthy(agent, lookup, sessionId);
  } catch (failure) {
    return statusOf(failure) === 'NOT_FOUND' ? failure : error;
  }
  const damage =
    lookup.sessionId === undefined
      ? `Snapshot ${quote(lookup.snapshotId!)} is damaged.`
      : `Session ${quote(lookup.sessionId)} is damaged: its latest snapshot can't be read.`;
  const otherwise =
    sessionId === undefined ? 'load its session by sessionId, or start a new one' : 'start a new session';
  const advice =
    healthySnapshotId === undefined
      ? `No snapshot before it can be read either: ${otherwise}.`
      : `Resume from snapshot ${quote(healthySnapshotId)}, the nearest before it that can be read.`;
  const message = `${damage} ${advice}`;
  logError(message, error);
  const detail = healthySnapshotId && { detail: { healthySnapshotId } };
  const explanation = new GenkitError({ status: 'DATA_LOSS', message, ...detail });
  // It contains only ids that the caller named, and a snapshot that the caller may read.
  return addressTo('user', Object.assign(explanation, { cause: error }));
}

/**
 * The nearest completed snapshot before a damaged one that can be read completely. When the damage hides the parent, the session's latest
 * earlier snapshot is tried next.
 *
 * @throws `NOT_FOUND` for a session that is hidden from the caller, and the store's errors.
 */
async function findHealthy<State>(
  agent: AgentDefinition<State>,
  lookup: SnapshotLookup,
  sessionId: string | undefined,
): Promise<string | undefined> {
  const { context, ...damaged } = lookup;
  const store = agent.store as SnapshotStore<State>;
  const tried = new Set<string>();
  let listed: SnapshotMetadata[] | undefined;
  const find = async (lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> => {
    const found = await unlessDamaged(store.getSnapshotMetadata({ ...lookup, context }));
    if (found || sessionId === undefined) return found;
    listed ??= (await unlessDamaged(listAllSnapshots(store, { sessionId, context }))) ?? [];
    const itself = listed.find(({ snapshotId }) => snapshotId === lookup.snapshotId);
    return itself ?? listed.findLast(({ snapshotId }) => !tried.has(snapshotId));
  };
  let next = await find(damaged);
  sessionId ??= next && sessionOf(next);
  while (next && !tried.has(next.snapshotId) && tried.size < MAX_STEPS) {
    const { snapshotId, parentId, status }: SnapshotMetadata = next;
    tried.add(snapshotId);
    if (sessionOf(next) !== sessionId || isHidden(agent, next, context)) throw lookupNotFound(agent, lookup);
    if (status === 'completed' && (await unlessDamaged(store.getSnapshot({ snapshotId, context, frozen: true })))) {
      return snapshotId;
    }
    next = parentId === undefined ? undefined : await find({ snapshotId: parentId });
  }
  return undefined;
}

/** The error for a session or a snapshot that does not exist or is hidden from the caller. */
export function lookupNotFound<State>(
  { name }: AgentDefinition<State>,
  { sessionId, snapshotId }: SnapshotLookup,
): GenkitError {
  return notFound(
    snapshotId === undefined
      ? `Agent '${name}' has no session ${quote(sessionId!)}.`
      : `Snapshot ${quote(snapshotId)} was not found.`,
  );
}

/** Returns `undefined` also for damaged data. */
async function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (statusOf(error) !== 'DATA_LOSS') throw error;
    return undefined;
  }
}
