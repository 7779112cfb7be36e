/**
 * The guarantees of a session store of this package, then its methods.
 *
 * A store keeps snapshots. A snapshot of a session may name a parent, so a session is a forest, usually a single tree. A snapshot without a
 * session has no tree: it is read by its id, and its `parentId` has no meaning for the store. Within the tenant that `snapshotPathPrefix({
 * context })` names, and for every process that shares the store's medium:
 *
 * - **Atomic.** A save is all or nothing. Of concurrent saves of one snapshot, each sees the result of the previous one: 30 increments give
 *   30. A mutator may run more than once, and only its last result counts, so it must not have side effects that add up.
 * - **One leaf rule.** A leaf is a snapshot that no other snapshot of its session names as parent. The latest leaf is the leaf that was
 *   first saved last, in the store's commit order.
 * - **Terminal is final.** `completed`, `failed` and `aborted` never change to another status. `parentId`, `createdAt` and `sessionId` stay
 *   as first saved.
 * - **Rewrites are safe.** The state of a completed snapshot that has children never changes: a save that would change it is refused with
 *   `FAILED_PRECONDITION`. Its other members may change. A rewrite never changes other snapshots.
 * - **Values come back as saved**, or are refused with `INVALID_ARGUMENT` and the path, before anything is written.
 * - **Nothing is aliased.** A method returns the caller's own copy, or a frozen value if the caller asked for one.
 * - **Ids are data.** Any non-blank string of at most 1,024 characters names a snapshot, a session, an app, a user or a tenant.
 * - **Scopes.** A store with `capabilities.scopes` also keeps records of values that sessions share: at most one record for each app, and
 *   one for each user of an app. Only saves change records, and `deleteScope` removes them. The snapshot and the records of a save are
 *   written together or not at all: if the mutator skips or throws, the leaf is not the expected one, or a change is refused, nothing is
 *   written. A change gets the current record: 30 increments from 30 sessions give 30, and changes of different keys are all kept. Each
 *   record costs a save at most one more document. Records have no history: rewriting, branching, resuming an earlier snapshot, deleting or
 *   pruning sessions does not change them. Snapshots contain no part of a record. A store without `capabilities.scopes` refuses a save with
 *   `scopes` with `FAILED_PRECONDITION`, before the mutator runs.
 * - **Session records.** A store with `capabilities.records` also keeps any number of JSON values for each session, each under a kind and a
 *   key. Only `writeRecord` changes a record; 30 increments that expect the revision they read, and try again on `ABORTED`, give 30. Any
 *   removal of a session also removes its records; a new session with the same id does not have them, and no revision is used twice. A
 *   record may be written before the session's first snapshot. Until then it is an orphan: `prune` removes orphans that were written more
 *   than an hour ago. Writing a record does not change snapshots, lists, or the ages that `prune` measures.
 * - **Errors are `GenkitError`s** whose message names the id and says what to do.
 */
import type { GenerateRequest } from 'genkit';
import type { SessionState, SessionStore, SessionStoreOptions, SnapshotMutator } from 'genkit/beta';
import type { Json } from '../json/value.ts';
import type { SessionSnapshot, SnapshotMetadata, SnapshotStatus } from '../snapshot/snapshot.ts';

export type { SessionSnapshotInput } from '../snapshot/snapshot.ts';
export type { SessionSnapshot, SessionStore, SessionStoreOptions, SnapshotMetadata, SnapshotMutator, SnapshotStatus };

/** Selects a snapshot: set exactly one of `snapshotId` and `sessionId`. */
export interface SnapshotLookup extends SessionStoreOptions {
  /** Selects the snapshot with this id. */
  snapshotId?: string;
  /** Selects the latest leaf of this session. */
  sessionId?: string;
  /**
   * Allows the store to return its own state, frozen, instead of a copy. For callers that only read. If parts of this state are saved
   * again, the store recognizes them without comparing them. Default: `false`.
   */
  frozen?: boolean;
}

/** Facts about a session, stored in addition to its snapshots. */
export interface SessionDetails {
  /** The user to whom the session belongs. Set by the session's first save, and never changed. */
  readonly ownerId?: string;
  /** The agent that answers in it. */
  readonly agent?: string;
  /** A name that people read. */
  readonly title?: string;
}

/** Options of {@link SnapshotStore.saveSnapshot}. */
export interface SaveSnapshotOptions extends SessionStoreOptions {
  /**
   * The save succeeds only while this snapshot is the session's latest leaf (`null`: while the session has no snapshot), else it throws
   * `SessionConflictError`. Default: the leaf is not checked.
   */
  expectedLeafId?: string | null;
  /**
   * The save succeeds only while the session has this snapshot, else it throws `ABORTED`. Prevents writes to a session that was deleted in
   * the meantime. Default: not checked. Needs `capabilities.compareLeaf`.
   */
  ifSnapshot?: string;
  /** Changes of records, made in the same commit as the snapshot. Each record at most once. Needs `capabilities.scopes`. */
  scopes?: readonly ScopeChange[];
  /**
   * Facts about the snapshot's session, written in the same commit. Each member replaces the stored one, except `ownerId`, which only the
   * session's first save sets; a missing member changes nothing. Ignored for a snapshot without a session. Needs `capabilities.details`.
   */
  session?: SessionDetails;
}

/** Names a record of an app, or of a user of an app. Two ids name the same record exactly if all their members are equal. */
export type ScopeId =
  | {
      /** The record that all users of the app share. */
      readonly scope: 'app';
      /** The app, any id. */
      readonly appName: string;
    }
  | {
      /** The record of one user. */
      readonly scope: 'user';
      /** The app, any id. */
      readonly appName: string;
      /** The user of that app, any id. */
      readonly userId: string;
    };

/** Values that sessions share. Any string can be a key, even `__proto__`. An empty record is the same as no record. */
export type ScopeRecord = { [key: string]: Json };

/** How a save changes a record. */
export interface ScopeChange {
  /** The record to change. */
  readonly id: ScopeId;
  /**
   * Gets a copy of the current record (empty if there is no record) and returns the new record; it may change and return its argument.
   * `undefined` keeps the record, and the save still makes sure that the record has not changed in the meantime. Runs after the mutator,
   * possibly more than once; only its last result counts. If it throws, the save throws the same error and saves nothing.
   */
  readonly change: (record: ScopeRecord) => ScopeRecord | undefined;
}

/** A value that belongs to a session but is not a snapshot, for example a summary of its first turns. */
export interface SessionRecord {
  /** The group of the record, for example `'compaction'`; any id. */
  readonly kind: string;
  /** Its name within the kind; any id. */
  readonly key: string;
  /** Any JSON value. */
  readonly value: Json;
  /** Changes with each write. Opaque. */
  readonly revision: string;
}

/** Options of {@link RecordStore.readRecords}. */
export interface ReadRecordsOptions extends SessionStoreOptions {
  /** Any id; the session need not have a snapshot yet. */
  sessionId: string;
  /** The group of records to read. Default: all records of the session. */
  kind?: string;
  /** Only the records with these keys, at most 100; needs `kind`. Default: all records of the kind. */
  keys?: readonly string[];
}

/** Options of {@link RecordStore.writeRecord}. */
export interface WriteRecordOptions extends SessionStoreOptions {
  /** Any id; the session need not have a snapshot yet. */
  sessionId: string;
  /** The group of the record. */
  kind: string;
  /** Its name within the kind. */
  key: string;
  /** At most 512 KiB as JSON text in UTF-8. `undefined` removes the record. */
  value: Json | undefined;
  /**
   * The write succeeds only while the record has this revision (`null`: while there is no such record), else it throws `ABORTED`. Default:
   * any stored record is replaced.
   */
  expectedRevision?: string | null;
  /**
   * The write succeeds only while the session has this snapshot, else it throws `ABORTED`. Prevents writes to a session that was deleted in
   * the meantime. Default: not checked.
   */
  ifSnapshot?: string;
}

/** Selects a part of a list. */
export interface PageOptions extends SessionStoreOptions {
  /** The most items of the page, 1 to 1,000. Default: 100. */
  limit?: number;
  /** `nextCursor` of the previous page. Default: the first page. */
  cursor?: string | undefined;
}

/** A part of a list. If it has a `nextCursor`, there are more items. */
export interface Page<T> {
  /** The items, at most `limit`. */
  items: T[];
  /** Pass it as `cursor` to get the next page. Opaque. Missing on the last page. */
  nextCursor?: string;
  /** Data that may belong to the list but can't be read, so that no page contains it. Missing if there is none. */
  unreadable?: Unreadable[];
}

/**
 * A session, or data at a place, that can't be read: it is damaged, a newer version wrote it, or the process has no permission to open it.
 */
export interface Unreadable {
  /** The session. Missing if its id is unknown. */
  sessionId?: string;
  /** The path of the data, relative to the store's directory. */
  place?: string;
}

/** Options of {@link SnapshotStore.listSessions}. */
export interface ListSessionsOptions extends PageOptions {
  /** Only the sessions of this owner. Needs `capabilities.details`. Default: all sessions of the tenant. */
  ownerId?: string;
}

/** A session in a list. */
export interface SessionSummary extends SessionDetails {
  /** The id of the session. */
  sessionId: string;
  /** The latest leaf. */
  leafId: string;
  /** The number of leaves; a session with more than one has branches. */
  leafCount: number;
  /** The number of snapshots, with any status. */
  snapshotCount: number;
  /** `createdAt` of the snapshot that was saved first. */
  createdAt: string;
  /**
   * When the session was last written: `updatedAt`, else `createdAt`, of the last written snapshot. Pruning is not a write, and a store may
   * ignore heartbeats.
   */
  updatedAt: string;
  /** Status of the latest leaf. */
  status?: SnapshotStatus;
  /**
   * The sum of each numeric member of its snapshots' `usage`, plus the largest `summaryUsage` of a snapshot, which is already a sum for the
   * whole session. Missing if no snapshot has either.
   */
  usage?: UsageSum;
}

/** Numbers of a model's usage by name, for example `inputTokens`. */
export type UsageSum = { [name: string]: number };

/**
 * Selects the snapshots that {@link SnapshotStore.prune} removes: those to which any member applies. Ages are measured by the snapshots'
 * own times. No snapshot becomes a leaf: if all children of a remaining snapshot would be removed, the child that was first saved last is
 * kept.
 *
 * If a session is not removed whole, a leaf that is pending, failed, aborted or expired keeps the snapshot from which its session continues
 * (the nearest completed ancestor) and the snapshots between; without a completed ancestor, its whole path.
 */
export interface PrunePolicy {
  /** Snapshots created longer ago than this, in ms, except leaves and running snapshots: a leaf is removed only with its session. */
  maxAgeMs?: number;
  /** Whole sessions that were not written for this time, in ms. A session with a running snapshot stays. */
  idleMs?: number;
  /** The number of newest snapshots, at least 1, to keep on each path from a leaf to its root. Removes the others, except running ones. */
  maxChainLength?: number;
}

/** The counts of removed data; with `dryRun`, of the data that would be removed. */
export interface PruneResult {
  /** Sessions that were removed whole. */
  sessions: number;
  /** Removed snapshots, including those of whole sessions. */
  snapshots: number;
  /** Shards of states that no remaining snapshot needs; 0 in stores without shards. */
  shards: number;
  /** Whether this was a dry run, which removes nothing. */
  dryRun: boolean;
}

/** The counts of the data that {@link SnapshotStore.deleteSession} removed; zeros if the session did not exist. */
export interface DeleteResult {
  /** Removed snapshots, with any status. */
  snapshots: number;
  /** Shards that were removed; 0 in stores without shards. */
  shards: number;
  /** Removed session records. Missing if the store does not count them. */
  records?: number;
}

/** The counts of the data that {@link SnapshotStore.deleteSessions} removed. */
export interface DeleteSessionsResult extends DeleteResult {
  /** Removed sessions. Sessions that did not exist are not counted. */
  sessions: number;
  /** Removed session records. */
  records: number;
}

/** The features of a store. Check these, never probe for methods. */
export interface StoreCapabilities {
  /** The store has `onSnapshotStateChange`. */
  watch: boolean;
  /** Watchers are also notified of saves by other processes. */
  watchAcrossProcesses: boolean;
  /** The store has `getSnapshotMetadata`. */
  metadata: boolean;
  /** The store has `listSnapshots` and `listSessions`. */
  list: boolean;
  /** The lists lack a part of the data, as those of a `migratingStore` from a store that can't list. Default: `false`. */
  incompleteLists?: boolean;
  /** The store has `deleteSession`. */
  delete: boolean;
  /** The store has `prune`. */
  prune: boolean;
  /** `saveSnapshot` supports `expectedLeafId` and `ifSnapshot`. */
  compareLeaf: boolean;
  /** The store is also a {@link ScopeStore}, and saves accept `scopes`. */
  scopes: boolean;
  /** The store is also a {@link RecordStore}. */
  records: boolean;
  /** Saves accept `session`, session summaries contain its members, and `listSessions` accepts `ownerId`. */
  details: boolean;
  /** The store is also a {@link CheckStore}. */
  check: boolean;
  /** Saved data outlives the process. */
  durable: boolean;
}

/** The capabilities of a store that has all features. */
export const ALL_CAPABILITIES: Readonly<StoreCapabilities> = Object.freeze({
  watch: true,
  watchAcrossProcesses: true,
  metadata: true,
  list: true,
  delete: true,
  prune: true,
  compareLeaf: true,
  scopes: true,
  records: true,
  details: true,
  check: true,
  durable: true,
});

/** The capabilities of a foreign `SessionStore`, which has only Genkit's three methods. */
export const FOREIGN_CAPABILITIES: Readonly<StoreCapabilities> = Object.freeze({
  watch: false,
  watchAcrossProcesses: false,
  metadata: false,
  list: false,
  delete: false,
  prune: false,
  compareLeaf: false,
  scopes: false,
  records: false,
  details: false,
  check: false,
  durable: false,
});

/**
 * A store of this package: Genkit's `SessionStore` with more methods and guarantees. `S` is the type of the custom state.
 *
 * @example
 * // Add a turn, unless another writer was faster.
 * const leaf = await store.getSnapshot({ sessionId: 'support-1' });
 * const createdAt = new Date().toISOString();
 * await store.saveSnapshot(
 *   undefined,
 *   () => ({ sessionId: 'support-1', parentId: leaf?.snapshotId, createdAt, status: 'completed', state: leaf?.state }),
 *   { expectedLeafId: leaf?.snapshotId ?? null },
 * );
 * // Remove the sessions that were not written for 30 days.
 * await store.prune({ idleMs: 30 * 24 * 60 * 60 * 1000 });
 */
export interface SnapshotStore<S = unknown> extends SessionStore<S> {
  /** The features of the store. They never change. */
  readonly capabilities: Readonly<StoreCapabilities>;

  /** Returns the snapshot, or the session's latest leaf; `undefined` if it does not exist. */
  getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined>;

  /** Like `getSnapshot`, without the state. Its cost does not depend on the size of the state. */
  getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined>;

  /**
   * Reads the snapshot, calls `mutator` with it, and saves the result.
   *
   * @param snapshotId The snapshot to create or rewrite. Default: the `snapshotId` of the mutator's result, else a new id.
   * @param mutator Gets the current snapshot (`undefined` if there is none); returns the new snapshot, or `null` to write nothing. Its
   *   errors are thrown.
   * @returns The id of the saved snapshot; `null` if the mutator returned `null`.
   */
  saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null>;

  /**
   * Calls `callback` with the current snapshot, if it exists, soon after this method returns; then once for each later status, in order. If
   * several rewrites have the same status, `callback` may get only the last one.
   *
   * @returns A function that ends the subscription. The callback is not called afterwards.
   */
  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void;

  /** Lists the session's snapshots without their states, in the order in which they were first saved. */
  listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>>;

  /** Lists the tenant's sessions, the last written first. */
  listSessions(options?: ListSessionsOptions): Promise<Page<SessionSummary>>;

  /**
   * Removes every byte of a session.
   *
   * @param options.expectedLeafId Removes the session only if this snapshot is its latest leaf, else throws `SessionConflictError`.
   *   Default: the leaf is not checked.
   */
  deleteSession(options: SessionStoreOptions & { sessionId: string; expectedLeafId?: string }): Promise<DeleteResult>;

  /** Deletes many sessions, in any order. Optional: for stores that can do this with fewer requests than `deleteSession`. */
  deleteSessions?(options: SessionStoreOptions & { sessionIds: readonly string[] }): Promise<DeleteSessionsResult>;

  /**
   * Removes the data in the caller's tenant that the policy selects. Reads of the remaining data return the same as before.
   *
   * @param options.sessionId Prunes only this session. Default: all sessions of the tenant, and the data without a session.
   */
  prune(
    policy: PrunePolicy,
    options?: SessionStoreOptions & { dryRun?: boolean; sessionId?: string },
  ): Promise<PruneResult>;

  /** Releases watchers, timers and everything else that the store opened. Later calls of other methods are refused. May be called twice. */
  close(): Promise<void>;
}

/** The methods of a store with `capabilities.scopes`. */
export interface ScopeStore {
  /**
   * Reads records, in the order of `scopes`; a record that does not exist is empty. Each record is consistent, but a save may come between
   * the reads of two records. Reads one document for each.
   */
  readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]>;

  /**
   * Removes every byte of a record, for example if a user wants to be forgotten; `deleteSession` removes the user's sessions. A running
   * save may create the record again.
   *
   * @returns Whether the record existed.
   */
  deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean>;

  /** Lists the ids of all records of the tenant, always in the same order. */
  listScopes(options?: PageOptions): Promise<Page<ScopeId>>;
}

/** The methods of a store with `capabilities.records`. */
export interface RecordStore {
  /** Reads the session's records, sorted by kind and key in UTF-16 code unit order. Returns copies. */
  readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]>;

  /**
   * Creates, replaces or removes one record, atomically.
   *
   * @returns The record's new revision; `null` if it was removed.
   * @throws `ABORTED` if the check of `expectedRevision` or `ifSnapshot` fails. Read the record again, and decide again.
   */
  writeRecord(options: WriteRecordOptions): Promise<string | null>;
}

/** Options of {@link CheckStore.check}. */
export interface CheckOptions extends SessionStoreOptions {
  /** Whether to remove orphans that were written longer ago than `graceMs`. Removes nothing else. Default: `false`. */
  repair?: boolean;
  /** The minimum age of an orphan to remove, in ms, because a younger orphan may belong to a running save. Default: 3,600,000 (an hour). */
  graceMs?: number;
  /** Called after each session, with the counts so far. */
  onProgress?: (progress: CheckCounts) => void;
}

/** The counts of the data that a check has read. */
export interface CheckCounts {
  /** Sessions. */
  sessions: number;
  /** Snapshots, each with its whole state. */
  snapshots: number;
  /** Session records. */
  records: number;
  /** Records of users and apps. */
  scopes: number;
}

/** A problem that a check found. */
export interface StoreFinding {
  /**
   * `damaged`: missing or broken. `unreadable`: its key is missing, or a newer version wrote it. `orphan`: no data refers to it, no longer
   * or not yet. `expired`: past its expiry and not removed yet, or a background run whose lease has expired.
   */
  readonly kind: 'damaged' | 'unreadable' | 'orphan' | 'expired';
  /** The tenant, as `snapshotPathPrefix` names it. */
  readonly tenant: string;
  /** The session of the data. Missing if it has no session, or the session is unknown. */
  readonly sessionId?: string;
  /** The snapshot. Missing if the finding is not about a snapshot, or its id is unknown. */
  readonly snapshotId?: string;
  /**
   * The file, relative to the store's directory, or the path of the document. Missing if the finding is not about a single file or
   * document.
   */
  readonly place?: string;
  /** What is wrong, in a sentence for an operator. */
  readonly problem: string;
  /** What the operator should do. */
  readonly advice: string;
  /** Whether the data was removed. */
  readonly isRepaired: boolean;
}

/** The result of a check. */
export interface CheckResult extends CheckCounts {
  /** The problems that were found. */
  findings: StoreFinding[];
}

/** The method of a store with `capabilities.check`. */
export interface CheckStore {
  /**
   * Reads all data of the caller's tenant once, without caches, and reports damaged, unreadable, orphaned and expired data. Agents may work
   * during the check. Do not run it often, because it reads everything.
   *
   * @throws The store's errors if it can't be reached. They do not mean that data is damaged.
   * @example
   * import { FileSessionStore } from 'genkitx-agents';
   * const { findings } = await new FileSessionStore('.data/sessions').check();
   * for (const { kind, sessionId, problem, advice } of findings) console.log(kind, sessionId, problem, advice);
   */
  check(options?: CheckOptions): Promise<CheckResult>;
}

/** Whether the store can check itself. */
export function canCheck<S>(store: SessionStore<S>): store is SnapshotStore<S> & CheckStore {
  return capabilitiesOf(store).check;
}

/** Whether the store keeps session records. */
export function keepsRecords<S>(store: SessionStore<S>): store is SnapshotStore<S> & RecordStore {
  return capabilitiesOf(store).records;
}

/** Whether the store keeps records of users and apps. */
export function keepsScopes<S>(store: SessionStore<S>): store is SnapshotStore<S> & ScopeStore {
  return capabilitiesOf(store).scopes;
}

/** Returns the features of a store. A foreign store has Genkit's three methods. */
export function capabilitiesOf(store: SessionStore<never> | SessionStore): Readonly<StoreCapabilities> {
  const declared = (store as Partial<SnapshotStore>).capabilities;
  return declared ?? { ...FOREIGN_CAPABILITIES, watch: typeof store.onSnapshotStateChange === 'function' };
}

/** A turn of a session. `parentId` is the snapshot from which it continues. */
export interface TurnPlace extends SessionStoreOptions {
  readonly sessionId: string;
  readonly parentId?: string | undefined;
}

/** Methods of a store that changes states before it stores them, for example to replace personal data by placeholders. */
export interface ChangingStore {
  /** Returns the stored form of a saved state; the state itself if nothing was changed. Both are immutable. */
  storedState<S>(state: SessionState<S>): SessionState<S>;
  /** Returns the form of the custom state that a save of this state would store. Default: the custom state itself. */
  readonly redactCustom?: (state: SessionState, turn: TurnPlace) => Promise<unknown>;
  /**
   * Returns the request to send to the model instead of this one. Default: requests are not changed.
   */
  readonly modelRequest?: (request: GenerateRequest, session: TurnPlace) => Promise<GenerateRequest>;
  /** Returns the form of a session's text that may be stored elsewhere, for example as a memory. Default: the text itself. */
  readonly redactText?: (text: string) => Promise<string>;
}

/** Returns the methods of a {@link ChangingStore} that the store has. */
export function changesOf(store: object | undefined): Partial<ChangingStore> {
  return store ?? {};
}
