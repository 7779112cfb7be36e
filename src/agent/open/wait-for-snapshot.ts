import type { SessionSnapshot } from 'genkit/beta';
import { isTerminal } from '../../snapshot/status.ts';
import type { SnapshotLookup } from '../../store/contract.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { readSnapshot } from './read-snapshot.ts';

export interface WaitRequest extends SnapshotLookup {
  metadataOnly?: boolean;
  /** Longest wait, in ms. Default: 0. */
  waitMs?: number;
}

/** Interval between two reads of a store that can't be watched, in ms. */
const READ_INTERVAL_MS = 500;

/**
 * Returns the snapshot once it is terminal, or as it is when the time is up. The store is watched; it is read again only to notice that the
 * heartbeats of a run have stopped, which no store reports.
 */
export async function waitForSnapshot<State>(
  agent: AgentDefinition<State>,
  { waitMs = 0, ...lookup }: WaitRequest,
  signal?: AbortSignal,
): Promise<SessionSnapshot<State> | undefined> {
  const store = mustHaveStore(agent, waitMs > 0 ? 'Waiting for a snapshot' : 'Reading a snapshot');
  const deadline = performance.now() + waitMs;
  let snapshot = await readSnapshot(agent, lookup);
  // Waits for the snapshot that is the session's latest leaf now, even if the leaf changes.
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

/** How long the run counts as alive without another heartbeat, in ms. */
function msUntilExpiry<State>({ background }: AgentDefinition<State>, { heartbeatAt }: SessionSnapshot): number {
  if (heartbeatAt === undefined) return background.leaseMs;
  return Math.max(1, Date.parse(heartbeatAt) + background.leaseMs + 1 - Date.now());
}
