import { setMark } from './id-marks.ts';
import type { HeldLock } from './lock.ts';
import type { PieceEntry, SaveEntry } from './log-entry.ts';
import { sessionNameOf, snapshotName } from './names.ts';
import { readHeader } from './read-version.ts';
import { entriesOf, ownEntry, scanned, type ScannedSnapshot } from './scan.ts';
import { ScopeRecords } from './scope-records.ts';
import type { Session } from './session.ts';
import { SessionIndex, type IndexNode } from './session-index.ts';

/**
 * A log that was cut short, because the machine lost its power before it was flushed, or a backup has it older than the snapshots, does not
 * know the last saves. Their files are there, and what they start from is named in a way that nothing saved since shares: so they are taken
 * in again by whoever comes across them.
 */

/** Whether the file of this id is of the session, and was neither removed nor is known to its log. For the holder of the session's lock. */
export async function isLost(session: Session, snapshotId: string): Promise<boolean> {
  const { index, folder, name, log, hasLog } = session;
  const header = await readHeader(folder, snapshotName(snapshotId));
  if (typeof header === 'string' || sessionNameOf(header.session) !== name || index.tree.has(snapshotId)) return false;
  // What no log tells of, or what was there before the session began, is left of one that was deleted.
  if (!hasLog || header.seq < log.since) return false;
  return index.ownerOf(header.seq) !== snapshotId;
}

/**
 * For the holder of the session's lock: takes into the log all of the session's snapshots that it does not know, and rewrites. Those stay
 * out whose place another has, which earlier versions gave it after a log was cut short, and those that start from what is not there.
 */
export async function takeInLost(session: Session, lock: HeldLock): Promise<void> {
  const { folder, name, index, log } = session;
  const found = await lostEntries(session, await session.files());
  if (found.length === 0) return;
  // The log that was cut short would have told which.
  await new ScopeRecords(folder).sweep();
  const known = [...index.entries()];
  const whole = new SessionIndex();
  // What a rewrite took the place of is kept only where it is known by then who starts from it.
  for (const entry of [...known, ...found]) whole.apply(entry);
  const last = known.at(-1);
  // Unless the lost ones are the last, what was written last stays so.
  if (last && found.every(({ seq }) => seq < last.seq)) whole.apply(last);
  await folder.store.flushFolder(folder.path);
  lock.assertHeld();
  await session.writeLog(log.sessionId ?? null, whole.entries(), log);
  for (const entry of found) if (entry.op === 'save') setMark(folder, name, entry.meta.snapshotId);
}

/** For the holder of the session's lock: takes into the log a rewrite of a snapshot that the log does not know, if its file has one. */
export async function takeInNewer(session: Session, snapshotId: string): Promise<void> {
  const newer = await readNewer(session, snapshotId);
  if (newer) await session.log.append(ownEntry(newer), (fd) => session.folder.store.flush(fd));
}

/** For who only reads: the snapshot as it would be if such a rewrite were taken in; `undefined`: there is none. */
export async function newerNode(session: Session, node: IndexNode): Promise<IndexNode | undefined> {
  const newer = await readNewer(session, node.snapshotId);
  if (!newer?.own) return undefined;
  const { meta, own } = newer;
  const { seq, rev, stateRev, lifted } = own;
  const base = own.base && session.index.version(own.base);
  if (own.base && !base) return undefined;
  const { snapshotId } = node;
  const depth = base ? base.depth + 1 : 0;
  const version = { snapshotId, seq, stateRev, base, depth, lifted, dependents: 0, live: true };
  const { updatedAt, status } = meta;
  return { ...node, updatedAt, status, meta, rev, version, seen: undefined };
}

/** What the file of a snapshot has, when that is later than what the log tells of. */
async function readNewer(session: Session, snapshotId: string): Promise<ScannedSnapshot | undefined> {
  const { folder, index, hasLog, name } = session;
  if (!hasLog) return undefined;
  const fileName = snapshotName(snapshotId);
  const parsed = await folder.readFile(fileName);
  const snapshot = parsed && scanned(fileName, parsed);
  return snapshot && sessionNameOf(snapshot.session) === name && isNewer(index, snapshot) ? snapshot : undefined;
}

/** The entries that take in what is lost, in an order in which each finds what it starts from. */
async function lostEntries(
  { folder, name, index, log }: Session,
  files: readonly ScannedSnapshot[],
): Promise<(SaveEntry | PieceEntry)[]> {
  const shared = sharedSeqs(index, files);
  const first = log.since;
  const lost = files.filter((file) => {
    const { own, meta } = file;
    if (!own || own.seq < first || shared.has(own.seq)) return false;
    if (isNewer(index, file)) return true;
    return index.ownerOf(own.seq) === undefined && !index.tree.wouldCycle(meta.snapshotId, meta.parentId);
  });
  const present = new Set<string>();
  const isThere = ([seq, stateRev]: readonly [number, number]): boolean =>
    !shared.has(seq) && (present.has(`${seq}.${stateRev}`) || index.version({ seq, stateRev }) !== undefined);
  const taken: (SaveEntry | PieceEntry)[] = [];
  for (const entry of await entriesOf(folder, name, lost)) {
    const { seq, stateRev, base } = entry;
    const isKnown = entry.op === 'piece' && index.version(entry) !== undefined;
    if (isKnown || shared.has(seq) || (base && !isThere(base))) continue;
    present.add(`${seq}.${stateRev}`);
    taken.push(entry);
  }
  return taken;
}

/** The file is of a later write of a snapshot than the log tells of. */
function isNewer({ tree }: SessionIndex, { meta, own }: ScannedSnapshot): boolean {
  const node = tree.get(meta.snapshotId);
  return node?.version.seq === own?.seq && own !== undefined && own.rev > node!.rev;
}

/** Places that more than one snapshot has: of what starts from one of these nobody can tell from which. */
function sharedSeqs(index: SessionIndex, files: readonly ScannedSnapshot[]): ReadonlySet<number> {
  const owners = new Map<number, string>();
  const shared = new Set<number>();
  for (const { meta, own } of files) {
    if (!own) continue;
    const owner = owners.get(own.seq) ?? index.ownerOf(own.seq) ?? meta.snapshotId;
    if (owner !== meta.snapshotId) shared.add(own.seq);
    owners.set(own.seq, owner);
  }
  return shared;
}
