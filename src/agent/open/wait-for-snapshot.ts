import type { SessionSnapshot } from 'genkit/beta';
import { isTerminal } from '../../snapshot/status.ts';
import type { SnapshotLookup } from '../../store/contract.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { readSnapshot } from './read-snapshot.ts';

/** Which snapshot to wait for, and how long. */
export interface WaitRequest extends SnapshotLookup {
  metadataOnly?: boolean;
  /** At most so long, in ms. */
  waitMs: number;
}

/** Between two reads of a store that can't be watched, in ms. */
const READ_INTERVAL_MS = 500;

/**
 * The snapshot once it is settled, or as it is when the time is up. The store is watched; what is read besides is only what no store tells:
 * that the heartbeats of a run have ceased.
 */
export async function waitForSnapshot<State>(
  agent: AgentDefinition<State>,
  { waitMs, ...lookup }: WaitRequest,
  signal?: AbortSignal,
): Promise<SessionSnapshot<State> | undefined> {
  const store = mustHaveStore(agent, 'Waiting for a snapshot');
  const deadline = performance.now() + waitMs;
  let snapshot = await readSnapshot(agent, lookup);
  // A session's latest leaf is waited for as the snapshot that it is now.
  const exact = { ...lookup, sessionId: undefined, snapshotId: snapshot?.snapshotId };
  const isOver = () => performance.now() >= deadline || signal?.aborted === true;
  while (snapshot?.status === 'pending' && !isOver()) {
    const { snapshotId } = snapshot;
    const ms = Math.min(
      deadline - performance.now(),
      agent.can.watch ? msUntilExpiry(agent, snapshot) : READ_INTERVAL_MS,
    );
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => end(), ms);
      const unsubscribe = store.onSnapshotStateChange?.(snapshotId, ({ status }) => isTerminal(status) && end(), {
        context: lookup.context,
      });
      const end = () => {
        clearTimeout(timer);
        unsubscribe?.();
        signal?.removeEventListener('abort', end);
        resolve();
      };
      signal?.addEventListener('abort', end, { once: true });
    });
    snapshot = await readSnapshot(agent, exact);
  }
  return snapshot;
}

/** How long the run counts as alive unless it says so again. */
function msUntilExpiry<State>({ background }: AgentDefinition<State>, { heartbeatAt }: SessionSnapshot): number {
  if (heartbeatAt === undefined) return background.leaseMs;
  return Math.max(1, Date.parse(heartbeatAt) + background.leaseMs + 1 - Date.now());
}
