import type { MessageData } from 'genkit';
import { logOf } from '../../../session/log/session-log.ts';
import type { SnapshotStore } from '../../../store/contract.ts';
import { targetOf, type MemoryScope } from '../../scopes.ts';
import type { IngestSource } from '../../types.ts';

/** A session to learn from. */
export interface SessionToLearn {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly snapshotId?: string | undefined;
  /** When the last message was said, in ISO 8601. `undefined`: now. */
  readonly at?: string | undefined;
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
  const { snapshotId, createdAt: at, state } = snapshot;
  return { scope, sessionId, snapshotId, at, messages: state?.messages ?? [] };
}

/** The source of what is learned from a session. */
export function sourceOfSession({
  sessionId,
  snapshotId,
  at,
}: Omit<SessionToLearn, 'scope' | 'messages'>): IngestSource {
  return { id: sessionId, sessionId, ...(snapshotId !== undefined && { snapshotId }), ...(at !== undefined && { at }) };
}
