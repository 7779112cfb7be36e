/**
 * The guarantees of a memory store, then its methods.
 *
 * A store keeps memories: facts that were learned about someone or something, across sessions. Each memory belongs to a **scope**: a user,
 * a session or an app. Within the tenant that `pathPrefix({ context })` names, and for every process that shares the store's medium:
 *
 * - **Isolated by path.** A call sees one scope. Scopes are equal exactly if all their members are equal; ids are data, never paths or
 *   patterns.
 * - **Atomic.** A commit is all or nothing. A commit raises the scope's revision, unless it has no operations or only writes derived notes.
 *   If the scope does not have the revision that a commit expects, the commit is refused with `ABORTED`: 50 increments that read, commit
 *   and try again on `ABORTED` give 50.
 * - **Once.** A commit with a `job` succeeds only while that worker holds the job, and removes the job in the same write, unless `keep` is
 *   set.
 * - **The past stays.** Earlier versions of a memory are kept as revisions, which `asOf` reads, until the memory is removed.
 * - **Removed is gone.** After `remove`, `erase`, or the removal of a job, no byte of the data is on the medium: revisions, vectors and
 *   derived notes are removed in the same write. A store that can't do this in one write does it before the call returns, and finishes it
 *   after a crash.
 * - **Nothing is aliased, values come back as saved.** As in a session store.
 */
import type { ActionContext } from 'genkit';
import type { Json } from '../../json/value.ts';
import type { Page, PageOptions } from '../contract.ts';

/** The scope of memories: a user, a session, or all users of an app. Two ids name the same scope exactly if all their members are equal. */
export type MemoryScopeId =
  | {
      /** Memories about a user. */
      readonly scope: 'user';
      /** The application. Users of different applications are different users. */
      readonly appName: string;
      /** The user. */
      readonly userId: string;
    }
  | {
      /** Memories of a session. */
      readonly scope: 'session';
      /** The application. */
      readonly appName: string;
      /** The session. */
      readonly sessionId: string;
    }
  | {
      /** Memories that all users of the app share. */
      readonly scope: 'app';
      /** The application. */
      readonly appName: string;
    };

/** Where a memory comes from. */
export interface MemorySource {
  /** Names the source: a session, a document, an import. Pass it to `forgetSource` to forget the source. */
  readonly id: string;
  /**
   * `bootstrap`: known to the application before; `explicit`: the user asked to remember it; `implicit`: said in passing; `tool`: the
   * output of a tool.
   */
  readonly type: 'bootstrap' | 'explicit' | 'implicit' | 'tool';
  /** The trust in the source, 0 to 1. */
  readonly trust: number;
  /**
   * The source's statement, in the words of the memory. If other sources are forgotten, the memory is made again from the remaining
   * statements.
   */
  readonly statement: string;
  /** The source's data, for a memory with `data`. */
  readonly data?: Json;
  /** Labels of the topics that this source gave the memory. */
  readonly topics?: readonly string[];
  /** The session in which it was said. */
  readonly sessionId?: string;
  /** The snapshot whose messages were read. */
  readonly snapshotId?: string;
  /** The first message, by its index in the session. */
  readonly from?: number;
  /** The index of the message after the last one. */
  readonly to?: number;
  /**
   * SHA-256 in hex. For messages: the hash of the session up to the last message that was read with them. For facts: the hash of the facts.
   * For an approved message: the hash of that message.
   */
  readonly sha256: string;
  /** When it was said; ISO 8601. */
  readonly at: string;
}

/** A learned fact or procedure, as plain JSON that any framework can read. */
export interface Memory {
  /** Identifies the memory within its scope. */
  readonly id: string;
  /** The scope to which the memory belongs. */
  readonly scope: MemoryScopeId;
  /** `declarative`: a fact; `procedural`: a way to do something. */
  readonly kind: 'declarative' | 'procedural';
  /** The fact in the third person: "The user prefers a window seat". For a memory with `data`, the same content in words. */
  readonly text: string;
  /** The fact in the shape of the topic's schema. */
  readonly data?: Json;
  /** Names the schema of `data`. */
  readonly schemaId?: string;
  /** Labels of its topics. */
  readonly topics: readonly string[];
  /** 0 to 1. */
  readonly importance: number;
  /** 0 to 1. Rises if sources agree, and falls with contradictions. */
  readonly confidence: number;
  /** When it became valid; ISO 8601. */
  readonly validFrom: string;
  /** When it became invalid; ISO 8601. `undefined`: it is valid. */
  readonly validTo?: string;
  /** The memory that replaced it. */
  readonly supersededBy?: string;
  /** 1 at first, increased by 1 with each change; set by the store. */
  readonly revision: number;
  /** ISO 8601; set by the store from the commit's `now`. */
  readonly createdAt: string;
  /** ISO 8601; set by the store from the commit's `now`. */
  readonly updatedAt: string;
  /** When it was last placed in a request. A manager does not store a use within 24 hours of the last revision. */
  readonly lastUsedAt?: string;
  /** When it is to be removed. `undefined`: never. */
  readonly expiresAt?: string;
  /** The sources, oldest first; at least one. */
  readonly sources: readonly MemorySource[];
  /** Further members of JSON come back as they were saved, say `approvedAt` of an app's memory, `successes` of a
   * procedure, or the `role` of a message that was kept word for word. */
  readonly [member: string]: unknown;
}

/**
 * A memory without the members that the store sets: scope, revision and times. If a draft has these members, they are ignored. At most 256
 * KiB as JSON.
 */
export interface MemoryDraft extends Pick<
  Memory,
  | 'id'
  | 'kind'
  | 'text'
  | 'data'
  | 'schemaId'
  | 'topics'
  | 'importance'
  | 'confidence'
  | 'validFrom'
  | 'validTo'
  | 'supersededBy'
  | 'lastUsedAt'
  | 'expiresAt'
  | 'sources'
> {
  readonly [member: string]: unknown;
}

/** Other data of a scope: a profile, a summary, consent, quarantined texts, the read messages of a source. */
export interface MemoryNote {
  /** The group of the note. Notes whose kind begins with `index` are derived from memories: a `remove` in the scope drops them. */
  readonly kind: string;
  /** Its name within the kind; any id. */
  readonly key: string;
  /** Any JSON value of at most 512 KiB. */
  readonly value: Json;
}

/** One change of a commit. */
export type MemoryOperation = PutMemory | RemoveMemory | WriteMemoryNote;

/** Creates or replaces a memory. The earlier version is kept as a revision. */
export interface PutMemory {
  /** Says what the operation does. */
  readonly op: 'put';
  /** The new memory. */
  readonly memory: MemoryDraft;
  /**
   * The embedding of the memory, stored with 32 bits for each number. Default: its current embedding if the text is unchanged, else none.
   */
  readonly vector?: readonly number[];
}

/**
 * Removes a memory with its revisions and vector, and the scope's notes of kinds that begin with `index`. If the same commit also puts the
 * memory, the memory restarts with revision 1.
 */
export interface RemoveMemory {
  /** Says what the operation does. */
  readonly op: 'remove';
  /** The id of the memory. The memory does not have to exist. */
  readonly id: string;
}

/** Writes a note, or removes it. */
export interface WriteMemoryNote {
  /** Says what the operation does. */
  readonly op: 'note';
  /** Its kind. */
  readonly kind: string;
  /** Its name within the kind. */
  readonly key: string;
  /** The new value; `undefined` removes the note. */
  readonly value: Json | undefined;
}

/** Options of every method. */
export interface MemoryStoreOptions {
  /** Names the tenant, as in a session store. */
  context?: ActionContext;
}

/** A job, and the worker that holds it. */
export interface MemoryJobHold {
  /** The job. */
  readonly id: string;
  /** The worker. */
  readonly owner: string;
  /** Whether to keep the job, because more commits follow. Default: false; the commit removes the job. */
  readonly keep?: boolean;
}

/** Options of {@link MemoryStore.commit}. */
export interface MemoryCommitOptions extends MemoryStoreOptions {
  /** Succeeds only while the scope has this revision, else throws `ABORTED`. Default: not checked. */
  expectedRevision?: number;
  /** Succeeds only while this worker holds this job of the scope, else throws `ABORTED`. Default: not checked. */
  job?: MemoryJobHold;
  /** Milliseconds since 1970. Default: the clock of this process. */
  now?: number;
}

/** Selects memories of a scope. */
export interface MemoryQuery extends MemoryStoreOptions {
  /**
   * Finds the memories nearest to this embedding, by cosine; only memories whose embedding has the same number of dimensions. Default: last
   * updated first.
   */
  vector?: readonly number[];
  /**
   * Only memories that meet all conditions. Default: all valid memories, whose `validTo` and `expiresAt` are later than now or than `asOf`.
   */
  filter?: MemoryFilter;
  /** Reads the scope as it was at this time (ISO 8601): each memory in its last revision at that time. Default: as it is now. */
  asOf?: string;
  /** The most items of a page, 1 to 1,000. Default: 100. */
  k?: number;
  /** `nextCursor` of the previous page; not with `vector`. */
  cursor?: string | undefined;
}

/** Conditions of a {@link MemoryQuery}. */
export interface MemoryFilter {
  /** Only memories of this kind. */
  kind?: Memory['kind'];
  /** Only memories with at least one of these topics. */
  topics?: readonly string[];
  /** Includes memories that are no longer valid. Default: `false`. */
  includeInvalid?: boolean;
}

/** A memory that a query found. */
export interface MemoryHit {
  /** The memory now, or at `asOf`. */
  readonly memory: Memory;
  /** Cosine, −1 to 1; only with a `vector`. */
  readonly similarity?: number;
}

/** The changes in a scope after a revision. */
export interface MemoryChanges {
  /** The scope's revision at the time of the read. Pass it as `since` next time. */
  readonly revision: number;
  /**
   * Memories whose content (text, data, schemaId, topics, kind, validFrom, validTo, supersededBy, expiresAt) or vector changed after
   * `since`, in the order of their changes. Includes memories that are no longer valid.
   */
  readonly changed: readonly Memory[];
  /** Whether memories were removed since then. If so, `changed` contains all memories: rebuild all data that is derived from the scope. */
  readonly isReset: boolean;
}

/** Messages or facts from which a worker will learn. */
export interface MemoryJob {
  /** Chosen by the caller of `addJob`. The same work must have the same id. */
  readonly id: string;
  /** The scope that gets the memories. */
  readonly scope: MemoryScopeId;
  /** `waiting` for its time or a worker, `running` under a lease, `dead` after its last attempt. */
  readonly state: 'waiting' | 'running' | 'dead';
  /** The work: JSON of at most 512 KiB. */
  readonly input: Json;
  /** `MemorySource.id` of the source that the job reads. */
  readonly sourceId: string;
  /** How often a worker took the job. */
  readonly attempts: number;
  /** ISO 8601. */
  readonly createdAt: string;
  /** No worker takes the job before this time; ISO 8601. */
  readonly dueAt: string;
  /** The worker that holds the job. */
  readonly owner?: string;
  /** When its lease ends; ISO 8601. */
  readonly leaseUntil?: string;
  /** Why the last attempt failed. */
  readonly error?: string;
}

/** A change of a job, usually by the worker that holds it. */
export interface MemoryJobChange extends MemoryStoreOptions {
  /**
   * The worker that makes the change. The change fails with `ABORTED` unless this worker holds the job; its lease may have expired if no
   * other worker took the job. `undefined`: the change fails while a worker holds the job under a valid lease.
   */
  owner: string | undefined;
  /**
   * `renew`: extends the lease; `waiting`: another attempt at `dueAt`; `dead`: no further attempt; `remove`: removes every byte of the job.
   */
  to: 'renew' | 'waiting' | 'dead' | 'remove';
  /** The length of the new lease, in ms; with `renew`. */
  leaseMs?: number;
  /** ISO 8601; with `waiting`. Default: now. */
  dueAt?: string;
  /** The new value of `attempts`: a worker that stops subtracts its own attempt. Default: unchanged. */
  attempts?: number;
  /** Why the attempt failed. */
  error?: string;
  /** Milliseconds since 1970. Default: the clock of this process. */
  now?: number;
}

/** The counts of removed data. */
export interface MemoryErasure {
  /** Memories, including those that were no longer valid. */
  memories: number;
  /** Earlier versions of memories. */
  revisions: number;
  /** Notes of all kinds. */
  notes: number;
  /** Jobs in any state. */
  jobs: number;
}

/** The result of a commit. */
export interface MemoryCommitResult {
  /** The scope's revision. */
  revision: number;
}

/** Notes of a scope, read at one moment. */
export interface MemoryNotes {
  /** The scope's revision at that moment. */
  revision: number;
  /** Sorted by key, in UTF-16 code unit order. */
  notes: MemoryNote[];
}

/** The result of a sweep. */
export interface MemorySweep {
  /** The number of removed memories. */
  removed: number;
}

/** The features of a store beyond the contract. */
export interface MemoryStoreCapabilities {
  /** Whether processes on the same medium see each other's commits and jobs. */
  readonly shared: boolean;
  /** The most dimensions of a vector for `commit` and `query`. `0`: the store does not support vectors. */
  readonly vectorDimensions: number;
}

/** Keeps memories. `docs/memory-store.md` says what every method guarantees. */
export interface MemoryStore {
  /** The features of this store. */
  readonly capabilities: Readonly<MemoryStoreCapabilities>;

  /**
   * Returns the name of a call's tenant. Two contexts see the same scopes exactly if their names are equal. Use the name in cache keys.
   *
   * @throws `INVALID_ARGUMENT` if the context names no tenant. All methods do this.
   */
  tenant(options?: MemoryStoreOptions): string;

  /** Returns the memories with these ids (at most 100), in the order of the ids. Ids without a memory are skipped. */
  get(scope: MemoryScopeId, ids: readonly string[], options?: MemoryStoreOptions): Promise<Memory[]>;

  /** Finds the memories for a query. */
  query(scope: MemoryScopeId, query?: MemoryQuery): Promise<Page<MemoryHit>>;

  /** Returns the scope's revision, `0` before its first commit. Reads at most one small document. */
  revision(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<number>;

  /** Returns the changes after the revision `since` (`0`: all memories). Reads only the changes, not the whole scope. */
  changes(scope: MemoryScopeId, options: MemoryStoreOptions & { since: number }): Promise<MemoryChanges>;

  /**
   * Makes up to 100 changes of different memories and notes in one write, at most 2 MiB as JSON. Returns the scope's revision, which stays
   * the same if the commit has no operations, or only derived notes (kinds that begin with `index`).
   */
  commit(
    scope: MemoryScopeId,
    operations: readonly MemoryOperation[],
    options?: MemoryCommitOptions,
  ): Promise<MemoryCommitResult>;

  /** Returns all versions of a memory, oldest first. */
  revisions(scope: MemoryScopeId, id: string, options?: MemoryStoreOptions): Promise<Memory[]>;

  /** Returns the memories that have this source now or in a revision. Includes memories that are no longer valid. */
  bySource(scope: MemoryScopeId, sourceId: string, options?: MemoryStoreOptions): Promise<Memory[]>;

  /** Returns the notes of a kind with these keys, or all notes of the kind, with the scope's revision at the same moment. */
  notes(
    scope: MemoryScopeId,
    kind: string,
    options?: MemoryStoreOptions & { keys?: readonly string[] },
  ): Promise<MemoryNotes>;

  /**
   * Adds a job. Returns `known` if a job with this id exists in any state; it is not changed. Returns `full` if the tenant already has
   * `maxJobs` jobs that are not dead.
   */
  addJob(
    job: Pick<MemoryJob, 'id' | 'scope' | 'input' | 'sourceId'>,
    options: MemoryStoreOptions & { maxJobs: number; now?: number },
  ): Promise<'added' | 'known' | 'full'>;

  /**
   * Leases a job, and raises its `attempts`. Candidates are the first job of each scope, if it is due or its lease has expired: a later job
   * of a scope waits for the earlier jobs. Takes the candidate that has been due longest.
   *
   * @throws `FAILED_PRECONDITION` or `DATA_LOSS` if the first job of `scope` can't be read. Without `scope`, such a scope is skipped and
   *   logged.
   */
  claimJob(
    options: MemoryStoreOptions & { owner: string; leaseMs: number; scope?: MemoryScopeId; now?: number },
  ): Promise<MemoryJob | undefined>;

  /**
   * Renews the lease of a job, gives it back, marks it as dead or removes it. If the job does not exist, throws `ABORTED` with an owner,
   * else `NOT_FOUND`.
   */
  changeJob(id: string, change: MemoryJobChange): Promise<void>;

  /** Lists the jobs of the tenant, oldest first. Skips jobs that can't be read; with `scope` these are an error. */
  listJobs(options?: PageOptions & { state?: MemoryJob['state']; scope?: MemoryScopeId }): Promise<Page<MemoryJob>>;

  /** Lists the scopes of the tenant that were written and not erased since, and the scopes that have jobs. The store chooses the order. */
  listScopes(options?: PageOptions): Promise<Page<MemoryScopeId>>;

  /** Removes memories whose `expiresAt` has passed, in all scopes of the tenant, and the remaining data of interrupted removals. */
  sweep(options?: MemoryStoreOptions & { now?: number }): Promise<MemorySweep>;

  /** Removes all data of a scope, including its jobs. Raises its revision, so that a commit that expects an older revision fails. */
  erase(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<MemoryErasure>;

  /** Releases everything that the store opened itself. */
  close(): Promise<void>;
}
