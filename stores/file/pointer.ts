import { NO_SESSION } from './names.ts';
import type { Session } from './session.ts';
import { attempt } from './store-folder.ts';

/**
 * Keeps the pointer file by which Genkit's own store finds a session's latest snapshot. With a checkpoint interval of 1, where that store
 * can read every file, it names the snapshot just saved. Otherwise one that was there is removed, since it would name an older one for ever.
 * It matters to that store only, so a failure is no reason to fail.
 */
export async function writePointer(session: Session, snapshotId: string, checkpointInterval: number): Promise<void> {
  if (session.name === NO_SESSION) return;
  const { folder, name } = session;
  const { store } = folder;
  if (checkpointInterval > 1) {
    if (!session.hasPointer) return;
    attempt(() => store.remove(folder.pointer(name)));
  } else {
    const pointer = { currentSnapshotId: snapshotId, updatedAt: new Date().toISOString() };
    attempt(() => {
      store.makeFolder(folder.pointers);
      const { path, fd } = store.writeTemporary(Buffer.from(JSON.stringify(pointer)));
      store.fs.close(fd);
      store.fs.rename(path, folder.pointer(name));
    });
  }
  session.passOverPointer();
}
