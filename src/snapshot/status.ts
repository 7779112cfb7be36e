import type { SessionSnapshot } from 'genkit/beta';

/** A snapshot's status. Only foreign data may have no status. */
export type SnapshotStatus = NonNullable<SessionSnapshot['status']>;

/** The status of a stored snapshot. A foreign snapshot may have no status. */
export type StoredStatus = SnapshotStatus | undefined;

/** For each status, the statuses to which a save may change it. A status may always stay the same. */
const TRANSITIONS: Readonly<Record<SnapshotStatus | 'none', readonly StoredStatus[]>> = {
  none: ['pending', 'completed', 'failed', 'aborted', 'expired'],
  pending: ['completed', 'failed', 'aborted', 'expired'],
  expired: ['pending', 'completed', 'failed', 'aborted'],
  completed: [],
  failed: [],
  aborted: [],
};

/** All statuses of the contract. */
export const SNAPSHOT_STATUSES = ['pending', 'completed', 'failed', 'aborted', 'expired'] as const;

/** Whether a snapshot's status may change from one to the other. */
export function canBecome(from: StoredStatus, to: StoredStatus): boolean {
  return from === to || TRANSITIONS[from ?? 'none'].includes(to);
}

/** Whether a status is `completed`, `failed` or `aborted`, and so never changes again. */
export function isTerminal(status: StoredStatus): boolean {
  return status !== undefined && TRANSITIONS[status].length === 0;
}
