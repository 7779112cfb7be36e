/** A process that saves turns to one session; the arguments say how. It prints the ids that were acknowledged. */
import { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkit/beta';
import type { ScopeChange } from '../../../../src/store/contract.ts';
import { FirestoreSessionStore } from '../../../../stores/firestore/firestore-session-store.ts';

const [project, kind, name, turns] = process.argv.slice(2) as [
  string,
  'line' | 'siblings' | 'increments' | 'records',
  string,
  string,
];
const db = new Firestore({ projectId: project });
const store = new FirestoreSessionStore<{ n: number }>({ db });
const USER = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
const APP = { scope: 'app', appName: 'shop' } as const;
const acknowledged: string[] = [];

const turn = (id: string, parentId: string | undefined): SessionSnapshotInput<{ n: number }> => ({
  sessionId: 'contended',
  createdAt: new Date().toISOString(),
  status: 'completed',
  ...(parentId !== undefined && { parentId }),
  state: { messages: [{ role: 'user', content: [{ text: id }] }] },
});

async function saveInLine(id: string): Promise<void> {
  for (;;) {
    const leaf = await store.getSnapshot({ sessionId: 'contended' });
    const messages = leaf?.state?.messages ?? [];
    const next = turn(id, leaf?.snapshotId);
    next.state!.messages = [...messages, ...next.state!.messages!];
    try {
      await store.saveSnapshot(id, () => next, { expectedLeafId: leaf?.snapshotId ?? null });
      return;
    } catch (error) {
      if ((error as { status?: string }).status !== 'ABORTED') throw error;
    }
  }
}

async function increment(): Promise<void> {
  await store.saveSnapshot('counter', (current) => ({
    ...(current ?? { sessionId: 'contended', createdAt: new Date().toISOString(), status: 'pending' }),
    state: { custom: { n: (current?.state?.custom?.n ?? 0) + 1 } },
  }));
}

/** A turn of a session of its own, with changes of what all sessions have in common. */
async function saveWithRecords(id: string): Promise<void> {
  const change: ScopeChange['change'] = (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1, [name]: id });
  const scopes = [USER, APP].map((scope) => ({ id: scope, change }));
  await store.saveSnapshot(id, (current) => (current ? null : { ...turn(id, undefined), sessionId: id }), { scopes });
}

for (let i = 0; i < Number(turns); i++) {
  const id = `${name} ${i}`;
  if (kind === 'line') await saveInLine(id);
  else if (kind === 'siblings') await store.saveSnapshot(id, () => turn(id, 'root'));
  else if (kind === 'records') await saveWithRecords(id);
  else await increment();
  acknowledged.push(id);
}
await store.close();
await db.terminate();
process.stdout.write(JSON.stringify(acknowledged));
