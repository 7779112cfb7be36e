/** `node <this> <project> <owner> <times> <sources>`: increments one memory, does the waiting jobs, then adds many sources to one memory. */
import { Firestore } from '@google-cloud/firestore';
import { corroborate, workOff } from '../../../conformance/memory/support/workers.ts';
import { memoryManager } from '../../../../src/memory/manager.ts';
import { corroborate as corroborateAtOnce, echoTexts } from '../../../memory/pipeline/corroborate.ts';
import { FirestoreMemoryStore } from '../../../../stores/firestore/memory/firestore-memory-store.ts';

const [projectId, owner, times, sources] = process.argv.slice(2) as [string, string, string, string];
const db = new Firestore({ projectId });
const store = new FirestoreMemoryStore({ db });
for (let i = 0; i < Number(times); i++) await corroborate(store);
await workOff(store, owner);
const managed = new FirestoreMemoryStore({ db, collection: 'managed' });
const memory = memoryManager({ registry: {} } as never, { store: managed, worker: false, extract: echoTexts });
await corroborateAtOnce(memory, owner, Number(sources));
await memory.close();
await managed.close();
await store.close();
await db.terminate();
