import { createHash } from 'node:crypto';
import { GenkitError } from 'genkit';
import type { ScopeChange, ScopeId, ScopeRecord } from '../contract.ts';

/**
 * A record counts the erasures of a user's data. A writer that has the user's data in memory reads the count before it begins. Each of its
 * saves that could bring the data back requires an unchanged count.
 */

/** The app of these records. No application may use this name. */
const APP_NAME = 'genkitx-agents:erasures';
const COUNT = 'count';
const ERASURE_SESSION = 'genkitx-agents:erasure:';

/** Returns the id of the record that counts a user's erasures. It contains a hash of the user's id. */
export function erasuresOf(userId: string): ScopeId {
  return { scope: 'user', appName: APP_NAME, userId: hashOfUser(userId) };
}

/** Whether a record counts a user's erasures. */
export function isErasureRecord({ appName }: ScopeId): boolean {
  return appName === APP_NAME;
}

/** Returns the id of the session for an unfinished erasure. Lists do not contain it. */
export function erasureSessionOf(userHash: string): string {
  return ERASURE_SESSION + userHash;
}

export function isErasureSession({ sessionId }: { readonly sessionId: string }): boolean {
  return sessionId.startsWith(ERASURE_SESSION);
}

/** Returns 64 hex digits. */
export function hashOfUser(userId: string): string {
  return createHash('sha256').update('user:').update(Buffer.from(userId, 'utf16le')).digest('hex');
}

/** Returns the change that counts one more erasure. */
export function noteErasure(userId: string): ScopeChange {
  return { id: erasuresOf(userId), change: (record) => ({ [COUNT]: countOf(record) + 1 }) };
}

/**
 * Returns a scope change that changes nothing, but refuses the save if the user's data was erased since.
 *
 * @param seen The record of {@link erasuresOf} that the writer read before it began.
 */
export function erasureFence(userId: string, seen: ScopeRecord): ScopeChange {
  const count = countOf(seen);
  const change = (record: ScopeRecord): undefined => {
    if (countOf(record) === count) return;
    const message =
      "The user's data was erased while this turn was running, so the turn was not saved. Begin a new session.";
    throw new GenkitError({ status: 'ABORTED', message });
  };
  return { id: erasuresOf(userId), change };
}

function countOf(record: ScopeRecord): number {
  return Number(record[COUNT] ?? 0);
}
