/**
 * The guarantees of a memory store, then its methods.
 *
 * A store keeps memories: what was learned about someone or something, across sessions. Memories lie in **scopes**: those of a user, of a
 * session, of an app. Within the tenant that `pathPrefix({ context })` names, and for every process that shares the store's medium:
 *
 * - **Isolated by path.** A call sees one scope. Scopes are equal exactly when all their members are; ids are data, never paths or patterns.
 * - **Atomic.** A commit is all or nothing. A commit raises the scope's revision, unless it has no operations or writes derived notes only.
 *   A commit that expects another revision is refused with `ABORTED`: 50 increments that read, commit and try again on `ABORTED` give 50.
 * - **Once.** A commit with a `job` succeeds only while that worker holds the job, and removes the job in the same write, unless the job is to
 *   be kept.
 * - **The past stays.** Earlier versions of a memory are kept as revisions, which `asOf` reads, until the memory is removed.
 * - **Removed is gone.** After `remove`, `erase`, or the removal of a job, no byte of it is on the medium: revisions, vectors and derived
 *   notes go in the same write. A store that can't do this in one write does it before the call returns, and finishes it after a crash.
 * - **Nothing is aliased, values come back as saved.** As in a session store.
 */
import type { ActionContext } from 'genkit';
import type { Json } from '../../json/value.ts';
import type { Page, PageOptions } from '../contract.ts';

/** The scope of memories: a user, a session, or all users of an app. Ids are the same scope exactly when all members are equal. */
export type MemoryScopeId =
  | {
      /** What is known about a user. */
      readonly scope: 'user';
      /** The application: users of two applications have nothing in common. */
      readonly appName: string;
      /** The user. */
      readonly userId: string;
    }
  | {
      /** What is known within a session. */
      readonly scope: 'session';
      /** The application. */
      readonly appName: string;
      /** The session. */
      readonly sessionId: string;
    }
  | {
      /** What everybody may know. */
      readonly scope: 'app';
      /** The application. */
      readonly appName: string;
    };

/** Where a memory comes from. */
export interface MemorySource {
  /** Names the source: a session, a document, an import. `forgetSource` takes it. */
  readonly id: string;
  /**
   * `bootstrap`: known to the application before; `explicit`: the user asked to remember it; `implicit`: said in passing; `tool`: the
   * output of a tool.
   */
  readonly type: 'bootstrap' | 'explicit' | 'implicit' | 'tool';
  /** 0 to 1: how far to trust it. */
  readonly trust: number;
  /** What this source says, in the words of the memory. When other sources are forgotten, the memory is made again from these statements. */
  readonly statement: string;
  /** What this source says, for a memory with `data`. */
  readonly data?: Json;
  /** Labels of the topics that this source gave the memory. */
  readonly topics?: readonly string[];
  /** The session it was said in. */
  readonly sessionId?: string;
  /** The snapshot whose messages were read. */
  readonly snapshotId?: string;
  /** The first message, by its index in the session. */
  readonly from?: number;
  /** Index of the message after the last one. */
  readonly to?: number;
  /**
   * SHA-256 in hex. For messages: of the session up to the last one that was read with them. For facts: of the facts. For a message that was
   * approved: of that message.
   */
  readonly sha256: string;
  /** When it was said; ISO 8601. */
  readonly at: string;
}

/** Something that was learned: plain JSON that any framework can read. */
export interface Memory {
  /** Names it within its scope. */
  readonly id: string;
  /** Whose it is. */
  readonly scope: MemoryScopeId;
  /** A fact, or a way to do something. */
  readonly kind: 'declarative' | 'procedural';
  /** Describes it, in the third person: "The user prefers a window seat". Of a memory with `data`: the same in words. */
  readonly text: string;
  /** The fact in the shape of the topic's schema. */
  readonly data?: Json;
  /** Names that schema. */
  readonly schemaId?: string;
  /** Labels of its topics. */
  readonly topics: readonly string[];
  /** 0 to 1. */
  readonly importance: number;
  /** 0 to 1. Rises when sources agree, falls with contradiction. */
  readonly confidence: number;
  /** When it began to hold; ISO 8601. */
  readonly validFrom: string;
  /** When it ceased to hold. `undefined`: it holds. */
  readonly validTo?: string;
  /** The memory that replaced it. */
  readonly supersededBy?: string;
  /** 1 at first, one more with each change; set by the store. */
  readonly revision: number;
  /** ISO 8601; set by the store from the commit's `now`. */
  readonly createdAt: string;
  /** ISO 8601; set by the store from the commit's `now`. */
  readonly updatedAt: string;
  /** When it was last placed in a request. A manager does not write a use within 24 hours of the last revision. */
  readonly lastUsedAt?: string;
  /** When it is to be removed. `undefined`: never. */
  readonly expiresAt?: string;
  /** Where it comes from, oldest first; at least one. */
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

/** Other data of a scope: a profile, a summary, consent, quarantined texts, how far a source was read. */
export interface MemoryNote {
  /** Which group of notes it is in. Kinds that begin with `index` are derived from memories: a `remove` in the scope drops them. */
  readonly kind: string;
  /** Its name within the kind; any id. */
  readonly key: string;
  /** Any JSON value of at most 512 KiB. */
  readonly value: Json;
}

/** One change of a commit. */
export type MemoryOperation = PutMemory | RemoveMemory | WriteMemoryNote;

/** Creates or replaces a memory. The replaced version is kept as a revision. */
export interface PutMemory {
  /** Says what the operation does. */
  readonly op: 'put';
  /** What the memory becomes. */
  readonly memory: MemoryDraft;
  /** Its embedding, kept with 32 bits a number. Default: the one it has, if its text is unchanged, else none. */
  readonly vector?: readonly number[];
}

/**
 * Removes a memory with its revisions and vector, and the scope's notes of kinds that begin with `index`. If the same commit puts the memory, it
 * begins anew, with revision 1.
 */
export interface RemoveMemory {
  /** Says what the operation does. */
  readonly op: 'remove';
  /** The memory; it may be gone already. */
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
  /** What it becomes; `undefined` removes it. */
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
  /** The job stays as it is: more commits follow. Default: the commit removes it. */
  readonly keep?: boolean;
}

/** Options of {@link MemoryStore.commit}. */
export interface MemoryCommitOptions extends MemoryStoreOptions {
  /** Succeeds only while the scope has this revision, else throws `ABORTED`. Default: it is not looked at. */
  expectedRevision?: number;
  /** Succeeds only while this worker holds this job of the scope, else throws `ABORTED`. Default: none. */
  job?: MemoryJobHold;
  /** Milliseconds since 1970. Default: the clock of this process. */
  now?: number;
}

/** Selects memories of a scope. */
export interface MemoryQuery extends MemoryStoreOptions {
  /** Finds the memories nearest to this embedding, by cosine; only those with as many dimensions. Default: last updated first. */
  vector?: readonly number[];
  /**
   * Only memories that meet all conditions. Default: all valid ones, whose `validTo` and `expiresAt` are later than now, or than `asOf`.
   */
  filter?: MemoryFilter;
  /** Reads the scope as it was at this time (ISO 8601): each memory in its last revision by then. Default: as it is now. */
  asOf?: string;
  /** The most items of a page, 1 to 1,000. Default: 100. */
  k?: number;
  /** `nextCursor` of the page before; not with `vector`. */
  cursor?: string | undefined;
}

/** Conditions of a {@link MemoryQuery}. */
export interface MemoryFilter {
  /** Only of this kind. */
  kind?: Memory['kind'];
  /** Only with at least one of these topics. */
  topics?: readonly string[];
  /** Also memories that are no longer valid. Default: `false`. */
  includeInvalid?: boolean;
}

/** A memory that a query found. */
export interface MemoryHit {
  /** As it is, or was at `asOf`. */
  readonly memory: Memory;
  /** Cosine, −1 to 1; only with a `vector`. */
  readonly similarity?: number;
}

/** What is new in a scope. */
export interface MemoryChanges {
  /** The scope's revision when it was read; pass it as `since` next time. */
  readonly revision: number;
  /**
   * Memories whose content (text, data, schemaId, topics, kind, validFrom, validTo, supersededBy, expiresAt) or vector changed after
   * `since`, in the order of their changes. Includes memories that are no longer valid.
   */
  readonly changed: readonly Memory[];
  /** `true`: memories were removed since then, so rebuild everything derived from the scope; `changed` then holds all memories. */
  readonly isReset: boolean;
}

/** Messages to be learned from, waiting for a worker. */
export interface MemoryJob {
  /** Chosen by the caller of `addJob`. The same work must have the same id. */
  readonly id: string;
  /** Where its memories go. */
  readonly scope: MemoryScopeId;
  /** `waiting` for its time or a worker, `running` under a lease, `dead` after its last attempt. */
  readonly state: 'waiting' | 'running' | 'dead';
  /** What to do: JSON of at most 512 KiB. */
  readonly input: Json;
  /** `MemorySource.id` of what it reads. */
  readonly sourceId: string;
  /** How often a worker took it. */
  readonly attempts: number;
  /** ISO 8601. */
  readonly createdAt: string;
  /** No worker takes it before this time; ISO 8601. */
  readonly dueAt: string;
  /** The worker that holds it. */
  readonly owner?: string;
  /** When its lease ends; ISO 8601. */
  readonly leaseUntil?: string;
  /** Why the last attempt failed. */
  readonly error?: string;
}

/** A change of a job, usually by the worker that holds it. */
export interface MemoryJobChange extends MemoryStoreOptions {
  /**
   * The worker. The change fails with `ABORTED` unless this worker holds the job; its lease may have run out, if no other worker took the
   * job. `undefined`: the change fails while a worker holds the job under a valid lease.
   */
  owner: string | undefined;
  /** `renew`: the lease goes on; `waiting`: another attempt at `dueAt`; `dead`: no further one; `remove`: every byte of it goes. */
  to: 'renew' | 'waiting' | 'dead' | 'remove';
  /** Milliseconds of the new lease; with `renew`. */
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

/** Counts of what was removed. */
export interface MemoryErasure {
  /** Memories, those that did not hold any more included. */
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

/** Notes of a scope as of one moment. */
export interface MemoryNotes {
  /** The scope's revision then. */
  revision: number;
  /** By key, in the order of UTF-16 code units. */
  notes: MemoryNote[];
}

/** The result of a sweep. */
export interface MemorySweep {
  /** How many memories it removed. */
  removed: number;
}

/** What a store can do beyond the contract. */
export interface MemoryStoreCapabilities {
  /** Processes on its medium see each other's commits and jobs. */
  readonly shared: boolean;
  /** The most dimensions of a vector that `commit` and `query` take. `0`: it keeps no vectors. */
  readonly vectorDimensions: number;
}

/** Keeps memories. `docs/memory-store.md` says what every method guarantees. */
export interface MemoryStore {
  /** What this store can do. */
  readonly capabilities: Readonly<MemoryStoreCapabilities>;

  /**
   * Names the tenant of a call: two contexts see the same scopes exactly when the names are equal. Use it in the keys of caches.
   *
   * @throws `INVALID_ARGUMENT` when the context names none, as every method does.
   */
  tenant(options?: MemoryStoreOptions): string;

  /** The memories with these ids (at most 100), in their order; those that are not there are left out. */
  get(scope: MemoryScopeId, ids: readonly string[], options?: MemoryStoreOptions): Promise<Memory[]>;

  /** What fits a query. */
  query(scope: MemoryScopeId, query?: MemoryQuery): Promise<Page<MemoryHit>>;

  /** The scope's revision, `0` before its first commit; one read of one small document at most. */
  revision(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<number>;

  /** What changed after the revision `since` (`0`: everything there is). Reads what changed, not the scope. */
  changes(scope: MemoryScopeId, options: MemoryStoreOptions & { since: number }): Promise<MemoryChanges>;

  /**
   * Makes up to 100 changes at once, of different memories and notes, at most 2 MiB as JSON. Returns the scope's revision, which stays the
   * same if the commit has no operations, or only derived notes (kinds that begin with `index`).
   */
  commit(
    scope: MemoryScopeId,
    operations: readonly MemoryOperation[],
    options?: MemoryCommitOptions,
  ): Promise<MemoryCommitResult>;

  /** All versions of a memory, oldest first. */
  revisions(scope: MemoryScopeId, id: string, options?: MemoryStoreOptions): Promise<Memory[]>;

  /** The memories, those that no longer hold included, that this source supports now or in a revision. */
  bySource(scope: MemoryScopeId, sourceId: string, options?: MemoryStoreOptions): Promise<Memory[]>;

  /** Notes of a kind by key, or all of the kind; together with the scope's revision, as of one moment. */
  notes(
    scope: MemoryScopeId,
    kind: string,
    options?: MemoryStoreOptions & { keys?: readonly string[] },
  ): Promise<MemoryNotes>;

  /**
   * Adds a job. `known`: a job of this id exists, in any state, and is not changed. `full`: the tenant already has `maxJobs` jobs that are
   * not dead.
   */
  addJob(
    job: Pick<MemoryJob, 'id' | 'scope' | 'input' | 'sourceId'>,
    options: MemoryStoreOptions & { maxJobs: number; now?: number },
  ): Promise<'added' | 'known' | 'full'>;

  /**
   * Leases a job, and raises its `attempts`. Candidates are the first job of each scope, if it is due or its lease has run out: a later job
   * of a scope waits for the earlier ones. Of several candidates, takes the one that has been due longest.
   *
   * @throws `FAILED_PRECONDITION` or `DATA_LOSS` when the first job of `scope` can't be read; without `scope` such a scope is passed over and logged.
   */
  claimJob(
    options: MemoryStoreOptions & { owner: string; leaseMs: number; scope?: MemoryScopeId; now?: number },
  ): Promise<MemoryJob | undefined>;

  /** Renews the lease of a job, gives it back, marks it as dead or removes it. For a job that does not exist it throws `ABORTED` for an owner, else `NOT_FOUND`. */
  changeJob(id: string, change: MemoryJobChange): Promise<void>;

  /** Jobs of the tenant, oldest first. Those that can't be read are left out; with `scope` they are an error. */
  listJobs(options?: PageOptions & { state?: MemoryJob['state']; scope?: MemoryScopeId }): Promise<Page<MemoryJob>>;

  /** The scopes of the tenant that were written to and not erased since, and those that have jobs; in an order of the store's own. */
  listScopes(options?: PageOptions): Promise<Page<MemoryScopeId>>;

  /** Removes memories whose `expiresAt` has passed, in all scopes of the tenant, and what an interrupted removal left. */
  sweep(options?: MemoryStoreOptions & { now?: number }): Promise<MemorySweep>;

  /** Removes a scope with everything in it, its jobs too. Raises its revision, so that a commit that expects an older one fails. */
  erase(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<MemoryErasure>;

  /** Ends what the store opened itself. */
  close(): Promise<void>;
}
