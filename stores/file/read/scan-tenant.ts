import { join } from 'node:path';
import { failedPrecondition } from '../../../src/errors.ts';
import { byCreation } from '../../../src/snapshot/session-tree.ts';
import { isRefused } from '../disk/io-error.ts';
import { Pace } from '../disk/pace.ts';
import { readBeginning } from '../disk/read-file.ts';
import type { StoreFolder } from '../disk/store-folder.ts';
import { snapshotName } from '../format/names.ts';
import type { LogLine } from '../format/save-log.ts';
import type { TenantFolder } from '../tenant-folder.ts';
import { readHead } from './read-head.ts';

/** The log of a session, as far as the files of its snapshots say. */
export interface ScannedSession {
  readonly incarnation: string;
  /** The log that the session would have. */
  readonly lines: readonly LogLine[];
}

interface ScannedSnapshot {
  readonly snapshotId: string;
  readonly parentId: string | undefined;
  readonly createdAt: string;
  readonly place: number;
  readonly incarnation: string;
  readonly at: number;
}

/**
 * Reads the heads of all snapshots of a tenant. Needed for a directory without logs, and to find the snapshots that a log has lost. Skips
 * files that can't be read.
 *
 * @throws `FAILED_PRECONDITION` when the folder has a foreign layout.
 */
export async function scanTenant(folder: TenantFolder): Promise<Map<string, ScannedSession>> {
  const { store } = folder;
  const names = store.namesIn(folder.path);
  if (names.includes(GENKIT_POINTERS)) refuseForeign();
  const bySession = new Map<string, ScannedSnapshot[]>();
  const pace = new Pace();
  for (const name of names) {
    if (!name.endsWith('.json')) continue;
    await pace.rest();
    const path = join(folder.path, name);
    const found = readIfCurrent(folder, path);
    if (found === 'foreign' && isSnapshot(store, path)) refuseForeign();
    if (typeof found === 'string' || found.head.session === null) continue;
    const { meta, session, place, incarnation } = found.head;
    const { snapshotId, parentId, createdAt, updatedAt } = meta;
    // A snapshot's file under another name is a copy that someone made; it is skipped.
    if (snapshotName(snapshotId) !== name) continue;
    const at = (Date.parse(updatedAt ?? createdAt) || 0) * 1000;
    const snapshots = bySession.get(session) ?? [];
    snapshots.push({ snapshotId, parentId, createdAt, place, incarnation, at });
    bySession.set(session, snapshots);
  }
  return new Map([...bySession].map(([session, snapshots]) => [session, sessionFrom(snapshots)]));
}

/** Skips a snapshot that a newer version wrote, or that the process may not open; reading it by its id throws an error that says so. */
function readIfCurrent(folder: TenantFolder, path: string): ReturnType<typeof readHead> {
  try {
    return readHead(folder.store.fs, path);
  } catch (error) {
    if (!isRefused(error)) throw error;
    return 'broken';
  }
}

function sessionFrom(all: readonly ScannedSnapshot[]): ScannedSession {
  // An interrupted deletion may have left files of an earlier session with the same id.
  const { incarnation } = all.reduce((newest, one) => (byCreation(newest, one) < 0 ? one : newest));
  const ordered = all
    .filter((one) => one.incarnation === incarnation)
    .toSorted((a, b) => a.place - b.place || byCreation(a, b));
  const lines: LogLine[] = [];
  let next = 1;
  for (const { snapshotId: id, parentId: parent, place, at } of ordered) {
    if (place > next) lines.push({ next: (next = place) });
    lines.push({ save: next++, id, parent, at });
  }
  const last = ordered.reduce((latest, one) => (one.at > latest.at ? one : latest));
  const lastLine = lines.find((line) => 'save' in line && line.id === last.snapshotId) as { readonly save: number };
  return { incarnation, lines: [...lines, { rewrite: lastLine.save, at: last.at }] };
}

/** The folder in which Genkit's own store keeps the leaves of sessions. */
const GENKIT_POINTERS = '.pointers';

/** How many entries of a folder are read to find out its layout, and how deep. */
const MOST_LOOKS = 20;
const DEEPEST_LOOK = 4;

/**
 * Call it once for a store, while its directory has no data of the store.
 *
 * @throws `FAILED_PRECONDITION` when the directory has snapshots of a foreign layout.
 */
export function assertNotForeign(store: StoreFolder): void {
  if (hasForeignSnapshots(store, store.path, 0)) refuseForeign();
}

/** Recursive, because Genkit's own store nests folders for a prefix with a `/`. */
function hasForeignSnapshots(store: StoreFolder, path: string, depth: number): boolean {
  const names = store.namesIn(path).slice(0, MOST_LOOKS);
  if (names.includes('.sessions')) return false;
  if (names.includes(GENKIT_POINTERS)) return true;
  return names.some((name) => {
    const at = join(path, name);
    const found = store.fs.stat(at);
    if (found?.isDirectory())
      return depth < DEEPEST_LOOK && !name.startsWith('.') && hasForeignSnapshots(store, at, depth + 1);
    return found?.isFile() && name.endsWith('.json') && readHead(store.fs, at) === 'foreign' && isSnapshot(store, at);
  });
}

function isSnapshot(store: StoreFolder, path: string): boolean {
  const content = readBeginning(store.fs, path, 4096);
  return typeof content === 'object' && content.bytes.includes('"snapshotId"');
}

function refuseForeign(): never {
  throw failedPrecondition(
    'The directory of this FileSessionStore has snapshots of another layout, for example of the FileSessionStore of genkit/beta. They are left ' +
      'unchanged. Give this store another directory, and read the old one with migratingStore({ from, to }).',
  );
}
