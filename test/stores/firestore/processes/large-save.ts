/** A process that saves a state too large for one commit, and is killed right before its n-th commit. */
import { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from '../../../../stores/firestore/firestore-session-store.ts';
import { beforeCommit } from '../support/transport.ts';

const [project, fatal] = process.argv.slice(2) as [string, string];
let commits = 0;
beforeCommit(() => {
  commits++;
  if (commits === Number(fatal)) process.kill(process.pid, 'SIGKILL');
});
const db = new Firestore({ projectId: project });
const store = new FirestoreSessionStore({ db });
// Different for each element, so that packing can't make it small; the same for each run.
const element = (i: number): string => {
  let text = '';
  for (let at = i * 7919 + 1; text.length < 250_000; at = (at * 48_271) % 2_147_483_647) text += at.toString(36);
  return text;
};
const messages = Array.from({ length: 30 }, (_, i) => ({ role: 'user' as const, content: [{ text: element(i) }] }));
await store.saveSnapshot(
  'large',
  () => ({
    sessionId: 'killed',
    parentId: 'small',
    createdAt: new Date().toISOString(),
    status: 'completed',
    state: { messages },
  }),
  { scopes: [{ id: { scope: 'app', appName: 'shop' }, change: () => ({ sold: 'large' }) }] },
);
await store.close();
await db.terminate();
process.stdout.write(String(commits));
