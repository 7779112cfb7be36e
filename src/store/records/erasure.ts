import { createHash } from 'node:crypto';
import { GenkitError } from 'genkit';
import type { ScopeChange, ScopeId, ScopeRecord } from '../contract.ts';

/**
 * A record counts how often a user's data was erased. A writer that holds data of the user in memory reads the count before it begins. Each
 * of its saves that could bring the data back requires that the count is unchanged.
 */

/** The app of these records. No application may use this name. */
const APP_NAME = 'genkitx-agents:erasures';
const COUNT = 'count';
const ERASURE_SESSION = 'genkitx-agents:erasure:';

/** The record of a user's erasures. It names the user by a hash. */
export function erasuresOf(userId: string): ScopeId {
  return { scope: 'user', appName: APP_NAME, userId: hashOfUser(userId) };
}

/** Whether it is the record of some user's erasures. */
export function isErasureRecord({ appName }: ScopeId): boolean {
  return appName === APP_NAME;
}

/** The session of an erasure that is not done. No list shows it. */
export function erasureSessionOf(userHash: string): string {
  return ERASURE_SESSION + userHash;
}

export function isErasureSession({ sessionId }: { readonly sessionId: string }): boolean {
  return sessionId.startsWith(ERASURE_SESSION);
}

/** 64 hex digits. */
export function hashOfUser(userId: string): string {
  return createHash('sha256').update('user:').update(Buffer.from(userId, 'utf16le')).digest('hex');
}

/** The change that notes one more erasure. */
export function noteErasure(userId: string): ScopeChange {
  return { id: erasuresOf(userId), change: (record) => ({ [COUNT]: countOf(record) + 1 }) };
}

/**
 * A scope change that changes nothing, but refuses the save if the user's data was erased since.
 *
 * @param seen The record of {@link erasuresOf} when the writer began.
 */
export function erasureFence(userId: string, seen: ScopeRecord): ScopeChange {
  const count = countOf(seen);
  const change = (record: ScopeRecord): undefined => {
    if (countOf(record) === count) return;
    const message = "The user's data was erased while this turn was running, so nothing of it was saved. Begin anew.";
    throw new GenkitError({ status: 'ABORTED', message });
  };
  return { id: erasuresOf(userId), change };
}

function countOf(record: ScopeRecord): number {
  return Number(record[COUNT] ?? 0);
}
