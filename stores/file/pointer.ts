import { closeQuietly } from './file-system.ts';
import { NO_SESSION } from './names.ts';
import type { Session } from './session.ts';
import { attempt } from './store-folder.ts';

/**
 * Keeps the pointer file by which Genkit's own store finds a session's latest snapshot. With a checkpoint interval of 1, where that store
 * can read every file, it names the snapshot just saved. Otherwise one that was there is removed, since it would name an older one for ever.
 * It matters to that store only, so a failure is no reason to fail.
 */
export function writePointer(session: Session, snapshotId: string, checkpointInterval: number): void {
  if (session.name === NO_SESSION) return;
  const { folder, name } = session;
  if (checkpointInterval > 1) {
    if (!session.hasPointer) return;
    attempt(() => folder.store.remove(folder.pointer(name)));
  } else {
    const pointer = { currentSnapshotId: snapshotId, updatedAt: new Date().toISOString() };
    attempt(() => movePointer(session, JSON.stringify(pointer)));
  }
  attempt(() => session.passOverPointer());
}

function movePointer({ folder, name }: Session, text: string): void {
  const { store } = folder;
  store.makeFolder(folder.pointers);
  const { path, fd } = store.writeTemporary(Buffer.from(text));
  closeQuietly(store.fs, fd);
  try {
    store.fs.rename(path, folder.pointer(name));
  } catch (error) {
    store.remove(path);
    throw error;
  }
}
