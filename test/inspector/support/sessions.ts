import type { MessageData } from 'genkit';
import type { SessionSnapshotInput, SessionStoreOptions, SnapshotStore } from 'genkitx-agents';

export function message(text: string, role: 'user' | 'model' = 'user'): MessageData {
  return { role, content: [{ text }] };
}

/** A completed snapshot of a session, made now. */
export function turn(
  sessionId: string,
  more: Partial<SessionSnapshotInput> & Record<string, unknown>,
): SessionSnapshotInput {
  return { sessionId, createdAt: new Date().toISOString(), status: 'completed', ...more };
}

/**
 * Saves a line of turns.
 *
 * @param options.branchEvery Each so many turns the next one continues from two turns before.
 */
export async function saveTurns(
  store: SnapshotStore,
  sessionId: string,
  count: number,
  {
    isSmall = false,
    branchEvery = Infinity,
    ...options
  }: SessionStoreOptions & { isSmall?: boolean; branchEvery?: number } = {},
): Promise<string[]> {
  const ids: string[] = [];
  const messages: MessageData[] = [];
  for (let i = 0; i < count; i++) {
    const parentId = i > 2 && i % branchEvery === 0 ? ids[i - 2] : ids.at(-1);
    if (!isSmall) messages.push(message(`${i}?`), message(`${i}!`, 'model'));
    const state = isSmall ? { custom: { i } } : { messages: [...messages] };
    const log = isSmall ? {} : { sessionLog: { messages: { count: 2 * i + 2, kept: 2 * i, added: 2 } } };
    const id = `${sessionId}-${String(i).padStart(5, '0')}`;
    await store.saveSnapshot(
      id,
      () => turn(sessionId, { ...log, state, ...(parentId !== undefined && { parentId }) }),
      options,
    );
    ids.push(id);
  }
  return ids;
}
