import type { GenkitError } from 'genkit';
import { dataLoss, quote } from '../../errors.ts';

/** Makes the `DATA_LOSS` error of a snapshot, a part of which is missing or damaged. */
export function unreadableSnapshot(snapshotId: string, reason: string, sessionId?: string | null): GenkitError {
  const session = typeof sessionId === 'string' ? ` of session ${quote(sessionId)}` : '';
  return dataLoss(
    `Snapshot ${quote(snapshotId)}${session} can't be read: ${reason}. Restore it from a backup, or resume from another snapshot.`,
  );
}
