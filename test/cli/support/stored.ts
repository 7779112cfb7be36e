import { FileSessionStore, type MessageData, type SessionSnapshotInput } from 'genkitx-agents';

export type Turn = Partial<SessionSnapshotInput> & { snapshotId: string };

export const said = (role: MessageData['role'], text: string): MessageData => ({ role, content: [{ text }] });

/** Saves turns into a file store, a second apart, or at their own `createdAt`. */
export async function save(directory: string, turns: readonly Turn[], tenant?: string): Promise<void> {
  const prefix = tenant === undefined ? {} : { snapshotPathPrefix: () => tenant };
  const store = new FileSessionStore(directory, { durability: 'fast', ...prefix });
  for (const [i, turn] of turns.entries()) {
    const createdAt = new Date(Date.UTC(2026, 0, 2, 3, 4, i)).toISOString();
    await store.saveSnapshot(turn.snapshotId, () => ({ createdAt, status: 'completed', ...turn }), {
      session: { agent: 'support', ownerId: 'ada' },
    });
  }
  await store.close();
}
