import { closeQuietly, codeOf, CREATE, type FileSystem } from './file-system.ts';
import type { SessionName } from './names.ts';
import type { TenantFolder } from './tenant-folder.ts';

/**
 * For every saved snapshot there is a mark, an empty file named by its id. So when a snapshot's file is not there it takes one look to tell
 * that it never was; only where there is a mark the logs have to be searched for whether it was lost or removed.
 *
 * The marks of a session are hard links to its card, an empty file that says that there is a session of this name.
 */
export function setMark(folder: TenantFolder, session: SessionName, snapshotId: string): void {
  const { fs } = folder.store;
  const mark = folder.mark(snapshotId);
  const card = folder.card(session);
  try {
    fs.link(card, mark);
    return;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
  }
  // The card is not there, or has as many links as it can have; or the marks' folder is not there; or there are no hard links.
  folder.store.remove(card);
  makeEmpty(fs, card);
  folder.store.makeFolder(folder.ids);
  try {
    fs.link(card, mark);
  } catch {
    makeEmpty(fs, mark);
  }
}

export function removeMark(folder: TenantFolder, snapshotId: string): void {
  folder.store.remove(folder.mark(snapshotId));
}

export function hasMark(folder: TenantFolder, snapshotId: string): boolean {
  const { store } = folder;
  // Nearly always there is none; only then it does not matter where that was looked for.
  return store.fs.stat(folder.mark(snapshotId)) !== undefined && store.hasFolder(folder.ids);
}

function makeEmpty(fs: FileSystem, path: string): void {
  try {
    closeQuietly(fs, fs.open(path, CREATE));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}
