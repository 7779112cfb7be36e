import type { SessionSnapshot } from 'genkit/beta';

/** True when the last heartbeat of a running snapshot is older than the lease: its process died, or can't reach the store. */
export function isExpired({ status, heartbeatAt }: SessionSnapshot, leaseMs: number): boolean {
  return status === 'pending' && heartbeatAt !== undefined && Date.now() - Date.parse(heartbeatAt) > leaseMs;
}
