import type { SessionSnapshot } from 'genkit/beta';

/** A running snapshot whose process died, or can't reach the store: its last heartbeat is older than the lease. */
export function isExpired({ status, heartbeatAt }: SessionSnapshot, leaseMs: number): boolean {
  return status === 'pending' && heartbeatAt !== undefined && Date.now() - Date.parse(heartbeatAt) > leaseMs;
}
