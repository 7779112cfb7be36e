/** A process of the tests of memory files: `node <this> <folder> <owner> <times>` counts one memory up, then does the jobs that there are. */
import { FileMemoryStore } from 'genkitx-agents/memory';
import { corroborate, workOff } from '../../../../conformance/memory/support/workers.ts';

const [folder, owner, times] = process.argv.slice(2) as [string, string, string];
const store = new FileMemoryStore(folder, { durability: 'fast' });
for (let i = 0; i < Number(times); i++) await corroborate(store);
await workOff(store, owner);
await store.close();
