import type { SessionSnapshot } from 'genkit/beta';

/**
 * True when the last heartbeat of a running snapshot is older than the lease, because its process died or can't reach the store; or as far in
 * the future, because the clock of its process was wrong.
 */
export function isExpired({ status, heartbeatAt }: SessionSnapshot, leaseMs: number): boolean {
  return status === 'pending' && heartbeatAt !== undefined && Math.abs(Date.now() - Date.parse(heartbeatAt)) > leaseMs;
}
