import type { GenkitError } from 'genkit';
import { dataLoss, quote } from '../../errors.ts';

/** The `DATA_LOSS` of a snapshot of which something is missing or damaged. */
export function unreadableSnapshot(snapshotId: string, reason: string, sessionId?: string | null): GenkitError {
  const session = typeof sessionId === 'string' ? ` of session ${quote(sessionId)}` : '';
  return dataLoss(
    `Snapshot ${quote(snapshotId)}${session} can't be read: ${reason}. Restore it from a backup, or resume from another snapshot.`,
  );
}
