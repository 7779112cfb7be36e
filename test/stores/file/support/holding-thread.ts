/** A thread that saves, and holds the session's lock while it does so until it is ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { nodeFileSystem } from '../../../../stores/file/disk/file-system.ts';

const holding = {
  ...nodeFileSystem,
  flush: () => {
    parentPort!.postMessage('holding', []);
    return new Promise<void>(() => setInterval(() => {}, 1000));
  },
};
const store = new FileSessionStore(workerData as string, {}, holding);
await store.saveSnapshot('held', () => ({ sessionId: 'a-session', createdAt: 'x', state: {} }));
