/** A process that uses a store, then closes or drops it, and has no more work. */
import { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { pending } from '../support/snapshots.ts';

const [folder, ending] = process.argv.slice(2) as [string, 'close' | 'forget'];
const store = new FileSessionStore(folder);
const heard = new Promise((resolve) => {
  store.onSnapshotStateChange('watched', resolve);
});
await store.saveSnapshot('watched', () => pending('watched'));
await heard;
if (ending === 'close') await store.close();
console.log('last line');
