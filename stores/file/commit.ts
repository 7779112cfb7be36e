import { randomBytes } from 'node:crypto';
import { quote } from '../../src/errors.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import type { CutShard } from '../chain/cut.ts';
import { Cleanup } from './cleanup.ts';
import { closeQuietly, stampOf } from './file-system.ts';
import { setMark } from './id-marks.ts';
import { outcomeUnknown } from './io-error.ts';
import type { HeldLock } from './lock.ts';
import { nextTime, type SaveEntry } from './log-entry.ts';
import { ScopeRecords, type ScopeDraft } from './scope-records.ts';
import type { Session } from './session.ts';
import type { StoredVersion } from './session-index.ts';
import { writeShards } from './shards.ts';
import { formatSnapshot, packPatches, type StateText, type Version } from './snapshot-file.ts';
import { attempt } from './store-folder.ts';

/** A save that was decided and is to be carried out. */
export interface Commit extends Version {
  readonly meta: SnapshotMetadata;
  readonly rev: number;
  /** The session's id; `null`: none. */
  readonly sessionId: string | null;
  readonly state: StateText;
  /** Shards of the state; those that are there already are left alone. */
  readonly shards: readonly CutShard[];
  /** `seq` of the snapshots that this save removes. */
  readonly retire: readonly number[];
  /** The version that the snapshot has now, when others start from it and the save gives the snapshot another one. */
  readonly preserve: StoredVersion | undefined;
  /** Records that change with the snapshot. */
  readonly drafts: readonly ScopeDraft[];
}

/**
 * Carries out a save, under the session's lock. In this order:
 *
 * 1. shards, and the snapshot under a temporary name, are written;
 * 2. the log says what is about to happen, and drafts of records are written;
 * 3. with `durability: 'full'` all of that is flushed;
 * 4. the snapshot's file is moved into its place: the commit point, after which the save counts; the folder is flushed;
 * 5. records are settled, what the save removes is removed, and the log says that all is done.
 *
 * A failure before 4 leaves everything as it was; one in 5 is the next writer's to mend.
 *
 * @param onCommitted Told the stamp of the snapshot's file, before anybody else hears of the save.
 */
export async function carryOut(
  session: Session,
  lock: HeldLock,
  commit: Commit,
  onCommitted: (stamp: string) => void,
): Promise<void> {
  const { folder, log } = session;
  const { store } = folder;
  const what = `Saving snapshot ${quote(commit.meta.snapshotId)}`;
  const entry = entryOf(commit, session.index.lastTime);
  await writeShards(session, commit.shards);
  if (commit.preserve) await keepAsPiece(session, commit.preserve);
  const packed = await packPatches(commit.state.patches ?? []);
  const mark = commit.drafts.length === 0 ? undefined : randomBytes(8).toString('hex');
  const text = formatSnapshot(
    { ...commit, session: commit.sessionId, mark },
    { ...commit.state, ...(packed !== undefined && { packed }) },
  );
  const { path, fd } = store.writeTemporary(Buffer.from(text));
  const records = new ScopeRecords(folder);
  let stamp: string | undefined;
  try {
    await allDone([
      announce(session, commit.sessionId, entry),
      store.flush(fd),
      mark === undefined || records.stage(commit.drafts, { snapshotId: commit.meta.snapshotId, mark }),
    ]);
    lock.assertHeld();
    store.fs.rename(path, folder.snapshot(commit.meta.snapshotId));
    // A stamp that can't be had is no reason to fail: then the file is read when it is needed.
    attempt(() => (stamp = stampOf(store.fs.statOpen(fd))));
    if (stamp !== undefined) onCommitted(stamp);
  } catch (error) {
    attempt(() => store.remove(path));
    if (!(await isUndone(session, entry))) throw outcomeUnknown(what, error);
    records.withdraw(commit.drafts);
    throw error;
  } finally {
    closeQuietly(store.fs, fd);
  }
  log.count(entry);
  const node = session.index.tree.get(commit.meta.snapshotId);
  if (node && stamp !== undefined) node.seen = { stamp, meta: node.meta };
  await store.flushFolder(folder.path).catch((error: unknown) => {
    throw outcomeUnknown(what, error);
  });
  if (commit.rev === 1) attempt(() => setMark(folder, session.name, commit.meta.snapshotId));
  await conclude(session, commit.drafts).catch(() => {
    // The save counts. Who locks the session next does what is left to do.
  });
}

/** Writes the log's entry, and flushes it. */
function announce(session: Session, sessionId: string | null, entry: SaveEntry): Promise<void> {
  const { folder, log } = session;
  return session.hasLog ? log.append(entry, (fd) => folder.store.flush(fd)) : session.writeLog(sessionId, [entry]);
}

/** As `Promise.all`, but all have ended also when one fails: before that no file may be closed, and nothing taken back. */
async function allDone(work: readonly unknown[]): Promise<void> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) throw failed.reason;
}

/** After a failure: makes sure that the entry does not count, if it is in the log; `false`: it does, or that can't be told. */
async function isUndone(session: Session, entry: SaveEntry): Promise<boolean> {
  const { log } = session;
  if (!log.isOpen(entry)) return log.unconfirmed === undefined;
  if (await session.isCommitted(entry).catch(() => true)) return false;
  await log.append({ op: 'void' }).catch(() => {
    // Who locks the session next finds that it does not count.
  });
  return true;
}

async function conclude(session: Session, drafts: readonly ScopeDraft[]): Promise<void> {
  const { log } = session;
  const records = new ScopeRecords(session.folder);
  for (const { name } of drafts) await records.settleHeld(name);
  await new Cleanup(session).carryOut(log.aftermath);
  await log.append({ op: 'ok', t: log.index.lastTime });
  await session.compact();
}

function entryOf({ seq, rev, stateRev, state, retire, drafts, meta }: Commit, sessionTime: number): SaveEntry {
  return {
    op: 'save',
    seq,
    rev,
    stateRev,
    ...(state.base && { base: [state.base.seq, state.base.stateRev] }),
    ...(state.lifts && state.lifts.length > 0 && { lifted: true }),
    t: nextTime(sessionTime),
    ...(retire.length > 0 && { retire }),
    ...(drafts.length > 0 && { scopes: drafts.map((draft) => draft.name) }),
    meta,
  };
}

/** Gives the snapshot's file a second name, under which those find it that start from the state it has now. */
async function keepAsPiece(session: Session, version: StoredVersion): Promise<void> {
  const { folder, name } = session;
  const { store } = folder;
  const changed = new Set([folder.shards(name), ...store.makeFolder(folder.shards(name))]);
  const piece = folder.piece(name, version);
  // What an earlier attempt left is of the same version, but perhaps not of its last revision.
  store.remove(piece);
  await store.linkOrCopy(folder.snapshot(version.snapshotId), piece);
  for (const path of changed) await store.flushFolder(path);
}
