import { join } from 'node:path';
import { readBeginning, readWhole } from './read-file.ts';
import type { Session } from './session.ts';
import type { StoredVersion } from './session-index.ts';
import { HEADER_LENGTH, parseHeader, parseSnapshot, type SnapshotFile, type SnapshotHeader } from './snapshot-file.ts';
import type { TenantFolder } from './tenant-folder.ts';

/** The file of a version, wherever it is; `undefined`: it is missing or damaged. */
export async function readVersion(session: Session, version: StoredVersion): Promise<SnapshotFile | undefined> {
  const { folder, name } = session;
  // In this order it can't be missed: a file is moved from the first place to the second, never back.
  const live = await readLive(session, version);
  if (live) return live;
  folder.assertNoLinkedShards(name);
  return readFrom(folder.piece(name, version), session, version);
}

/** The file of a version, if it is its snapshot's. */
export function readLive(session: Session, version: StoredVersion): Promise<SnapshotFile | undefined> {
  return readFrom(session.folder.snapshot(version.snapshotId), session, version);
}

/** The version that is there; `undefined`: there is none, or something else. */
async function readFrom(path: string, session: Session, version: StoredVersion): Promise<SnapshotFile | undefined> {
  const content = await readWhole(session.folder.store.fs, path);
  const parsed = typeof content === 'string' ? undefined : parseSnapshot(content);
  const file = parsed?.kind === 'own' ? parsed.file : undefined;
  if (file?.seq !== version.seq || file.stateRev !== version.stateRev) return undefined;
  return file.meta.snapshotId === version.snapshotId && file.session === (session.id ?? null) ? file : undefined;
}

/** Whose file this is, and of which revision; `foreign`: it is something else. Does not read the state. */
export async function readHeader(
  folder: TenantFolder,
  fileName: string,
): Promise<Omit<SnapshotHeader, 'meta'> | 'missing' | 'foreign'> {
  const beginning = readBeginning(folder.store.fs, join(folder.path, fileName), HEADER_LENGTH);
  if (beginning === 'missing') return 'missing';
  const header = beginning === 'no-file' ? undefined : parseHeader(beginning.toString('utf8'));
  if (header) return header;
  const parsed = await folder.readFile(fileName);
  return parsed?.kind === 'own' ? parsed.file : 'foreign';
}
