import type { SessionSnapshot } from 'genkit/beta';

/** A snapshot's status; missing in foreign data only. */
export type SnapshotStatus = NonNullable<SessionSnapshot['status']>;

/** A foreign snapshot may have no status. */
export type StoredStatus = SnapshotStatus | undefined;

/** From each status, those that a save may set. A status may always stay as it is. */
const TRANSITIONS: Readonly<Record<SnapshotStatus | 'none', readonly StoredStatus[]>> = {
  none: ['pending', 'completed', 'failed', 'aborted', 'expired'],
  pending: ['completed', 'failed', 'aborted', 'expired'],
  expired: ['pending', 'completed', 'failed', 'aborted'],
  completed: [],
  failed: [],
  aborted: [],
};

/** Every status that the contract knows. */
export const SNAPSHOT_STATUSES = ['pending', 'completed', 'failed', 'aborted', 'expired'] as const;

/** Whether a snapshot's status may change from one to the other. */
export function canBecome(from: StoredStatus, to: StoredStatus): boolean {
  return from === to || TRANSITIONS[from ?? 'none'].includes(to);
}

/** `completed`, `failed` and `aborted`: the status never changes again. */
export function isTerminal(status: StoredStatus): boolean {
  return status !== undefined && TRANSITIONS[status].length === 0;
}
