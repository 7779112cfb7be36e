import { closed, invalidArgument } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { Page, PageOptions, Unreadable } from '../contract.ts';
import { isAny, isBoolean, checkOptions, isObject, isWhole, type OptionCheck } from '../check-options.ts';
import { checkPage, encodeCursor, pageOf } from '../list/page.ts';
import { nameTenant, type SnapshotPathPrefix } from '../name-tenant.ts';
import {
  checkIds,
  checkOperations,
  checkQuery,
  checkWhole,
  type CommitOperations,
  type QueryRequest,
} from './checks.ts';
import type {
  Memory,
  MemoryChanges,
  MemoryCommitResult,
  MemoryCommitOptions,
  MemoryErasure,
  MemoryHit,
  MemoryJob,
  MemoryJobChange,
  MemoryJobHold,
  MemoryNotes,
  MemoryOperation,
  MemoryQuery,
  MemoryScopeId,
  MemoryStore,
  MemoryStoreCapabilities,
  MemoryStoreOptions,
  MemorySweep,
} from './contract.ts';
import { checkJobChange, newJob } from './jobs.ts';
import { memoryScopeKey } from './scope.ts';

type Awaitable<T> = T | Promise<T>;

/** A checked commit. */
export interface CommitRequest {
  /** The changes. */
  readonly operations: CommitOperations;
  /** The revision that the scope must have; `undefined`: any. */
  readonly expectedRevision: number | undefined;
  /** The job on whose behalf the commit is made. Without `keep` the commit removes it. */
  readonly job: MemoryJobHold | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Which part of a list a call wants. */
export interface ListRequest {
  /** The most items. */
  readonly limit: number;
  /** The place of the last item of the part before; `undefined`: from the first item on. */
  readonly after: string | undefined;
}

/** An item of a list. */
export interface ListEntry<T> {
  /** The item. */
  readonly item: T;
  /** Where it stands in the list, as a text of the store's choice, which comes back as `after`. */
  readonly place: string;
}

/** The memories that fit a query. */
export interface QueryAnswer {
  /** At most `k`. */
  readonly items: readonly MemoryHit[];
  /** If there are more, a number that stands for the last of the items. It comes back as `before`. */
  readonly last?: number | undefined;
}

/** A checked `listJobs`. */
export interface JobsRequest extends ListRequest {
  /** `undefined`: any. */
  readonly state: MemoryJob['state'] | undefined;
  /** By `memoryScopeKey`. */
  readonly scope: string | undefined;
}

/** A checked `claimJob`. */
export interface ClaimRequest {
  /** The worker. */
  readonly owner: string;
  /** Milliseconds of the lease. */
  readonly leaseMs: number;
  /** By `memoryScopeKey`; `undefined`: of any. */
  readonly scope: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * One tenant of a memory store. Scopes are named by `memoryScopeKey`, arguments arrive checked, and the store is open; the meaning of each
 * method is that of {@link MemoryStore}.
 */
export interface MemoryTenant {
  /** Memories by their ids. */
  get(scope: string, ids: readonly string[]): Awaitable<Memory[]>;
  /** The memories that fit a query. */
  query(scope: string, request: QueryRequest): Awaitable<QueryAnswer>;
  /** The scope's revision. */
  revision(scope: string): Awaitable<number>;
  /** The changes after a revision. */
  changes(scope: string, since: number): Awaitable<MemoryChanges>;
  /** Makes changes, all or none. */
  commit(scope: string, request: CommitRequest): Awaitable<MemoryCommitResult>;
  /** All versions of a memory, oldest first. */
  revisions(scope: string, id: string): Awaitable<Memory[]>;
  /** The memories that a source supports or supported. */
  bySource(scope: string, sourceId: string): Awaitable<Memory[]>;
  /**
   * Notes of a kind, in any order, with the revision at the same moment.
   *
   * @param keys Sorted and distinct. Default: all of the kind.
   */
  notes(scope: string, kind: string, keys: readonly string[] | undefined): Awaitable<MemoryNotes>;
  /** Adds a job. */
  addJob(job: MemoryJob, maxJobs: number): Awaitable<'added' | 'known' | 'full'>;
  /** Leases a job. */
  claimJob(request: ClaimRequest): Awaitable<MemoryJob | undefined>;
  /** Renews the lease of a job, gives it back, marks it as dead or removes it. */
  changeJob(id: string, change: MemoryJobChange, now: number): Awaitable<void>;
  /** Jobs, the oldest first. */
  listJobs(request: JobsRequest): Awaitable<readonly ListEntry<MemoryJob>[]>;
  /**
   * The scopes that hold anything.
   *
   * @param unreadable Gets those that can't be told.
   */
  listScopes(request: ListRequest, unreadable: Unreadable[]): Awaitable<readonly ListEntry<MemoryScopeId>[]>;
  /** Removes memories that have expired. */
  sweep(now: number): Awaitable<MemorySweep>;
  /** Removes a scope with everything in it. */
  erase(scope: string): Awaitable<MemoryErasure>;
}

const HOLD: Readonly<Record<keyof MemoryJobHold, OptionCheck>> = { id: isAny, owner: isAny, keep: isBoolean };
const COMMIT: Readonly<Record<keyof MemoryCommitOptions, OptionCheck>> = {
  context: isAny,
  expectedRevision: isWhole(0),
  job: isObject,
  now: isWhole(0),
};

/**
 * The public side of a memory store: checks the arguments of each call, finds the caller's tenant, and hands over to that tenant's
 * {@link MemoryTenant}. A store of this package extends it and writes the tenant.
 */
export abstract class BaseMemoryStore implements MemoryStore {
  abstract readonly capabilities: Readonly<MemoryStoreCapabilities>;
  readonly #name: string;
  readonly #prefix: SnapshotPathPrefix | undefined;
  #closing: Promise<void> | undefined;

  /** @param name The class as its users know it, for messages. */
  protected constructor(name: string, prefix: SnapshotPathPrefix | undefined) {
    this.#name = name;
    this.#prefix = prefix;
  }

  /** The tenant of a name; called for each call of the store. */
  protected abstract openTenant(id: string): MemoryTenant;

  /** Ends what the store opened; called once. */
  protected abstract release(): void | Promise<void>;

  tenant(options?: MemoryStoreOptions): string {
    return nameTenant(this.#prefix, options, 'pathPrefix');
  }

  async get(scope: MemoryScopeId, ids: readonly string[], options?: MemoryStoreOptions): Promise<Memory[]> {
    return this.#tenantOf(options).get(memoryScopeKey(scope), checkIds(ids, 'memory id'));
  }

  async query(scope: MemoryScopeId, query: MemoryQuery = {}): Promise<Page<MemoryHit>> {
    const request = checkQuery(query, this.capabilities.vectorDimensions);
    const { items, last } = await this.#tenantOf(query).query(memoryScopeKey(scope), request);
    return { items: [...items], ...(last !== undefined && { nextCursor: encodeCursor([last]) }) };
  }

  async revision(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<number> {
    return this.#tenantOf(options).revision(memoryScopeKey(scope));
  }

  async changes(scope: MemoryScopeId, options: MemoryStoreOptions & { since: number }): Promise<MemoryChanges> {
    const since = checkWhole(options?.since, 'since');
    return this.#tenantOf(options).changes(memoryScopeKey(scope), since);
  }

  async commit(
    scope: MemoryScopeId,
    operations: readonly MemoryOperation[],
    options: MemoryCommitOptions = {},
  ): Promise<MemoryCommitResult> {
    checkOptions('commit', options, COMMIT);
    const { expectedRevision, job, now = Date.now() } = options;
    if (job) {
      checkOptions('commit: job', job, HOLD);
      assertId(job.id, 'job id');
      assertId(job.owner, 'worker name');
    }
    return this.#tenantOf(options).commit(memoryScopeKey(scope), {
      operations: checkOperations(operations, this.capabilities.vectorDimensions),
      expectedRevision,
      job,
      now,
    });
  }

  async revisions(scope: MemoryScopeId, id: string, options?: MemoryStoreOptions): Promise<Memory[]> {
    assertId(id, 'memory id');
    return this.#tenantOf(options).revisions(memoryScopeKey(scope), id);
  }

  async bySource(scope: MemoryScopeId, sourceId: string, options?: MemoryStoreOptions): Promise<Memory[]> {
    assertId(sourceId, 'source id');
    return this.#tenantOf(options).bySource(memoryScopeKey(scope), sourceId);
  }

  async notes(
    scope: MemoryScopeId,
    kind: string,
    options: MemoryStoreOptions & { keys?: readonly string[] } = {},
  ): Promise<MemoryNotes> {
    assertId(kind, 'kind');
    const { keys } = options;
    const sorted = keys && [...new Set(checkIds(keys, 'key'))].toSorted();
    const { revision, notes } = await this.#tenantOf(options).notes(memoryScopeKey(scope), kind, sorted);
    return { revision, notes: notes.toSorted((x, y) => (x.key < y.key ? -1 : 1)) };
  }

  async addJob(
    job: Pick<MemoryJob, 'id' | 'scope' | 'input' | 'sourceId'>,
    options: MemoryStoreOptions & { maxJobs: number; now?: number },
  ): Promise<'added' | 'known' | 'full'> {
    const maxJobs = checkWhole(options?.maxJobs, 'maxJobs');
    return this.#tenantOf(options).addJob(newJob(job, checkWhole(options.now ?? Date.now(), 'now')), maxJobs);
  }

  async claimJob(
    options: MemoryStoreOptions & { owner: string; leaseMs: number; scope?: MemoryScopeId; now?: number },
  ): Promise<MemoryJob | undefined> {
    const { owner, leaseMs, scope, now = Date.now() } = options ?? {};
    assertId(owner, 'worker name');
    return this.#tenantOf(options).claimJob({
      owner,
      leaseMs: checkWhole(leaseMs, 'leaseMs', 1),
      scope: scope && memoryScopeKey(scope),
      now: checkWhole(now, 'now'),
    });
  }

  async changeJob(id: string, change: MemoryJobChange): Promise<void> {
    assertId(id, 'job id');
    checkJobChange(change);
    return this.#tenantOf(change).changeJob(id, change, checkWhole(change.now ?? Date.now(), 'now'));
  }

  async listJobs(
    options: MemoryStoreOptions & PageOptions & { state?: MemoryJob['state']; scope?: MemoryScopeId } = {},
  ): Promise<Page<MemoryJob>> {
    const { state, scope } = options;
    if (state !== undefined && !['waiting', 'running', 'dead'].includes(state)) {
      throw invalidArgument("state must be 'waiting', 'running' or 'dead'.");
    }
    const key = scope && memoryScopeKey(scope);
    return listPage('jobs', options, (part) => this.#tenantOf(options).listJobs({ state, scope: key, ...part }));
  }

  async listScopes(options: MemoryStoreOptions & PageOptions = {}): Promise<Page<MemoryScopeId>> {
    const unreadable: Unreadable[] = [];
    const page = await listPage('scopes', options, (part) => this.#tenantOf(options).listScopes(part, unreadable));
    return unreadable.length > 0 ? { ...page, unreadable } : page;
  }

  async sweep(options: MemoryStoreOptions & { now?: number } = {}): Promise<MemorySweep> {
    return this.#tenantOf(options).sweep(checkWhole(options.now ?? Date.now(), 'now'));
  }

  async erase(scope: MemoryScopeId, options?: MemoryStoreOptions): Promise<MemoryErasure> {
    return this.#tenantOf(options).erase(memoryScopeKey(scope));
  }

  close(): Promise<void> {
    this.#closing ??= (async () => this.release())();
    return this.#closing;
  }

  #tenantOf(options: MemoryStoreOptions | undefined): MemoryTenant {
    if (this.#closing) throw closed(this.#name);
    return this.openTenant(this.tenant(options));
  }
}

/** Asks a tenant for one item more than a page has, to see whether there are more. */
async function listPage<T>(
  of: 'jobs' | 'scopes',
  options: PageOptions,
  list: (part: ListRequest) => Awaitable<readonly ListEntry<T>[]>,
): Promise<Page<T>> {
  const { limit, after } = checkPage(options, ['string', 'string']);
  if (after && after[0] !== of) throw invalidArgument('This cursor is of another list.');
  const entries = await list({ limit: limit + 1, after: after?.[1] });
  return pageOf(entries, limit, ({ item, place }) => ({ item, position: [of, place] }));
}
