import type { GenerationUsage } from 'genkit';
import { logWarning } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { SnapshotWriter } from '../save/snapshot-writer.ts';

/** A background run, as far as its lease is concerned. */
export interface LeasedRun<State> {
  readonly agent: AgentDefinition<State>;
  readonly writer: SnapshotWriter<State>;
  /** The snapshots of its turns, oldest first. */
  readonly snapshotIds: readonly string[];
  /** Whether the turn of the snapshot has no stored end yet. */
  isOpen(snapshotId: string): boolean;
  /** The usage of the turn so far. */
  usageOf(snapshotId: string): GenerationUsage | undefined;
  /** Called when the store says that the run was aborted or taken over. */
  onLost(): void;
}

/**
 * Renews the lease of a background run every `heartbeatIntervalMs`, as long as the process lives. A heartbeat that fails is logged; the next
 * one tries again. A heartbeat never begins before the previous one is written.
 *
 * @returns A function that stops the renewal.
 */
export function startLeaseRenewal<State>(run: LeasedRun<State>): () => void {
  const { name, background } = run.agent;
  let isRenewing = false;
  const timer = setInterval(() => {
    if (isRenewing) return;
    isRenewing = true;
    renewLease(run)
      .catch((error: unknown) => {
        logWarning(`A heartbeat of agent '${name}' could not be stored; it will be tried again.`, error);
      })
      .finally(() => (isRenewing = false));
  }, background.heartbeatIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Writes a heartbeat on each open snapshot. This also detects an abort or a takeover in a store that can't be watched. */
async function renewLease<State>(run: LeasedRun<State>): Promise<void> {
  // Newest first, because the heartbeat of the last snapshot counts for the whole run.
  for (const snapshotId of run.snapshotIds.toReversed()) {
    if (!run.isOpen(snapshotId)) continue;
    const isHeld = await run.writer.renewLease(snapshotId, run.usageOf(snapshotId));
    if (!isHeld && run.isOpen(snapshotId)) run.onLost();
  }
}
