/** `node <this> <project> <owner> <times>`: counts one memory up, then does the jobs that there are. */
import { Firestore } from '@google-cloud/firestore';
import { corroborate, workOff } from '../../../conformance/memory/support/workers.ts';
import { FirestoreMemoryStore } from '../../../../stores/firestore/memory/firestore-memory-store.ts';

const [projectId, owner, times] = process.argv.slice(2) as [string, string, string];
const db = new Firestore({ projectId });
const store = new FirestoreMemoryStore({ db });
for (let i = 0; i < Number(times); i++) await corroborate(store);
await workOff(store, owner);
await store.close();
await db.terminate();
