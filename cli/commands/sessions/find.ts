import type { SessionSnapshot } from 'genkitx-agents';
import { Problem } from '../../failures.ts';
import type { OpenStore } from '../../stores/open-store.ts';

/** @throws Problem when there is no such snapshot. */
export async function mustGetSnapshot({ store, caller }: OpenStore, snapshotId: string): Promise<SessionSnapshot> {
  const snapshot = await store.getSnapshot({ ...caller, snapshotId, frozen: true });
  if (!snapshot)
    throw new Problem(
      `The store has no snapshot '${snapshotId}'. 'sessions tree SESSION' lists the snapshots of a session.`,
    );
  return snapshot;
}

/** The latest leaf. @throws Problem when there is no such session. */
export async function mustGetSession({ store, caller }: OpenStore, sessionId: string): Promise<SessionSnapshot> {
  const snapshot = await store.getSnapshot({ ...caller, sessionId, frozen: true });
  if (!snapshot) throw noSuchSession(sessionId);
  return snapshot;
}

export function noSuchSession(sessionId: string): Problem {
  return new Problem(`The store has no session '${sessionId}'. 'sessions list' shows the sessions of the store.`);
}
