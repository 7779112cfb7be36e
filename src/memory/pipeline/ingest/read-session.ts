import type { MessageData } from 'genkit';
import { logOf } from '../../../session/log/session-log.ts';
import type { SessionSnapshot, SessionStoreOptions, SnapshotStore } from '../../../store/contract.ts';
import { targetOf, type MemoryScope } from '../../scopes.ts';
import type { IngestSource } from '../../types.ts';

/** A session to learn from. */
export interface SessionToLearn {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly snapshotId?: string | undefined;
  /** When the last message was said; ISO 8601. `undefined`: now. */
  readonly at?: string | undefined;
  readonly messages: readonly MessageData[];
}

/**
 * Reads a session up to its last ended turn. `undefined` if the session does not exist, or does not belong to the scope (it has another
 * user, or it is another session).
 */
export async function readSession(
  store: SnapshotStore,
  scope: MemoryScope,
  sessionId: string,
): Promise<SessionToLearn | undefined> {
  const { id, options } = targetOf(scope);
  if (id.scope === 'session' && id.sessionId !== sessionId) return undefined;
  const leaf = await store.getSnapshot({ ...options, sessionId });
  if (!leaf || (id.scope === 'user' && logOf(leaf).owner?.userId !== id.userId)) return undefined;
  return { scope, sessionId, ...(await lastEndedTurn(store, leaf, options)) };
}

/** Returns the session as its last ended turn left it. A running turn may contain values that its store replaces at the end. */
export async function lastEndedTurn(
  store: SnapshotStore,
  leaf: SessionSnapshot | undefined,
  options: SessionStoreOptions,
): Promise<Pick<SessionToLearn, 'snapshotId' | 'at' | 'messages'>> {
  let ended = leaf;
  while (ended?.status === 'pending') {
    const { parentId }: SessionSnapshot = ended;
    ended = parentId === undefined ? undefined : await store.getSnapshot({ ...options, snapshotId: parentId });
  }
  return { snapshotId: ended?.snapshotId, at: ended?.createdAt, messages: ended?.state?.messages ?? [] };
}

/** Returns the memory source for a session. */
export function sourceOfSession(session: Omit<SessionToLearn, 'scope' | 'messages'>): IngestSource {
  const { sessionId, snapshotId, at } = session;
  return { id: sessionId, sessionId, snapshotId, at };
}
