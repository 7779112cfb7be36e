import { quote } from '../../../src/errors.ts';
import type { ScopeChange } from '../../../src/store/contract.ts';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import type { CutShard } from '../../chain/cut.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { attempt, closeQuietly, codeOf, stampOf } from '../disk/file-system.ts';
import { outcomeUnknown } from '../disk/io-error.ts';
import type { HeldLock } from '../disk/lock-folder.ts';
import { timeNow, type SaveLine } from '../format/save-log.ts';
import { formatFile, type SnapshotHead } from '../format/snapshot-file.ts';
import { writeShards } from '../read/shards.ts';
import { removeFiles } from '../remove/remove-snapshots.ts';
import { newNonce, type PendingSave, type FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { ScopeRecords, type RecordDraft } from '../records/scope-records.ts';

/** A decided save. */
export interface Commit {
  /** Its incarnation is empty if the session is new. */
  readonly head: SnapshotHead;
  /** The second line of the file. */
  readonly body: string;
  /** The state, for the cache. */
  readonly known: KnownState | undefined;
  /** Shards of the state; existing ones are not written again. */
  readonly shards: readonly CutShard[];
  /** Encrypts the head and the shards; `body` is encrypted already. */
  readonly cipher: Cipher | undefined;
  readonly scopes: ReadonlyMap<string, ScopeChange>;
  /** `undefined` for a snapshot without a session. */
  readonly session: FileSession | undefined;
  /** Whether an existing file of the snapshot is replaced. Otherwise it must not exist. */
  readonly replaces: boolean;
  /** Of a first save in a session. */
  readonly line?: SaveLine;
}

/** Another process has just created a snapshot with this id. */
export const NAME_IS_TAKEN = Symbol('name is taken');

/**
 * Carries out a save, for the holder of the lock. In this order:
 *
 * 1. the snapshot under a temporary name, the line of a first save, shards, and drafts of records are written;
 * 2. with `durability: 'full'` all of that is flushed;
 * 3. the snapshot's file is moved into its place: this is the commit point; the folder is flushed;
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
  const { folder } = tenant;
  const { store } = folder;
  const { snapshotId } = head.meta;
  const records = new ScopeRecords(folder);
  await records.settle(head);
  let pending: PendingSave | undefined;
  let isNaming = false;
  let isThere = false;
  let isSettled = true;
  const saved = await records.changing(commit.scopes, async (drafts) => {
    const written = await write(tenant, commit, drafts);
    try {
      pending = line && session!.beginSave(line, written.head.incarnation);
      const folders = [...(pending?.made ?? []), ...(await writeRest(tenant, commit, written.head, drafts))];
      await flush(tenant, [written.fd, ...(pending ? [pending.fd] : [])], folders);
      await store.changeFolder(folder.path, () => {
        const place = folder.snapshot(snapshotId);
        lock.assertHeld();
        isNaming = true;
        store.move(written.path, place, { replaces: commit.replaces });
        isThere = true;
        pending?.commit();
        const node = session?.index.tree.get(snapshotId);
        if (node) {
          attempt(() => (node.seen = { head: written.head, stamp: stampOf(store.fs.stat(place)!), isWhole: true }));
        }
      });
    } catch (error) {
      if (isThere) {
        pending?.end(false);
        throw outcomeUnknown(`Saving snapshot ${quote(snapshotId)}`, error);
      }
      store.removeQuietly(written.path);
      pending?.cancel();
      records.removeDrafts(drafts);
      if (isNaming && codeOf(error) === 'EEXIST') return NAME_IS_TAKEN;
      throw error;
    } finally {
      closeQuietly(store.fs, written.fd);
    }
    isSettled = await succeeds(() => records.settleDrafts(drafts));
    return written.head;
  });
  if (saved === NAME_IS_TAKEN) return saved;
  remember(tenant, saved, known);
  if (session) await end(session, saved, pending, isSettled);
  tenant.shared.watches.get(folder.tenant)?.saved(saved, known);
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

/** Writes shards and drafts. Returns the folders that got an entry. */
async function writeRest(
  { folder }: TenantSessions,
  { shards, known, session, cipher }: Commit,
  { meta, records }: SnapshotHead,
  drafts: readonly RecordDraft[],
): Promise<string[]> {
  // Created even for a snapshot without a session: a tenant with snapshots but without a folder of sessions is `lost`.
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

/** Completes a save after its commit point. A failure here does not fail the save. */
async function end(
  session: FileSession,
  head: SnapshotHead,
  pending: PendingSave | undefined,
  isSettled: boolean,
): Promise<void> {
  if (pending) {
    const isRemoved = await succeeds(() => removeFiles(session, session.index.removed));
    pending.end(isSettled && isRemoved);
  } else {
    const { place } = session.index.tree.mustGet(head.meta.snapshotId);
    await succeeds(() => session.append({ rewrite: place, at: timeNow() }, { flush: false }));
  }
  await succeeds(() => session.compact());
}

/** Caches the state for the next turn. Drops the state before it, which is seldom needed again. */
function remember(
  { shared: { caches } }: TenantSessions,
  { state, base, meta }: SnapshotHead,
  known: KnownState | undefined,
): void {
  if (known) caches.keepState(state.version, known);
  if (base && meta.status === 'completed') caches.states.delete(base.version);
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}
