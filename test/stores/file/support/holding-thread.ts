/** A thread that saves, and holds the session's lock while it does so until it is ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { nodeFileSystem } from '../../../../stores/file/disk/file-system.ts';

let flushes = 0;
const holding = {
  ...nodeFileSystem,
  flush: (fd: number) => {
    // The first is of the process's mark, before it has any lock.
    if (flushes++ === 0) return nodeFileSystem.flush(fd);
    parentPort!.postMessage('holding', []);
    return new Promise<void>(() => setInterval(() => {}, 1000));
  },
};
const store = new FileSessionStore(workerData as string, {}, holding);
await store.saveSnapshot('held', () => ({ sessionId: 'a-session', createdAt: 'x', state: {} }));
