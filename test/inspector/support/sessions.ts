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
 * @param options.isSmall The states have the last four turns only.
 * @param options.branchEvery After each this many turns, the next one continues from two turns before.
 * @param options.reply The model's reply. Default: `7!`.
 */
export async function saveTurns(
  store: SnapshotStore,
  sessionId: string,
  turns: number,
  {
    isSmall = false,
    branchEvery = Infinity,
    reply = (i) => `${i}!`,
    ...options
  }: SessionStoreOptions & { isSmall?: boolean; branchEvery?: number; reply?: (i: number) => string } = {},
): Promise<string[]> {
  const ids: string[] = [];
  const messages: MessageData[] = [];
  for (let i = 0; i < turns; i++) {
    const parentId = i > 2 && i % branchEvery === 0 ? ids[i - 2] : ids.at(-1);
    messages.push(message(`${i}?`), message(reply(i), 'model'));
    if (isSmall) messages.splice(0, messages.length - 8);
    const { length: count } = messages;
    const state = { messages: [...messages], ...(isSmall && { custom: { i } }) };
    const log = { sessionLog: { messages: { count, kept: count - 2, added: 2 } } };
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
