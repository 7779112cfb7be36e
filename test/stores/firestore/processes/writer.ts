/** A process that saves turns on request, each task to its own database. It answers with the acknowledged ids. */
import { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkit/beta';
import type { ScopeChange } from '../../../../src/store/contract.ts';
import { FirestoreSessionStore } from '../../../../stores/firestore/firestore-session-store.ts';

/** A task: this many saves of a kind. */
export interface WriterTask {
  readonly project: string;
  readonly kind: 'line' | 'siblings' | 'increments' | 'records';
  /** Different for each writer. */
  readonly name: string;
  readonly turns: number;
}

/** The result of a task. */
export interface WriterAnswer {
  readonly acknowledged: readonly string[];
  readonly failure?: string;
}

type Store = FirestoreSessionStore<{ n: number }>;
type Save = (store: Store, id: string, task: WriterTask) => Promise<unknown>;

const USER = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
const APP = { scope: 'app', appName: 'shop' } as const;

const turn = (id: string, parentId: string | undefined): SessionSnapshotInput<{ n: number }> => ({
  sessionId: 'contended',
  createdAt: new Date().toISOString(),
  status: 'completed',
  ...(parentId !== undefined && { parentId }),
  state: { messages: [{ role: 'user', content: [{ text: id }] }] },
});

const SAVES: Record<WriterTask['kind'], Save> = {
  line: async (store, id) => {
    for (;;) {
      const leaf = await store.getSnapshot({ sessionId: 'contended' });
      const messages = leaf?.state?.messages ?? [];
      const next = turn(id, leaf?.snapshotId);
      next.state!.messages = [...messages, ...next.state!.messages!];
      try {
        return await store.saveSnapshot(id, () => next, { expectedLeafId: leaf?.snapshotId ?? null });
      } catch (error) {
        if ((error as { status?: string }).status !== 'ABORTED') throw error;
      }
    }
  },
  siblings: (store, id) => store.saveSnapshot(id, () => turn(id, 'root')),
  increments: (store) =>
    store.saveSnapshot('counter', (current) => ({
      ...(current ?? { sessionId: 'contended', createdAt: new Date().toISOString(), status: 'pending' }),
      state: { custom: { n: (current?.state?.custom?.n ?? 0) + 1 } },
    })),
  /** Turns of the writer's own sessions, with changes of shared records. */
  records: (store, id, { name }) => {
    const change: ScopeChange['change'] = (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1, [name]: id });
    const scopes = [USER, APP].map((scope) => ({ id: scope, change }));
    return store.saveSnapshot(id, (current) => (current ? null : { ...turn(id, undefined), sessionId: id }), {
      scopes,
    });
  },
};

async function perform(task: WriterTask): Promise<WriterAnswer> {
  const db = new Firestore({ projectId: task.project });
  // The test is about contention, not about the time that a busy machine takes to answer.
  const store: Store = new FirestoreSessionStore({ db, requestTimeoutMs: 60_000 });
  const acknowledged: string[] = [];
  try {
    for (let i = 0; i < task.turns; i++) {
      const id = `${task.name} ${i}`;
      await SAVES[task.kind](store, id, task);
      acknowledged.push(id);
    }
    return { acknowledged };
  } catch (error) {
    return { acknowledged, failure: String(error) };
  } finally {
    await store.close();
    await db.terminate();
  }
}

process.on('message', (task: WriterTask) => void perform(task).then((answer) => process.send!(answer)));
