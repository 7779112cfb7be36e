import { failedPrecondition, invalidArgument } from '../../errors.ts';
import { byCreation } from '../../snapshot/session-tree.ts';
import { sessionOf, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import {
  capabilitiesOf,
  keepsRecords,
  keepsScopes,
  type PageOptions,
  type SessionDetails,
  type SessionSnapshot,
  type SessionStore,
  type SessionStoreOptions,
  type SnapshotStore,
} from '../contract.ts';
import { itemsOf, sessionsOldestFirst, snapshotsOf } from '../list/items-of.ts';
import { detailsOf } from '../list/session-summary.ts';
import { ScopeWriter, writeMissingRecords } from './write-beside.ts';

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
  /** Finds the sessions of `from`. Needed where `from` can't list: `listGenkitDirectory` or `listGenkitCollection` for Genkit's own stores. */
  list?: SessionLister;
  /** Called after each session. */
  onProgress?: (progress: CopyResult) => void;
}

/** The counts of a copy so far. */
export interface CopyResult {
  /** Sessions that are in `to` now as they are in `from`. */
  sessions: number;
  /** Snapshots written. */
  snapshots: number;
  /** Records of users and apps written. */
  scopes: number;
  /** Session records written. */
  records: number;
  /** Sessions that went on in both stores. Nothing of them was copied; decide which of the two to keep. */
  diverged: string[];
  /**
   * Sessions that went on in `to` and have other branches in `from`, which stay there: saved now, a branch would become the session's latest.
   * The snapshots that lead up to the continuation and the session's records were copied. Always empty for an import.
   */
  partial: string[];
}

/**
 * Copies all sessions of a tenant from one store to another: whole trees, with their ids and order, and the records of sessions, users and
 * apps if both stores keep them. `from` is only read. Data in `to` is not changed: run an interrupted copy again to complete it.
 *
 * Run it while no agent works on the sessions: until a session is copied whole, `to` shows a part of it. A session that went on in `to` through
 * `migratingStore` gets the snapshots that lead up to its continuation; if it has other branches in `from`, it is named in `partial`.
 *
 * @throws `FAILED_PRECONDITION` when `from` can't list and no `list` is given.
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
  const result: CopyResult = { sessions: 0, snapshots: 0, scopes: 0, records: 0, diverged: [], partial: [] };
  const caller: SessionStoreOptions = context === undefined ? {} : { context };
  result.scopes = await copyScopes(from, to, caller);
  for await (const session of options.list?.() ?? listed(from, caller)) {
    const copied = await copySession(from, to, session, caller);
    if (copied === 'diverged') result.diverged.push(session.sessionId);
    else {
      const { sessionId } = session;
      if (copied.isPartial) result.partial.push(sessionId);
      else result.sessions++;
      result.snapshots += copied.written;
      const records = keepsRecords(from) ? await from.readRecords({ ...caller, sessionId }) : [];
      result.records += await writeMissingRecords(to, { ...caller, sessionId }, records);
    }
    onProgress?.({ ...result, diverged: [...result.diverged], partial: [...result.partial] });
  }
  return result;
}

interface SessionToCopy extends ListedSession {
  /** `snapshotIds` are in the order of their first saves. */
  readonly isOrdered?: boolean;
  readonly details?: SessionDetails;
}

async function* listed<S>(from: SessionStore<S>, caller: SessionStoreOptions): AsyncIterable<SessionToCopy> {
  if (!capabilitiesOf(from).list) {
    throw failedPrecondition(
      "copySessions: the first store can't list its sessions. Pass list: listGenkitDirectory(...) or listGenkitCollection(...) for Genkit's own " +
        'stores, or a lister of your own.',
    );
  }
  const store = from as SnapshotStore<S>;
  // Oldest first, so that `to` lists the sessions in the same order.
  for await (const session of sessionsOldestFirst(store, caller)) {
    const { sessionId } = session;
    const snapshotIds: string[] = [];
    for await (const { snapshotId } of snapshotsOf(store, { ...caller, sessionId })) snapshotIds.push(snapshotId);
    yield { sessionId, snapshotIds, isOrdered: true, details: detailsOf(session) };
  }
}

interface CopiedSession {
  /** How many snapshots were written. */
  readonly written: number;
  /** Whether branches of the session stay in `from`. */
  readonly isPartial: boolean;
}

async function copySession<S>(
  from: SessionStore<S>,
  to: SnapshotStore<S>,
  session: SessionToCopy,
  caller: SessionStoreOptions,
): Promise<CopiedSession | 'diverged'> {
  const { sessionId } = session;
  const there = new Map<string, SnapshotMetadata>();
  for await (const meta of snapshotsOf(to, { ...caller, sessionId })) there.set(meta.snapshotId, meta);
  const snapshots = await orderOf(from, session, caller);
  const ids = new Set(snapshots);
  const added = [...there.values()].filter((meta) => !ids.has(meta.snapshotId));
  const copies = { from, to, caller, session: session.details ?? {}, there };
  if (added.length === 0) return { written: await writeAll(copies, snapshots), isPartial: false };
  // The session has new snapshots in `to`. If they follow the latest leaf of `from`, its history is copied; otherwise the session diverged.
  const leafId = snapshots.at(-1);
  const hasGoneOn = leafId !== undefined && (there.has(leafId) || added.some((meta) => meta.parentId === leafId));
  if (!hasGoneOn) return 'diverged';
  const path = await pathTo(from, leafId, caller);
  const copied = new Set([...there.keys(), ...path]);
  return { written: await writeAll(copies, path), isPartial: !snapshots.every((id) => copied.has(id)) };
}

interface Copies<S> {
  readonly from: SessionStore<S>;
  readonly to: SnapshotStore<S>;
  readonly caller: SessionStoreOptions;
  readonly session: SessionDetails;
  readonly there: ReadonlyMap<string, SnapshotMetadata>;
}

async function writeAll<S>({ from, to, caller, session, there }: Copies<S>, ids: readonly string[]): Promise<number> {
  let written = 0;
  for (const snapshotId of ids) {
    if (there.has(snapshotId)) continue;
    const snapshot = await from.getSnapshot({ ...caller, snapshotId });
    if (!snapshot) continue;
    const sessionId = sessionOf(snapshot);
    const saved = await to.saveSnapshot(
      snapshotId,
      (current) => (current ? null : { ...snapshot, ...(sessionId !== undefined && { sessionId }) }),
      { ...caller, ...(to.capabilities.details && { session }) },
    );
    if (saved !== null) written++;
  }
  return written;
}

/** The session's snapshots in the order of their first saves, as far as that is known: the latest leaf is last. */
async function orderOf<S>(
  from: SessionStore<S>,
  { sessionId, snapshotIds, isOrdered }: SessionToCopy,
  caller: SessionStoreOptions,
): Promise<readonly string[]> {
  if (isOrdered) return snapshotIds;
  const read = await Promise.all(snapshotIds.map((snapshotId) => from.getSnapshot({ ...caller, snapshotId })));
  const snapshots = read.filter((snapshot) => snapshot !== undefined);
  const known = new Map(snapshots.map((snapshot) => [snapshot.snapshotId, snapshot as SessionSnapshot]));
  const leaf = await from.getSnapshot({ ...caller, sessionId }).catch(() => undefined);
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
async function pathTo<S>(
  from: SessionStore<S>,
  leafId: string,
  caller: SessionStoreOptions,
): Promise<readonly string[]> {
  const path = new Set<string>();
  for (let id: string | undefined = leafId; id !== undefined && !path.has(id);) {
    path.add(id);
    id = (await from.getSnapshot({ ...caller, snapshotId: id }))?.parentId;
  }
  return [...path];
}

/** Copies the records of users and apps that `to` does not have. */
async function copyScopes<S>(
  from: SessionStore<S>,
  to: SnapshotStore<S>,
  caller: SessionStoreOptions,
): Promise<number> {
  if (!keepsScopes(from) || !keepsScopes(to)) return 0;
  const writer = new ScopeWriter(to, caller);
  for await (const scope of itemsOf((page: PageOptions) => from.listScopes(page), { ...caller, limit: 1000 })) {
    const [values = {}] = await from.readScopes({ ...caller, scopes: [scope] });
    await writer.add(scope, values);
  }
  return writer.end();
}
