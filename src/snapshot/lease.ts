import type { SnapshotMetadata } from './snapshot.ts';

/** The lease of Genkit's own background runs, which do not store one, in ms. */
const GENKIT_LEASE_MS = 60_000;

/**
 * Whether the snapshot belongs to a background turn that may still run: its last heartbeat is not older than the lease of its run. One
 * that is as far in the future is of a process whose clock was wrong, and counts as old. A run without a lease counts as running until its
 * snapshot is terminal.
 */
export function mayBeRunning(snapshot: SnapshotMetadata): boolean {
  const { status, heartbeatAt } = snapshot;
  if (status !== 'pending' || heartbeatAt === undefined) return false;
  const { backgroundRun: run } = snapshot as { backgroundRun?: { leaseMs?: number } };
  const leaseMs = run ? (run.leaseMs ?? Infinity) : GENKIT_LEASE_MS;
  // The date of foreign data may be invalid.
  return Math.abs(Date.now() - (Date.parse(heartbeatAt) || 0)) <= leaseMs;
}

/** Whether the snapshot belongs to a background turn whose lease has run out. */
export function isLeaseOver(snapshot: SnapshotMetadata): boolean {
  const { status, heartbeatAt } = snapshot;
  return status === 'expired' || (status === 'pending' && heartbeatAt !== undefined && !mayBeRunning(snapshot));
}
