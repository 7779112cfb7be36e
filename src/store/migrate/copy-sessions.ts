import { dataLoss, failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { byCreation } from '../../snapshot/session-tree.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import {
  capabilitiesOf,
  keepsRecords,
  keepsScopes,
  type PageOptions,
  type SessionDetails,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStore,
  type SessionStoreOptions,
  type SnapshotStore,
  type Unreadable,
} from '../contract.ts';
import { itemsOf, sessionsOldestFirst, snapshotsOf, UnreadableItems } from '../list/items-of.ts';
import { detailsOf } from '../list/session-summary.ts';
import { CopyTarget, type CopyOutcome, type CopyResult } from './copy-target.ts';

/** A session as a {@link SessionLister} finds it. */
export interface ListedSession {
  /** The session. */
  readonly sessionId: string;
  /** All of its snapshots, in any order. */
  readonly snapshotIds: readonly string[];
}

/** Finds the sessions of a store that can't list. */
export type SessionLister = () => AsyncIterable<ListedSession>;

/** Options of {@link copySessions}. */
export interface CopySessionsOptions extends SessionStoreOptions {
  /** Finds the sessions of `from`. Required if `from` can't list: `listGenkitDirectory` or `listGenkitCollection` for Genkit's own stores. */
  list?: SessionLister;
  /** Called after each session. */
  onProgress?: (progress: CopyResult) => void;
}

/**
 * Copies all sessions of a tenant from one store to another: whole trees, with their ids and order, and the records of sessions, users and
 * apps if both stores keep them. `from` is only read. Data in `to` is not changed: run an interrupted copy again to complete it.
 *
 * Run it while no agent works on the sessions: until a session is copied completely, `to` shows a part of it. A session that continued in `to` through
 * `migratingStore` gets the snapshots that lead up to its continuation; if it has other branches in `from`, it is named in `partial`.
 *
 * @throws `FAILED_PRECONDITION` if `from` can't list and no `list` is given; `DATA_LOSS` at the end, if data of `from` can't be read: all other
 *   sessions are copied, and of such a session at most the snapshots before that data. An export has all that can be read.
 *
 * @example
 * const result = await copySessions(oldStore, newStore, {
 *   list: listGenkitDirectory('.genkit/snapshots'),
 *   onProgress: ({ sessions }) => console.log(`${sessions} sessions`),
 * });
 */
export async function copySessions<S = unknown>(
  from: SessionStore<S>,
  to: SnapshotStore<S>,
  options: CopySessionsOptions = {},
): Promise<CopyResult> {
  const { context, onProgress } = options;
  if (!(to as Partial<SnapshotStore<S>>)?.capabilities) {
    throw invalidArgument('copySessions: the second store must be of this package, or declare its capabilities.');
  }
  const caller: SessionStoreOptions = context === undefined ? {} : { context };
  const target = new CopyTarget(to, caller, onProgress);
  const source = new CopySource(from, caller);
  await copyScopes(source, target);
  for await (const session of options.list?.() ?? listed(source)) {
    const outcome = await copySession(source, target, session);
    const { sessionId } = session;
    const isWritten = outcome !== 'diverged' && !source.unreadable.has({ sessionId });
    const records = isWritten ? await source.records(sessionId) : [];
    await target.endSession(sessionId, source.unreadable.has({ sessionId }) ? 'unreadable' : outcome, records);
  }
  assertComplete(source.unreadable.all);
  return target.result;
}

/** @throws `DATA_LOSS` if there is data that was not copied because it can't be read. */
function assertComplete(unreadable: readonly Unreadable[]): void {
  if (unreadable.length === 0) return;
  const names = unreadable.map(({ sessionId, place }) =>
    sessionId === undefined ? place : `session ${quote(sessionId)}`,
  );
  throw dataLoss(
    `The copy is incomplete, because the store has data that can't be read: ${names.join(', ')}. All other sessions are copied. Restore this ` +
      'data from a backup, or delete it, and try again.',
  );
}

/** The store to copy from. Data that can't be read is noted, and read as missing. */
class CopySource<S> {
  readonly store: SessionStore<S>;
  readonly caller: SessionStoreOptions;
  readonly unreadable = new UnreadableItems();

  constructor(store: SessionStore<S>, caller: SessionStoreOptions) {
    this.store = store;
    this.caller = caller;
  }

  snapshot(sessionId: string, snapshotId: string): Promise<SessionSnapshot<S> | undefined> {
    return this.unreadable.read({ sessionId }, this.store.getSnapshot({ ...this.caller, snapshotId }));
  }

  async records(sessionId: string): Promise<SessionRecord[]> {
    if (!keepsRecords(this.store)) return [];
    return (await this.unreadable.read({ sessionId }, this.store.readRecords({ ...this.caller, sessionId }))) ?? [];
  }
}

interface SessionToCopy extends ListedSession {
  /** `snapshotIds` are in the order of their first saves. */
  readonly isOrdered?: boolean;
  readonly details?: SessionDetails;
}

async function* listed<S>(source: CopySource<S>): AsyncIterable<SessionToCopy> {
  const { caller, unreadable } = source;
  const { list, incompleteLists } = capabilitiesOf(source.store);
  if (!list || incompleteLists) {
    throw failedPrecondition(
      "copySessions: the first store can't list all its sessions. Pass list: listGenkitDirectory(...) or listGenkitCollection(...) for Genkit's own " +
        'stores, or your own lister.',
    );
  }
  const store = source.store as SnapshotStore<S>;
  // Oldest first, so that `to` lists the sessions in the same order.
  for await (const session of sessionsOldestFirst(store, caller, unreadable)) {
    const { sessionId } = session;
    const snapshotIds: string[] = [];
    for await (const { snapshotId } of snapshotsOf(store, { ...caller, sessionId })) snapshotIds.push(snapshotId);
    yield { sessionId, snapshotIds, isOrdered: true, details: detailsOf(session) };
  }
}

async function copySession<S>(
  source: CopySource<S>,
  target: CopyTarget<S>,
  session: SessionToCopy,
): Promise<CopyOutcome> {
  const found = await target.snapshotsOf(session.sessionId);
  const there = new Set(found.map(({ snapshotId }) => snapshotId));
  const copy = async (ids: readonly string[]): Promise<void> => {
    for (const snapshotId of ids) {
      // What follows data that can't be read is left for the next copy: saved later, that data would become the session's latest leaf.
      if (isUnreadable()) return;
      const snapshot = there.has(snapshotId) ? undefined : await source.snapshot(session.sessionId, snapshotId);
      if (snapshot) await target.save({ ...snapshot, sessionId: sessionOf(snapshot) }, session.details);
    }
  };
  const isUnreadable = (): boolean => source.unreadable.has({ sessionId: session.sessionId });
  const snapshots = await orderOf(source, session);
  const ids = new Set(snapshots);
  const added = found.filter(({ snapshotId }) => !ids.has(snapshotId));
  if (added.length === 0) {
    await copy(snapshots);
    return 'whole';
  }
  // The session has new snapshots in `to`. If they follow the latest leaf of `from`, its history is copied; otherwise the session diverged.
  const leafId = snapshots.at(-1);
  const isContinued = leafId !== undefined && (there.has(leafId) || added.some(({ parentId }) => parentId === leafId));
  if (!isContinued) return 'diverged';
  const path = await pathTo(source, session.sessionId, leafId);
  await copy(path);
  const copied = new Set([...there, ...path]);
  return snapshots.every((id) => copied.has(id)) ? 'whole' : 'partial';
}

/** The session's snapshots in the order of their first saves, as far as that is known: the latest leaf is last. */
async function orderOf<S>(
  source: CopySource<S>,
  { sessionId, snapshotIds, isOrdered }: SessionToCopy,
): Promise<readonly string[]> {
  if (isOrdered) return snapshotIds;
  const read = await Promise.all(snapshotIds.map((snapshotId) => source.snapshot(sessionId, snapshotId)));
  const snapshots = read.filter((snapshot) => snapshot !== undefined);
  const known = new Map(snapshots.map((snapshot) => [snapshot.snapshotId, snapshot as SessionSnapshot]));
  const leaf = await source.store.getSnapshot({ ...source.caller, sessionId }).catch(() => undefined);
  const order = new Set<string>();
  const place = (snapshotId: string): void => {
    const path: string[] = [];
    for (let id: string | undefined = snapshotId; id !== undefined && known.has(id);) {
      path.push(id);
      const { parentId }: SessionSnapshot = known.get(id)!;
      known.delete(id);
      id = parentId;
    }
    for (const id of path.toReversed()) order.add(id);
  };
  for (const { snapshotId } of [...known.values()].toSorted(byCreation))
    if (snapshotId !== leaf?.snapshotId) place(snapshotId);
  if (leaf) place(leaf.snapshotId);
  return [...order];
}

/** A snapshot and its ancestors, the newest first, so that none of them is a leaf when it is saved. */
async function pathTo<S>(source: CopySource<S>, sessionId: string, leafId: string): Promise<readonly string[]> {
  const path = new Set<string>();
  for (let id: string | undefined = leafId; id !== undefined && !path.has(id);) {
    path.add(id);
    id = (await source.snapshot(sessionId, id))?.parentId;
  }
  return [...path];
}

/** Copies the records of users and apps that the target does not have. */
async function copyScopes<S>(source: CopySource<S>, target: CopyTarget<S>): Promise<void> {
  const { store, caller, unreadable } = source;
  if (!keepsScopes(store)) return;
  const list = (page: PageOptions) => store.listScopes(page);
  for await (const scope of itemsOf(list, { ...caller, limit: 1000 }, unreadable)) {
    const values = await unreadable.readScope(store, scope, caller);
    if (values) await target.addScope(scope, values);
  }
  await target.endScopes();
}
