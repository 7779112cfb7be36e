import type { MessageData } from 'genkit';
import { logOf } from '../../session/log/session-log.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import { targetOf, type MemoryScope } from '../scopes.ts';

/** A session to learn from. */
export interface SessionToLearn {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly snapshotId?: string | undefined;
  readonly messages: readonly MessageData[];
}

/** Reads a session. `undefined` if it is gone or not of the scope: it belongs to another user, or is another session. */
export async function readSession(
  store: SnapshotStore,
  scope: MemoryScope,
  sessionId: string,
): Promise<SessionToLearn | undefined> {
  const { id, options } = targetOf(scope);
  if (id.scope === 'session' && id.sessionId !== sessionId) return undefined;
  const snapshot = await store.getSnapshot({ ...options, sessionId });
  if (!snapshot || (id.scope === 'user' && logOf(snapshot).owner?.userId !== id.userId)) return undefined;
  return { scope, sessionId, snapshotId: snapshot.snapshotId, messages: snapshot.state?.messages ?? [] };
}
