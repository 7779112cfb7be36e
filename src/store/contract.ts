/**
 * The guarantees of a session store of this package, then its methods.
 *
 * A store keeps snapshots. A snapshot of a session may name a parent, so a session is a forest, nearly always one tree. A snapshot without
 * a session has no tree: it is read by its id, and its `parentId` is data. Within the tenant that `snapshotPathPrefix({ context })` names, and for every process that shares the store's medium:
 *
 * - **Atomic.** A save is all or nothing. Of concurrent saves of one snapshot each sees the one before: 30 increments give 30.
 *   A mutator may run more than once; only its last answer counts, so it must be free of side effects that add up.
 * - **One leaf rule.** A leaf is a snapshot that no other of its session names as parent. The latest leaf is the one that was first saved
 *   last, in the store's own order of commits.
 * - **Terminal is final.** `completed`, `failed` and `aborted` never change to another status. `parentId`, `createdAt` and `sessionId` stay
 *   as first saved.
 * - **Rewrites are safe.** The state of a completed snapshot that has children never changes: a save that would change it is refused with
 *   `FAILED_PRECONDITION`. Its other members may change. Rewriting any other snapshot changes no other.
 * - **Values come back as saved**, or are refused with `INVALID_ARGUMENT` and the path, before anything is written.
 * - **Nothing is aliased.** A method returns the caller's own copy, or a frozen value if the caller asked for one.
 * - **Ids are data.** Any non-blank string of at most 1,024 characters names a snapshot, a session, an app, a user or a tenant.
 * - **Scopes.** A store with `capabilities.scopes` also keeps records of values that sessions share: at most one record for each app, and
 *   one for each user of an app. A save changes records, and `deleteScope` removes them; nothing else does. The snapshot and the records of
 *   a save are written together or not at all: if the mutator skips or throws, the leaf is not the expected one, or a change is refused,
 *   nothing is written. A change gets the current record: 30 increments from 30 sessions give 30, and changes of different keys are all
 *   kept. Each record costs a save at most one more document. Records have no history: rewriting, branching, resuming an earlier snapshot,
 *   deleting or pruning sessions does not change them. Snapshots contain no part of a record. A store without `capabilities.scopes` refuses
 *   a save with `scopes` with `FAILED_PRECONDITION`, before the mutator runs.
 * - **Session records.** A store with `capabilities.records` also keeps any number of JSON values for each session, each under a kind and a
 *   key. Only `writeRecord` changes a record; 30 increments that expect the revision they read, and try again on `ABORTED`, give 30. When a
 *   session is removed, in whatever way, so are its records; a new session of the same id has none of them, and no revision is used twice.
 *   A record may be written before the session's first snapshot. Until then it is an orphan: `prune` removes orphans that were written more
 *   than an hour ago. Writing a record changes no snapshot, no list, and no age that `prune` measures.
 * - **Errors are `GenkitError`s** whose message names the id and says what to do.
 */
import type { GenerateRequest } from 'genkit';
import type { SessionState, SessionStore, SessionStoreOptions, SnapshotMutator } from 'genkit/beta';
import type { Json } from '../json/value.ts';
import type { SessionSnapshot, SnapshotMetadata, SnapshotStatus } from '../snapshot/snapshot.ts';

export type { SessionSnapshotInput } from '../snapshot/snapshot.ts';
export type { SessionSnapshot, SessionStore, SessionStoreOptions, SnapshotMetadata, SnapshotMutator, SnapshotStatus };

/** Exactly one of the two: an exact snapshot, or the latest leaf of a session. */
export interface SnapshotLookup extends SessionStoreOptions {
  /** This very snapshot. */
  snapshotId?: string;
  /** The latest leaf of this session. */
  sessionId?: string;
  /**
   * For a caller that only reads: the store may return its own state, frozen, instead of a copy. When parts of this state are saved again,
   * the store recognizes them without comparing them. Default: `false`.
   */
  frozen?: boolean;
}

/** Facts about a session, kept beside its snapshots. */
export interface SessionDetails {
  /** The user it belongs to. Set by the session's first save, and never changed. */
  readonly ownerId?: string;
  /** The agent that answers in it. */
  readonly agent?: string;
  /** A name for people. */
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
   * The save succeeds only while the session has this snapshot, else it throws `ABORTED`. Protects a session that is deleted meanwhile from
   * being written again. Default: nothing is required. Needs `capabilities.compareLeaf`.
   */
  ifSnapshot?: string;
  /** Changes of records, made when the snapshot is saved and not otherwise; each record at most once. Needs `capabilities.scopes`. */
  scopes?: readonly ScopeChange[];
  /**
   * Facts about the snapshot's session, written in the same commit. Each member replaces the stored one, except `ownerId`, which only the
   * session's first save sets; a missing member changes nothing. Ignored for a snapshot without a session. Needs `capabilities.details`.
   */
  session?: SessionDetails;
}

/** Names a record: that of an app, or that of a user of an app. Two are the same exactly when all their members are. */
export type ScopeId =
  | {
      /** The record of everyone who uses the app. */
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

/** Values that sessions share. Any string is a key, `__proto__` too; an empty record is the same as none. */
export type ScopeRecord = { [key: string]: Json };

/** How a save changes a record. */
export interface ScopeChange {
  /** Whose record it is. */
  readonly id: ScopeId;
  /**
   * Gets its own copy of the current record, empty when there is none, and returns the new record; it may change its argument and return
   * it. `undefined` keeps the record; the save then still makes sure that the record has not changed meanwhile. Runs after the mutator,
   * maybe more than once; only its last result counts. If it throws, the save throws the same error and saves nothing.
   */
  readonly change: (record: ScopeRecord) => ScopeRecord | undefined;
}

/** A value that belongs to a session and is no snapshot, say a summary of its first turns. */
export interface SessionRecord {
  /** Which group of records it is in, say `'compaction'`; any id. */
  readonly kind: string;
  /** Its name within the kind; any id. */
  readonly key: string;
  /** Any JSON value. */
  readonly value: Json;
  /** Changes with each write; opaque. */
  readonly revision: string;
}

/** Options of {@link RecordStore.readRecords}. */
export interface ReadRecordsOptions extends SessionStoreOptions {
  /** Any id; the session need not have a snapshot yet. */
  sessionId: string;
  /** Which group of records. Default: all records of the session. */
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
   * The write succeeds only while the session has this snapshot, else it throws `ABORTED`. Protects a session that is deleted meanwhile
   * from being written again. Default: the session is not checked.
   */
  ifSnapshot?: string;
}

/** Which part of a list to answer. */
export interface PageOptions extends SessionStoreOptions {
  /** At most so many items, 1 to 1,000. Default: 100. */
  limit?: number;
  /** `nextCursor` of the page before. */
  cursor?: string | undefined;
}

/** A part of a list; there is more while it has a `nextCursor`. */
export interface Page<T> {
  /** At most `limit` of them. */
  items: T[];
  /** Pass it as `cursor` to get the next page. Opaque. Missing on the last page. */
  nextCursor?: string;
  /** What may belong in the list, but can't be read, so that it is in no page. Missing when there is nothing. */
  unreadable?: Unreadable[];
}

/** A session, or something at a place, that can't be read: it is damaged, a newer version wrote it, or the process may not open it. */
export interface Unreadable {
  /** The session. Missing when its id can't be told. */
  sessionId?: string;
  /** Where it is, below the store's directory. */
  place?: string;
}

/** Options of {@link SnapshotStore.listSessions}. */
export interface ListSessionsOptions extends PageOptions {
  /** Only the sessions of this owner. Needs `capabilities.details`. Default: all sessions of the tenant. */
  ownerId?: string;
}

/** One line about a session. */
export interface SessionSummary extends SessionDetails {
  /** Which session. */
  sessionId: string;
  /** The latest leaf. */
  leafId: string;
  /** The number of leaves; a session with more than one has branches. */
  leafCount: number;
  /** Snapshots in all, whatever their status. */
  snapshotCount: number;
  /** `createdAt` of the snapshot that was saved first. */
  createdAt: string;
  /**
   * When the session was last written: `updatedAt`, else `createdAt`, of the snapshot that was written last. Pruning is no write, and a store
   * need not count a heartbeat.
   */
  updatedAt: string;
  /** Status of the latest leaf. */
  status?: SnapshotStatus;
  /**
   * Each numeric member of its snapshots' `usage`, added up, plus the largest `summaryUsage` of a snapshot, which is already a sum over the
   * whole session. Missing when no snapshot has either.
   */
  usage?: UsageSum;
}

/** Numbers of a model's usage by name, say `inputTokens`. */
export type UsageSum = { [name: string]: number };

/**
 * What {@link SnapshotStore.prune} removes: the snapshots that any of the members names. Ages are measured by the snapshots' own times. No
 * snapshot becomes a leaf: if all children of a remaining snapshot would be removed, the child that was first saved last is kept.
 *
 * Unless its whole session goes, a leaf that is pending, failed, aborted or expired keeps the snapshot that its session continues from, the
 * nearest completed one, and those between; if none has completed, its whole path.
 */
export interface PrunePolicy {
  /** Snapshots created longer ago than this, in ms, except leaves and running ones: a leaf goes only with its session. */
  maxAgeMs?: number;
  /** Whole sessions not written for this long, in ms; a session with a running snapshot stays. */
  idleMs?: number;
  /** Snapshots that are not among the newest so many (at least 1) of any path from a leaf to its root, except running ones. */
  maxChainLength?: number;
}

/** What was removed, or with `dryRun` what would be. */
export interface PruneResult {
  /** Sessions removed whole. */
  sessions: number;
  /** Snapshots removed, those of whole sessions included. */
  snapshots: number;
  /** Shards of states that no remaining snapshot needs; 0 in stores without shards. */
  shards: number;
  /** Nothing was removed; the counts are of what would be. */
  dryRun: boolean;
}

/** What {@link SnapshotStore.deleteSession} removed; zeros when there was no such session. */
export interface DeleteResult {
  /** Snapshots removed, whatever their status. */
  snapshots: number;
  /** Shards that were removed; 0 in stores without shards. */
  shards: number;
  /** Session records removed. Missing where the store does not count them. */
  records?: number;
}

/** What {@link SnapshotStore.deleteSessions} removed. */
export interface DeleteSessionsResult extends DeleteResult {
  /** Sessions removed; those that were not there do not count. */
  sessions: number;
  /** Session records removed. */
  records: number;
}

/** What a store can do: ask this, never probe for methods. */
export interface StoreCapabilities {
  /** `onSnapshotStateChange` is there. */
  watch: boolean;
  /** Watchers are also notified of saves by other processes. */
  watchAcrossProcesses: boolean;
  /** `getSnapshotMetadata` is there. */
  metadata: boolean;
  /** `listSnapshots` and `listSessions` are there. */
  list: boolean;
  /** `deleteSession` is there. */
  delete: boolean;
  /** `prune` is there. */
  prune: boolean;
  /** `saveSnapshot` honours `expectedLeafId` and `ifSnapshot`. */
  compareLeaf: boolean;
  /** The store is a {@link ScopeStore} too, and saves take `scopes`. */
  scopes: boolean;
  /** The store is a {@link RecordStore} too. */
  records: boolean;
  /** Saves take `session`, summaries carry it, and `listSessions` takes `ownerId`. */
  details: boolean;
  /** The store is a {@link CheckStore} too. */
  check: boolean;
  /** What was saved outlives the process. */
  durable: boolean;
}

/** The capabilities of a foreign `SessionStore`: Genkit's three methods. */
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
 * A store of this package: Genkit's `SessionStore`, and what our rules add. `S` types the custom state.
 *
 * @example
 * // One more turn, unless another writer was faster.
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
  /** What it can do; the same for its whole life. */
  readonly capabilities: Readonly<StoreCapabilities>;

  /** The snapshot, or the session's latest leaf; `undefined` when there is none. */
  getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined>;

  /** As `getSnapshot`, without the state; its cost does not depend on the state's size. */
  getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined>;

  /**
   * Reads the snapshot, calls `mutator` with it, and saves the result.
   *
   * @param snapshotId The snapshot to create or rewrite. Default: the `snapshotId` of the mutator's result, else a new id.
   * @param mutator Gets the current snapshot (`undefined`: none yet); returns the new one, or `null` for no write. Its errors are thrown.
   * @returns The id of the saved snapshot; `null` when the mutator returned `null`.
   */
  saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null>;

  /**
   * Calls `callback` with the current snapshot soon after this method returns, if there is one, then once with each later status, in order.
   * Of several rewrites with the same status, `callback` may get only the last.
   *
   * @returns Ends the subscription: the callback is not called afterwards.
   */
  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void;

  /** The session's snapshots without their states, in the order in which they were first saved. */
  listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>>;

  /** The tenant's sessions, the one written last first. */
  listSessions(options?: ListSessionsOptions): Promise<Page<SessionSummary>>;

  /**
   * Removes every byte of a session.
   *
   * @param options.expectedLeafId The session goes only while this snapshot is its latest leaf, else it throws `SessionConflictError`.
   *   Default: the leaf is not looked at.
   */
  deleteSession(options: SessionStoreOptions & { sessionId: string; expectedLeafId?: string }): Promise<DeleteResult>;

  /** `deleteSession` for many, of a store that can do it with fewer requests. Optional; the sessions go in any order. */
  deleteSessions?(options: SessionStoreOptions & { sessionIds: readonly string[] }): Promise<DeleteSessionsResult>;

  /**
   * Removes what the policy names in the caller's tenant; what stays reads as before.
   *
   * @param options.sessionId Looks at this session alone. Default: at all sessions of the tenant, and at what belongs to none.
   */
  prune(
    policy: PrunePolicy,
    options?: SessionStoreOptions & { dryRun?: boolean; sessionId?: string },
  ): Promise<PruneResult>;

  /** Releases watchers, timers and everything else that the store opened; later calls are refused. May be called twice. */
  close(): Promise<void>;
}

/** What a store with `capabilities.scopes` has besides. */
export interface ScopeStore {
  /**
   * The records, in the order of `scopes`; an empty one for a record that does not exist. Each is consistent, but a save may come between
   * the reads of two records. Reads one document for each.
   */
  readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]>;

  /**
   * Removes every byte of a record, for example when a user wants to be forgotten; their sessions are removed by `deleteSession`. A save
   * that is running may create the record again.
   *
   * @returns Whether there was one.
   */
  deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean>;

  /** The names of all records of the tenant, always in the same order. */
  listScopes(options?: PageOptions): Promise<Page<ScopeId>>;
}

/** What a store with `capabilities.records` has besides. */
export interface RecordStore {
  /** The session's records, by kind and key in the order of their UTF-16 code units; the caller's own copies. */
  readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]>;

  /**
   * Creates, replaces or removes one record, atomically.
   *
   * @returns The record's new revision; `null` when it was removed.
   * @throws `ABORTED` when `expectedRevision` or `ifSnapshot` does not hold; read again, and decide anew.
   */
  writeRecord(options: WriteRecordOptions): Promise<string | null>;
}

/** Options of {@link CheckStore.check}. */
export interface CheckOptions extends SessionStoreOptions {
  /** Removes orphans that were written longer ago than `graceMs`, and nothing else. Default: `false`. */
  repair?: boolean;
  /** How old an orphan must be to be removed, in ms: a younger one may belong to a running save. Default: 3,600,000 (an hour). */
  graceMs?: number;
  /** Called after each session, with what was read so far. */
  onProgress?: (progress: CheckCounts) => void;
}

/** What a check has read. */
export interface CheckCounts {
  /** Sessions that are there. */
  sessions: number;
  /** Snapshots, each with its whole state. */
  snapshots: number;
  /** Session records. */
  records: number;
  /** Records of users and apps. */
  scopes: number;
}

/** Something that a check found. */
export interface StoreFinding {
  /**
   * `damaged`: missing or broken. `unreadable`: its key is missing, or a newer version wrote it. `orphan`: no data refers to it, no longer
   * or not yet. `expired`: past its expiry and not removed yet; or a background run whose lease has run out.
   */
  readonly kind: 'damaged' | 'unreadable' | 'orphan' | 'expired';
  /** The tenant, as `snapshotPathPrefix` names it. */
  readonly tenant: string;
  /** The session that it belongs to. Missing when there is none, or it is not known. */
  readonly sessionId?: string;
  /** The snapshot. Missing when the finding is not about a snapshot, or its id is not known. */
  readonly snapshotId?: string;
  /** The file, relative to the store's directory, or the path of the document. Missing when the finding is not about a single one. */
  readonly place?: string;
  /** What is wrong, in a sentence for an operator. */
  readonly problem: string;
  /** What to do about it. */
  readonly advice: string;
  /** It was removed. */
  readonly isRepaired: boolean;
}

/** What a check answers. */
export interface CheckResult extends CheckCounts {
  /** Empty: all is well. */
  findings: StoreFinding[];
}

/** What a store with `capabilities.check` has besides. */
export interface CheckStore {
  /**
   * Reads everything of the caller's tenant once, without caches, and reports what is damaged, an orphan, or expired. It may run while
   * agents work. It reads all data, so do not run it often.
   *
   * @throws The store's errors when it can't be reached. They say nothing about the data.
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

/** What the store can do; a foreign one has Genkit's three methods. */
export function capabilitiesOf(store: SessionStore<never> | SessionStore): Readonly<StoreCapabilities> {
  const declared = (store as Partial<SnapshotStore>).capabilities;
  return declared ?? { ...FOREIGN_CAPABILITIES, watch: typeof store.onSnapshotStateChange === 'function' };
}

/** Further methods of a store that changes states before it stores them, for example by placeholders for personal data. */
export interface ChangingStore {
  /** The stored form of a saved state; the state itself if nothing was changed. Both are immutable. */
  storedState<S>(state: SessionState<S>): SessionState<S>;
  /**
   * Returns the request that the model gets instead of this one; `parentId` is the snapshot that the turn continues from. Default: requests
   * are not changed.
   */
  readonly modelRequest?: (
    request: GenerateRequest,
    session: SessionStoreOptions & { sessionId: string; parentId?: string | undefined },
  ) => Promise<GenerateRequest>;
  /** Returns the form of a session's text that may be stored elsewhere, for example as a memory. Default: the text itself. */
  readonly redactText?: (text: string) => Promise<string>;
}

/** The methods of a {@link ChangingStore}, as far as the store has them. */
export function changesOf(store: object | undefined): Partial<ChangingStore> {
  return store ?? {};
}
