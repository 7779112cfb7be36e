import type { FirestoreSessionStore } from '../../../../stores/firestore/firestore-session-store.ts';

export interface PlantedUser {
  userId: string;
  sessions: number;
  onSession?: () => void;
}

const AT_A_TIME = 10;

/** Sessions of a user, each of 10 turns and a record: 12 documents. */
export async function plantUser(
  store: Pick<FirestoreSessionStore, 'saveSnapshot' | 'writeRecord'>,
  { userId, sessions, onSession }: PlantedUser,
): Promise<void> {
  const plant = async (n: number): Promise<void> => {
    const sessionId = `session ${n}`;
    for (let turn = 0; turn < 10; turn++) {
      const parent = turn === 0 ? {} : { parentId: `${n} ${turn - 1}` };
      const createdAt = new Date().toISOString();
      const state = { custom: { turn } };
      const snapshot = { sessionId, ...parent, createdAt, status: 'completed', state } as const;
      await store.saveSnapshot(`${n} ${turn}`, () => snapshot, { session: { ownerId: userId } });
    }
    await store.writeRecord({ sessionId, kind: 'summary', key: 'latest', value: 'all of it' });
    onSession?.();
  };
  for (let at = 0; at < sessions; at += AT_A_TIME) {
    await Promise.all(Array.from({ length: Math.min(AT_A_TIME, sessions - at) }, (_, i) => plant(at + i)));
  }
}
