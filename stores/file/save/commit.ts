import { quote } from '../../../src/errors.ts';
import type { ScopeChange } from '../../../src/store/contract.ts';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import type { CutShard } from '../../chain/cut.ts';
import type { KnownState } from '../../chain/written-state.ts';
import { attempt, closeQuietly, codeOf, stampOf } from '../disk/file-system.ts';
import { outcomeUnknown } from '../disk/io-error.ts';
import type { HeldLock } from '../disk/lock-folder.ts';
import { timeNow, type SaveLine } from '../format/save-log.ts';
import { formatFile, type SnapshotHead } from '../format/snapshot-file.ts';
import { cacheState } from '../read/read-snapshot.ts';
import { writeShards } from '../read/shards.ts';
import { removeFiles } from '../remove/remove-snapshots.ts';
import { newNonce, type Announcement, type FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { ScopeRecords, type RecordDraft } from '../records/scope-records.ts';

/** A save that was decided and is to be carried out. */
export interface Commit {
  /** Its incarnation is empty if the session is new. */
  readonly head: SnapshotHead;
  /** The second line of the file. */
  readonly body: string;
  /** The state, to be remembered. */
  readonly known: KnownState | undefined;
  /** Shards of the state; those that are there already are left alone. */
  readonly shards: readonly CutShard[];
  /** Encrypts the head and the shards; `body` is encrypted already. */
  readonly cipher: Cipher | undefined;
  readonly scopes: ReadonlyMap<string, ScopeChange>;
  /** `undefined`: the snapshot has none. */
  readonly session: FileSession | undefined;
  /** Whether a file may be in the snapshot's place; if not, it must not be replaced. */
  readonly replaces: boolean;
  /** Of a first save in a session. */
  readonly line?: SaveLine;
}

/** Another process has just created a snapshot of this id. */
export const NAME_IS_TAKEN = Symbol('name is taken');

/**
 * Carries out a save, for the holder of the lock. In this order:
 *
 * 1. the snapshot under a temporary name, the line of a first save, shards, and drafts of records are written;
 * 2. with `durability: 'full'` all of that is flushed;
 * 3. the snapshot's file is moved into its place: the commit point, after which the save counts; the folder is flushed;
 * 4. drafts of records are settled, pruned snapshots are removed, and the log gets the line `done`.
 *
 * A failure before 3 leaves everything as it was. After a failure in 4 the next writer completes it.
 */
export async function carryOut(
  tenant: TenantSessions,
  lock: HeldLock,
  commit: Commit,
): Promise<void | typeof NAME_IS_TAKEN> {
  const { session, line, head, known } = commit;
  const records = new ScopeRecords(tenant.folder);
  await records.settle(head);
  let announced: Announcement | undefined;
  let isNaming = false;
  let isThere = false;
  let isSettled = true;
  const saved = await records.changing(commit.scopes, async (drafts) => {
    const written = await write(tenant, commit, drafts);
    try {
      announced = line && session!.announce(line, written.head.incarnation);
      const folders = [...(announced?.made ?? []), ...(await writeRest(tenant, commit, written.head, drafts))];
      await flush(tenant, [written.fd, ...(announced ? [announced.fd] : [])], folders);
      await put(tenant, commit, written, {
        before: () => {
          lock.assertHeld();
          isNaming = true;
        },
        after: () => {
          isThere = true;
          announced?.commit();
        },
      });
    } catch (error) {
      if (isThere) {
        announced?.end(false);
        throw outcomeUnknown(`Saving snapshot ${quote(head.meta.snapshotId)}`, error);
      }
      tenant.folder.store.removeQuietly(written.path);
      announced?.withdraw();
      records.withdraw(drafts);
      if (isNaming && codeOf(error) === 'EEXIST') return NAME_IS_TAKEN;
      throw error;
    } finally {
      closeQuietly(tenant.folder.store.fs, written.fd);
    }
    isSettled = await succeeds(() => records.settleDrafts(drafts));
    return written.head;
  });
  if (saved === NAME_IS_TAKEN) return saved;
  remember(tenant, saved, known);
  if (session) await end(session, saved, announced, isSettled);
  tenant.onSaved?.(saved, known);
}

interface Written {
  readonly head: SnapshotHead;
  readonly path: string;
  readonly fd: number;
}

/** Writes the snapshot under a temporary name. */
async function write(
  tenant: TenantSessions,
  { head, body, session, cipher }: Commit,
  drafts: readonly RecordDraft[],
): Promise<Written> {
  const incarnation = head.incarnation || session?.incarnation || newNonce();
  const names = drafts.map(({ name }) => name);
  const records = names.length === 0 ? undefined : { commit: newNonce(), names };
  const full = { ...head, incarnation, records };
  return { head: full, ...tenant.folder.store.writeTemporary(await formatFile(full, body, cipher)) };
}

/** Writes shards and drafts; answers the folders that got an entry. */
async function writeRest(
  { folder }: TenantSessions,
  { shards, known, session, cipher }: Commit,
  { meta, records }: SnapshotHead,
  drafts: readonly RecordDraft[],
): Promise<string[]> {
  // Made even without a session: a tenant that has snapshots but no folder of sessions counts as `lost`.
  const changed = session ? [] : folder.store.makeFolder(folder.sessions);
  if (session && known && (await writeShards(session, shards, known.memory, cipher))) changed.push(session.path);
  if (records) await new ScopeRecords(folder).stage(drafts, { snapshotId: meta.snapshotId, commit: records.commit });
  return changed;
}

async function flush(
  { folder: { store } }: TenantSessions,
  fds: readonly number[],
  folders: readonly string[],
): Promise<void> {
  const flushes = [
    ...fds.map((fd) => store.flush(fd)),
    ...[...new Set(folders)].map((path) => store.flushFolder(path)),
  ];
  // Waits for all, because the caller closes the files.
  const failed = (await Promise.allSettled(flushes)).find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

/** Moves the snapshot's file into its place; `before` and `after` run at the moment of that. */
async function put(
  { folder }: TenantSessions,
  { session, replaces }: Commit,
  { head, path }: Written,
  { before, after }: { before: () => void; after: () => void },
): Promise<void> {
  const { store } = folder;
  const { snapshotId } = head.meta;
  const place = folder.snapshot(snapshotId);
  await store.changeFolder(folder.path, () => {
    before();
    store.move(path, place, { replaces });
    after();
    const node = session?.index.tree.get(snapshotId);
    if (node) attempt(() => (node.seen = { head, stamp: stampOf(store.fs.stat(place)!), isWhole: true }));
  });
}

/** Completes a save after its commit point. A failure here is not one of the save. */
async function end(
  session: FileSession,
  head: SnapshotHead,
  announced: Announcement | undefined,
  isSettled: boolean,
): Promise<void> {
  if (announced) {
    const isRemoved = await succeeds(() => removeFiles(session, session.index.removed));
    announced.end(isSettled && isRemoved);
  } else {
    const { place } = session.index.tree.mustGet(head.meta.snapshotId);
    await succeeds(() => session.append({ rewrite: place, at: timeNow() }, { flush: false }));
  }
  await succeeds(() => session.compact());
}

/** Caches the state for the next turn, and drops the one before, which is seldom needed again. */
function remember(
  { shared: { states } }: TenantSessions,
  { state, base, meta }: SnapshotHead,
  known: KnownState | undefined,
): void {
  if (known) cacheState(states, state.version, known);
  if (base && meta.status === 'completed') states.delete(base.version);
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}
