import type { SnapshotMetadata } from './snapshot.ts';

/** The lease of Genkit's own background runs, which do not store one, in ms. */
const GENKIT_LEASE_MS = 60_000;
/** The owner of a released run. */
export const NO_OWNER = '';

/**
 * `running`: its worker is alive; `waiting`: no worker has begun it; `expired`: the lease ran out, because its worker died or can't reach the
 * store; `released`: its worker handed it over, and no other has taken it. Where recovery is on, another worker takes over the last two.
 */
export type RunState = 'running' | 'waiting' | 'expired' | 'released';

/** The lease of a background run in ms. `Infinity` for a run that was stored without one: it counts as running until it ends. */
export function leaseOf(snapshot: SnapshotMetadata): number {
  const run = recordOf(snapshot);
  return run ? (run.leaseMs ?? Infinity) : GENKIT_LEASE_MS;
}

/**
 * The state of a background turn; `undefined` for a snapshot that has ended.
 *
 * @param leaseMs Default: the lease that is stored with the run.
 */
export function runStateOf(snapshot: SnapshotMetadata, leaseMs = leaseOf(snapshot)): RunState | undefined {
  const { status, heartbeatAt } = snapshot;
  if (status !== 'pending' && status !== 'expired') return undefined;
  if (recordOf(snapshot)?.owner === NO_OWNER) return 'released';
  if (status === 'expired') return 'expired';
  if (heartbeatAt === undefined) return 'waiting';
  // A date in the future is of a process whose clock was wrong; one of foreign data may be invalid.
  return Math.abs(Date.now() - (Date.parse(heartbeatAt) || 0)) <= leaseMs ? 'running' : 'expired';
}

/** Whether the snapshot belongs to a background turn that no worker has: its lease has run out, or it was handed over. */
export function isLeaseOver(snapshot: SnapshotMetadata, leaseMs?: number): boolean {
  const state = runStateOf(snapshot, leaseMs);
  return state === 'expired' || state === 'released';
}

function recordOf(snapshot: SnapshotMetadata): { owner?: string; leaseMs?: number } | undefined {
  return (snapshot as { backgroundRun?: { owner?: string; leaseMs?: number } }).backgroundRun;
}
