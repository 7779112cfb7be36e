import { randomUUID } from 'node:crypto';
import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { closed, failedPrecondition, invalidArgument, logWarning, notFound, quote, unavailable } from '../errors.ts';
import type { Json } from '../json/value.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isFunction,
  isListOf,
  isObject,
  isString,
  isText,
  isWhole,
  type OptionCheck,
} from '../store/check-options.ts';
import type { Page, PageOptions, SnapshotStore, Unreadable } from '../store/contract.ts';
import { itemsOf, UnreadableItems } from '../store/list/items-of.ts';
import type { Memory, MemoryErasure, MemoryJob, MemoryScopeId } from '../store/memory/contract.ts';
import { LruCache } from '../store/parts/lru-cache.ts';
import { Attachment } from './attach/attach.ts';
import { readSession, sourceOfSession } from './pipeline/ingest/read-session.ts';
import type { AttachedMemory, AttachOptions } from './attach/types.ts';
import { backfillSessions, type BackfillOptions, type BackfillResult } from './backfill.ts';
import { evaluateExtraction } from './evaluate.ts';
import { evaluateTasks, type TaskEvaluation, type TaskScores } from './evaluate-tasks.ts';
import { noteOutcome, removeMemory, restoreMemory } from './pipeline/commit/change-memory.ts';
import { readDerived } from './pipeline/commit/derived-notes.ts';
import { listAllJobs } from './pipeline/records/list-all.ts';
import { vectorsOf } from './pipeline/ask-model.ts';
import { readConsent, writeConsent } from './pipeline/records/learning-state.ts';
import { approveText, discardText, waitingTexts } from './rights/review.ts';
import { checkIngest } from './pipeline/ingest/check-ingest.ts';
import { addJobs, type Enqueued, type IngestWhile } from './pipeline/ingest/ingest.ts';
import { markAsRead, rangesOf, withoutLearned, type MemorySessions } from './pipeline/ingest/mark-as-read.ts';
import { managedJobsOf, type ManagedJobs } from './pipeline/jobs/process-jobs.ts';
import { MemoryWorker } from './pipeline/jobs/worker.ts';
import { checkCall, type Generates, type Pipeline } from './pipeline/pipeline.ts';
import { discardJob } from './pipeline/jobs/discard-job.ts';
import { exportScope, exportWaiting } from './rights/export.ts';
import { SourceRemoval, waitingSources, type ForgottenSource } from './rights/forget.ts';
import { checkPolicy, pruneScope, type PrunedMemories } from './rights/prune.ts';
import { memoryScope, scopeFor, targetOf, tenantKeyOf, type MemoryScope } from './scopes.ts';
import { SYSTEM_CLOCK } from './search/deadline.ts';
import { MemorySearch } from './search/memory-search.ts';
import type { MemorySearchRequest, MemorySearchResult } from './search/types.ts';
import { settleManager } from './settings.ts';
import type {
  ExtractionScores,
  GoldenCase,
  IngestOptions,
  IngestResult,
  MemoryExportLine,
  MemoryFact,
  MemoryManagerOptions,
  MemoryPrunePolicy,
  QuarantinedText,
} from './types.ts';
import { userOf } from '../session/owner.ts';
import { holdsAt } from '../store/memory/version.ts';
import { withinTime } from '../store/parts/within-time.ts';

/** The number of known memories with which a text is compared. */
const NEAREST = 10;
/** The search index of a scope is saved when at least this many memories have changed. */
const LEAST_SAVED = 20;
/** The most scopes for which a process keeps the uses of memories until a commit writes them. */
const MOST_USED_SCOPES = 10_000;
/** The most idle sessions that a process remembers as read or enqueued. It does not read these again until they change. */
const MOST_KNOWN_SESSIONS = 10_000;

/** Less than the 10 seconds that Cloud Run leaves an instance after SIGTERM. */
const CLOSE_MS = 8_000;

/** Options of a call for one scope. */
export interface ScopeOption {
  /** The scope of the call. */
  scope: MemoryScope;
}

/**
 * Memory across sessions: extracts memories from messages, compares them with the known ones, and searches them.
 *
 * Made by {@link memoryManager}. Methods throw `INVALID_ARGUMENT` if `scope` is not a memory scope, and the store's errors; `search`
 * reports the store's errors in its result instead.
 */
export class MemoryManager {
  /** The store with the memories. */
  readonly store: Pipeline['store'];
  readonly #pipeline: Pipeline;
  readonly #worker: MemoryWorker;
  readonly #search: MemorySearch;
  /** The stores of the agents with this memory, and their sessions. */
  readonly #places = { stores: new Set<SnapshotStore>(), sessions: new Set<MemorySessions>() };
  /** Tracked until the worker is awake, because some callers do not await the result. */
  readonly #ingest: IngestWhile = (options, isThere) => {
    const ingesting = async () => {
      const result = await this.#enqueue(options, isThere);
      return this.#workOn(options.scope, result, options.wait ?? false);
    };
    return this.#worker.track(ingesting());
  };
  readonly #jobs: ManagedJobs;
  readonly #uses = new LruCache<Map<string, string>>(MOST_USED_SCOPES);
  #refused = 0;

  /** @internal */
  constructor(ai: Generates, options: MemoryManagerOptions) {
    if (typeof (ai as Partial<Generates> | undefined)?.registry !== 'object')
      throw invalidArgument('memoryManager needs the Genkit instance as its first argument.');
    const settings = settleManager(options);
    this.store = settings.store;
    this.#pipeline = {
      ...settings,
      ai,
      nearest: (scope, text, request) => this.#nearest(scope, text, request, 'compare'),
      usesOf: (scope) => this.#usesOf(scope),
      saveIndex: (scope) => this.#saveIndex(scope),
      countRefusal: () => ++this.#refused,
    };
    this.#search = new MemorySearch(this.store, options.search, {
      ...(options.embedder !== undefined && {
        embed: async (query, signal) => (await vectorsOf(this.#pipeline, [query], signal))![0]!,
      }),
      clock: { ...SYSTEM_CLOCK, now: this.#pipeline.now },
    });
    this.#worker = new MemoryWorker(this.#pipeline);
    const known = new LruCache<true>(MOST_KNOWN_SESSIONS);
    this.#jobs = {
      sessions: this.#places.sessions,
      onIdleMs: settings.triggers.onIdleMs,
      backfill: (of) => this.#backfill(of, (...one) => this.#worker.track(this.#enqueue(...one)), known),
      worker: this.#worker,
    };
    for (const holder of [ai.registry, this]) managedJobsOf(holder).add(this.#jobs);
  }

  /**
   * Returns a scope for an authenticated context: the scope of its user, of one of its sessions, or of the app.
   *
   * @param options.context The context that the server authenticated; it also names the tenant.
   * @param options.appName Default: `appName` of the manager.
   * @param options.sessionId For `session`: a session that the caller may read.
   * @throws `UNAUTHENTICATED` if `kind` is `user` and the context names no user.
   */
  scopeFor(
    kind: MemoryScopeId['scope'],
    options: { context: ActionContext | undefined; appName?: string; sessionId?: string },
  ): MemoryScope {
    checkOptions('scopeFor', options, { context: isAny, appName: isAny, sessionId: isAny });
    if (options === undefined) throw invalidArgument(`scopeFor needs the context: scopeFor('${kind}', { context }).`);
    const { context, appName = this.#pipeline.appName, sessionId } = options;
    const named = kind === 'user' ? this.#pipeline.userIdOf(context ?? {}) : undefined;
    const userId = userOf(context, named) as string | undefined;
    return scopeFor(kind, { context, appName, userId, sessionId });
  }

  /**
   * Learns from messages, or stores facts. Pass all messages of a source each time: messages that were read before are skipped.
   *
   * @returns When the jobs are stored; with `wait`, when they are done.
   * @throws `INVALID_ARGUMENT` for invalid messages or facts; `FAILED_PRECONDITION` for the scope of an app without `app: true`, and for a
   *   `sessionId` if no agent with a store has this memory; `NOT_FOUND` if the scope does not have the session.
   */
  async ingest(options: IngestOptions): Promise<IngestResult> {
    if (options?.sessionId === undefined) return this.#ingest(options);
    this.#checkIngest(options);
    const { sessionId, ...others } = options;
    const { scope } = others;
    if (this.#places.stores.size === 0)
      throw failedPrecondition(
        'ingest can read a session only if an agent with this memory has a store that lists sessions.',
      );
    const read = async () => {
      for (const store of this.#places.stores) {
        const session = await readSession(store, scope, sessionId);
        if (session) return session;
      }
      return undefined;
    };
    const session = await read();
    if (!session) throw notFound(`There is no session ${quote(sessionId)}.`);
    const source = { ...sourceOfSession(session), ...others.source, sessionId };
    return this.#ingest({ ...others, source, messages: session.messages }, async () => (await read()) !== undefined);
  }

  async #enqueue(options: IngestOptions, isThere?: () => Promise<boolean>): Promise<Enqueued> {
    this.#checkIngest(options);
    return addJobs(this.#pipeline, options, isThere);
  }

  #checkIngest(options: IngestOptions): void {
    this.#assertOpen();
    checkIngest(options, this.#pipeline);
  }

  /**
   * Stores a fact that the user or the application states outside of a conversation.
   *
   * @param options.source Default: type `explicit` with a new id, so that a repeated fact counts as another source. A given source without
   *   a type is `bootstrap`.
   * @param options.wait Whether to resolve only when the fact is stored. Default: true.
   */
  async create(
    options: ScopeOption & { memory: MemoryFact | string; source?: IngestOptions['source']; wait?: boolean },
  ): Promise<IngestResult> {
    checkCall('create', options, { memory: isFact, source: isAny, wait: isBoolean }, ['memory']);
    const { scope, memory, source, wait = true } = options;
    const id = `created:${randomUUID()}`;
    return this.ingest({ scope, source: source ?? { id, type: 'explicit' }, memories: [memory], wait });
  }

  /**
   * Finds the memories of a scope that fit a query best. Returns them with their scores and a report about the search.
   *
   * @throws `INVALID_ARGUMENT` for an invalid request; the reason of `abortSignal` if it aborts.
   */
  async search(request: MemorySearchRequest): Promise<MemorySearchResult> {
    if (request?.scope === undefined) throw invalidArgument('search needs a scope: search({ scope, query }).');
    const { id, options } = targetOf(request.scope);
    return this.#search.search({ ...request, scope: id }, options);
  }

  /**
   * Lists the valid memories of a scope, the last changed first.
   *
   * @param options.includeInvalid Includes memories that were replaced or have expired. Default: false.
   * @param options.limit The most memories of a page, 1 to 1,000. Default: 100.
   * @param options.cursor `nextCursor` of the previous page. Default: the first page.
   */
  async list(
    options: ScopeOption & { includeInvalid?: boolean; limit?: number; cursor?: string | undefined },
  ): Promise<Page<Memory>> {
    const checks = { includeInvalid: isBoolean, limit: isWhole(1, 1000), cursor: isString };
    const { id, options: tenant } = checkCall('list', options, checks);
    const { includeInvalid = false, limit = 100, cursor } = options;
    const page = await this.store.query(id, { ...tenant, filter: { includeInvalid }, k: limit, cursor });
    // The store has its own clock.
    const memories = page.items.map(({ memory }) => memory);
    return { ...page, items: memories.filter((one) => includeInvalid || holdsAt(one, this.#pipeline.now())) };
  }

  /**
   * Removes one memory and its revisions permanently: the messages from which it was learned are not read again. A memory that it replaced
   * does not become valid again. Also removes the profile and the summary, because they may contain the same fact; the profile is made
   * again with the next facts.
   *
   * @throws `NOT_FOUND` if the memory does not exist.
   */
  async remove(options: ScopeOption & { id: string }): Promise<void> {
    await removeMemory(this.#pipeline, checkCall('remove', options, { id: isText }, ['id']), options.id);
  }

  /**
   * Notes that memories were placed in a request or returned by `load_memory`. The next jobs of the scope store this together with their
   * results, as a revision of the memory in which only `lastUsedAt` is new. A use within 24 hours of the memory's last revision is not
   * stored.
   *
   * @throws `INVALID_ARGUMENT` if `ids` is not a list of ids.
   */
  noteUse(scope: MemoryScope, ids: readonly string[]): void {
    const expected = isListOf(isText, 'ids of memories')(ids);
    if (expected !== undefined) throw invalidArgument(`noteUse takes ${expected}.`);
    const uses = this.#usesOf(scope);
    const at = new Date(this.#pipeline.now()).toISOString();
    for (const id of ids) uses.set(id, at);
  }

  /** Returns the structured profile; `undefined` if the scope has none. One read. */
  async profile(options: ScopeOption): Promise<Json | undefined> {
    return (await readDerived(this.#pipeline, checkCall('profile', options))).profile;
  }

  /** Returns the rolling summary; `undefined` if the scope has none. One read. */
  async summary(options: ScopeOption): Promise<string | undefined> {
    return (await readDerived(this.#pipeline, checkCall('summary', options))).summary;
  }

  /**
   * Counts a success or a failure of a procedure, and adapts its confidence. The counts remain when more is learned about the procedure.
   * Each session from which the procedure was learned counts as one more success.
   *
   * @throws `NOT_FOUND` if the memory does not exist; `FAILED_PRECONDITION` if it is not a procedure.
   */
  async noteOutcome(options: ScopeOption & { id: string; isSuccess: boolean }): Promise<void> {
    const target = checkCall('noteOutcome', options, { id: isAny, isSuccess: isBoolean }, ['id', 'isSuccess']);
    await noteOutcome(this.#pipeline, target, options.id, options.isSuccess);
  }

  /**
   * Makes a replaced memory valid again, with the confidence that its sources give. The memory that replaced it becomes invalid. Also
   * removes the profile and the summary; the profile is made again with the next facts.
   *
   * A fact without a `key` that was replaced has `validTo`, and can be restored. A fact with a `key` gets a new revision instead, so it
   * stays valid: `asOf` and `revisions` return the old revision. To restore it, create the earlier fact again.
   *
   * @throws `NOT_FOUND` if the memory does not exist; `FAILED_PRECONDITION` if it is valid.
   */
  async restore(options: ScopeOption & { id: string }): Promise<void> {
    await restoreMemory(this.#pipeline, checkCall('restore', options, { id: isAny }, ['id']), options.id);
  }

  /** The consent of a scope: whether the manager may learn about it. A change keeps earlier memories; `erase` removes them. */
  readonly consent = {
    /**
     * Stores the consent, until `erase`. While it is `off`, a worker drops the jobs that it takes from the queue. `on` after `off` marks
     * all existing messages of the scope's sessions as read, so that messages from the time without consent are not learned later; only a
     * procedure still reads the whole session. Call it in a process that has the agents, because it reads their sessions.
     */
    set: async (scope: MemoryScope, consent: 'on' | 'off'): Promise<void> => {
      const target = targetOf(scope);
      const isBack = consent === 'on' && (await readConsent(this.#pipeline, target)) === 'off';
      if (isBack) await markAsRead(this.#pipeline, target, await rangesOf(target, this.#places));
      await writeConsent(this.#pipeline, target, consent);
    },
    /** Returns the stored consent of the scope; without one, the manager's option `consent`. */
    get: async (scope: MemoryScope): Promise<'on' | 'off'> =>
      (await readConsent(this.#pipeline, targetOf(scope))) ?? this.#pipeline.consent,
  };

  /** Texts that wait for a decision: a guard stopped them, they would replace too many memories, or all users of an app would read them. */
  readonly quarantine = {
    /** The texts that wait for a decision. */
    list: async (options: ScopeOption): Promise<QuarantinedText[]> =>
      waitingTexts(this.#pipeline, checkCall('quarantine.list', options)),
    /**
     * Accepts a text: stores the memory, or learns from the message. The built-in rules and the guards do not check the text again. If the
     * scope's consent is off, the status is `refused`, and the text stays in quarantine. With `worker: false` the status is `queued`,
     * because the process of an inspector or a command should not run the application's jobs.
     *
     * @throws `NOT_FOUND` if the text does not wait for a decision.
     */
    approve: async (options: ScopeOption & { id: string }): Promise<IngestResult> => {
      const target = checkCall('quarantine.approve', options, { id: isText }, ['id']);
      const result = await this.#worker.track(approveText(this.#pipeline, target, options.id));
      return this.#workOn(target.scope, result, this.#pipeline.worker);
    },
    /** Removes a text permanently. */
    discard: async (options: ScopeOption & { id: string }): Promise<void> =>
      discardText(this.#pipeline, checkCall('quarantine.discard', options, { id: isText }, ['id']), options.id),
  };

  /** Makes a memory of an app visible to its users: the same as `quarantine.approve`. */
  approve(options: ScopeOption & { id: string }): Promise<IngestResult> {
    return this.quarantine.approve(options);
  }

  /** The queue. */
  readonly jobs = {
    /** Lists the jobs of the tenant, oldest first. */
    list: async (
      options: { context?: ActionContext; state?: MemoryJob['state']; scope?: MemoryScope } = {},
    ): Promise<MemoryJob[]> => {
      checkOptions('jobs.list', options, { context: isObject, state: isAny, scope: isAny });
      checkNamed('jobs.list', options, 'scope', 'for all scopes of the tenant');
      const { context, state, scope } = options;
      const { id, options: tenant } = scope === undefined ? { id: undefined, options: { context } } : targetOf(scope);
      return listAllJobs(this.#pipeline, { ...tenant, state, scope: id });
    },
    /** Tries a dead job again, with the full number of attempts. */
    replay: async (id: string, options: { context?: ActionContext } = {}): Promise<void> => {
      checkOptions('jobs.replay', options, { context: isObject });
      const now = this.#pipeline.now();
      await this.store.changeJob(id, { ...options, owner: undefined, to: 'waiting', attempts: 0, now });
      this.#worker.wake(options);
    },
    /**
     * Removes a dead job. Its messages count as read, so nothing is learned from them later; its facts can be passed to `ingest` again.
     *
     * @throws `NOT_FOUND` if there is no dead job with this id; `ABORTED` if another process tries its facts, or an approved text, again.
     */
    discard: async (id: string, options: { context?: ActionContext } = {}): Promise<void> => {
      checkOptions('jobs.discard', options, { context: isObject });
      await discardJob(this.#pipeline, id, options);
    },
  };

  /**
   * Removes a source's statements from memories, revisions, jobs, quarantine, indexes and vectors, and removes the profile and the summary.
   * Memories that have other sources are made again from the statements of those. The messages of the source count as read, so they are not
   * learned again; if the source is a session of an agent of this process, this includes messages that were not read yet. With
   * `snapshotIds` only statements from these snapshots are removed, for example of an abandoned branch. A statement names the last snapshot
   * of the turns that were learned together: with `everyTurns: 5` the fifth, even for turns that several branches share. A session states a
   * fact only once, so the fact is also removed if another branch repeats it.
   *
   * @throws `UNAVAILABLE` if a worker of another process still reads the source; call it again.
   */
  async forgetSource(
    options: ScopeOption & { source: string; snapshotIds?: readonly string[] },
  ): Promise<ForgottenSource> {
    const target = checkCall('forgetSource', options, { source: isText, snapshotIds: isListOf(isString, 'ids') }, [
      'source',
    ]);
    checkNamed('forgetSource', options, 'snapshotIds', 'for the whole source');
    const { source, snapshotIds } = options;
    if (snapshotIds === undefined) {
      const sessions = await rangesOf(target, this.#places, { sessionId: source });
      await markAsRead(this.#pipeline, target, sessions, withoutLearned);
    }
    return new SourceRemoval(this.#pipeline, target, { sourceId: source, snapshotIds }, this.#worker).run();
  }

  /**
   * Removes the jobs and the quarantined texts of these sources. Their messages count as read; memories stay. `eraseUser` calls it for app
   * scopes, whose memories all users share.
   *
   * @throws `UNAVAILABLE` if a worker of another process still reads a source; call it again.
   */
  async eraseWaiting(options: ScopeOption & { sources: readonly string[] }): Promise<void> {
    const target = checkCall('eraseWaiting', options, { sources: isListOf(isString, 'ids') }, ['sources']);
    const waiting = await waitingSources(this.#pipeline, target);
    for (const sourceId of options.sources.filter((source) => waiting.has(source)))
      await new SourceRemoval(this.#pipeline, target, { sourceId }, this.#worker).runWaiting();
  }

  /**
   * Removes memories by age, confidence, use and number; also removes expired memories, and quarantined texts by age.
   *
   * @param policy A memory is removed if any member of the policy applies to it.
   * @param options.scope Default: all scopes of the tenant of `context`.
   * @returns The number of removed memories and texts; with `dryRun`, the number that would be removed.
   */
  async prune(
    policy: MemoryPrunePolicy,
    options: { scope?: MemoryScope; context?: ActionContext; dryRun?: boolean } = {},
  ): Promise<PrunedMemories> {
    checkPolicy(policy);
    checkOptions('prune', options, { scope: isAny, context: isObject, dryRun: isBoolean });
    checkNamed('prune', options, 'scope', 'for all scopes of the tenant');
    const { scope, context, dryRun = false } = options;
    if (scope !== undefined) return pruneScope(this.#pipeline, targetOf(scope), policy, dryRun);
    const pruned: PrunedMemories = { memories: 0, quarantined: 0 };
    const unreadable = new UnreadableItems();
    for await (const id of this.#scopeIds(context, unreadable)) {
      const place = `the memories of ${JSON.stringify(id)}`;
      const pruning = pruneScope(this.#pipeline, targetOf(memoryScope(id, context)), policy, dryRun);
      const { memories = 0, quarantined = 0 } = (await unreadable.read({ place }, pruning)) ?? {};
      pruned.memories += memories;
      pruned.quarantined += quarantined;
    }
    if (!dryRun) pruned.memories += (await this.store.sweep({ context, now: this.#pipeline.now() })).removed;
    return unreadable.all.length > 0 ? { ...pruned, unreadable: unreadable.all } : pruned;
  }

  /**
   * Lists the scopes of a tenant that have data, in all apps. Only for a backend, because it lists the scopes of all users. `memoryScopeId`
   * returns the id of a scope.
   *
   * @param options.filter Returns true for the scopes to list.
   * @param options.context Names the tenant. Default: none.
   * @param options.onUnreadable Called with the data that can't be read, whose scope is therefore unknown. Optional.
   */
  async listScopes(options: {
    filter: (scope: MemoryScopeId) => boolean;
    context?: ActionContext | undefined;
    onUnreadable?: (found: Unreadable[]) => void;
  }): Promise<MemoryScope[]> {
    checkOptions('listScopes', options, { filter: isFunction, context: isObject, onUnreadable: isFunction });
    if (options?.filter === undefined) throw invalidArgument('listScopes needs a filter: listScopes({ filter }).');
    const { filter, context, onUnreadable } = options;
    const scopes: MemoryScope[] = [];
    const unreadable = new UnreadableItems();
    for await (const id of this.#scopeIds(context, unreadable)) {
      const isWanted: unknown = filter(id);
      // A promise would count as true, and `erase` of the listed scopes would remove those of all users.
      if (typeof isWanted !== 'boolean')
        throw invalidArgument('listScopes: filter must return true or false, not a promise.');
      if (isWanted) scopes.push(memoryScope(id, context));
    }
    onUnreadable?.(unreadable.all);
    return scopes;
  }

  /**
   * Exports all data of a scope, line by line. A memory that changes during the export has another line: a later line of an id replaces the
   * earlier one.
   */
  export(options: ScopeOption): AsyncGenerator<MemoryExportLine> {
    return exportScope(this.#pipeline, checkCall('export', options));
  }

  /** Exports the jobs and the quarantined texts of these sources, line by line. `exportUser` calls it for app scopes. */
  exportWaiting(options: ScopeOption & { sources: readonly string[] }): AsyncGenerator<MemoryExportLine> {
    const target = checkCall('exportWaiting', options, { sources: isListOf(isString, 'ids') }, ['sources']);
    const sources = new Set(options.sources);
    return exportWaiting(this.#pipeline, target, (sourceId) => sources.has(sourceId));
  }

  /**
   * Removes all data of a scope, including its consent. Running jobs write nothing more. Marks all existing messages of the scope's
   * sessions as read, so that they are not learned again. Call it in a process that has the agents, because it reads their sessions.
   *
   * @throws The error of a session that could not be read. All data is removed by then, but the messages of that session may be learned
   *   again.
   */
  async erase(options: ScopeOption): Promise<MemoryErasure> {
    const target = checkCall('erase', options);
    this.#uses.delete(tenantKeyOf(this.store, target.scope));
    // Reads the sessions first, to make it unlikely that a turn which ends during the erasure learns the erased data again.
    const errors: unknown[] = [];
    const sessions = await rangesOf(target, this.#places, { onError: (error) => errors.push(error) });
    const erasure = await this.store.erase(target.id, target.options);
    await markAsRead(this.#pipeline, target, sessions);
    if (errors.length > 0) throw errors[0];
    return erasure;
  }

  /**
   * Learns from the sessions of a session store, the last written one first. After an interruption call it again: it skips messages that
   * were read.
   *
   * @throws The session store's errors from listing its sessions; `FAILED_PRECONDITION` if the manager can't learn from messages, or is
   *   closed before or during the backfill; `INVALID_ARGUMENT` if `scopeOf` returns something other than a scope or `undefined`.
   */
  async backfill(options: BackfillOptions): Promise<BackfillResult> {
    this.#assertOpen();
    return this.#backfill(options, this.#ingest);
  }

  #backfill(options: BackfillOptions, ingest: IngestWhile, known?: LruCache<true>): Promise<BackfillResult> {
    const { store } = this;
    return backfillSessions({ store, check: (of) => this.#checkIngest(of), ingest, known }, options);
  }

  /**
   * Measures the extraction on conversations with known memories. Redacts them as `ingest` does, and stores nothing. A case without a
   * result (the model fails, or its answer stays malformed) is scored as if nothing was found, and is listed in `failed` of the result.
   *
   * @param options.isSame Whether two texts mean the same. Default: they are equal, apart from the case of the first letter, white space,
   *   "the", the form of quotes, and full stops and exclamation marks at the end.
   */
  evaluate(options: {
    cases: readonly GoldenCase[];
    isSame?: (extracted: string, expected: string) => boolean | Promise<boolean>;
  }): Promise<ExtractionScores> {
    return evaluateExtraction(this.#pipeline, options);
  }

  /**
   * Measures how often an agent with this memory solves a task: learns from the task's sessions, asks the question, and lets a Genkit
   * evaluator judge the answer. Each task has its own user, `evaluation-` and a UUID, whose memories are erased afterwards.
   *
   * @throws `INVALID_ARGUMENT` for invalid options, and for an evaluator that is not defined; `FAILED_PRECONDITION` if no task has a
   *   result.
   */
  async evaluateTasks(options: TaskEvaluation): Promise<TaskScores> {
    return evaluateTasks(this, this.#pipeline.ai, options);
  }

  /** Resolves when the work of this process has ended: it enqueues nothing, runs no job and saves no index. */
  async settled(): Promise<void> {
    await this.#worker.settled();
  }

  /**
   * Stops the worker. Running jobs go back to the queue; the interrupted attempts do not count. The store stays open. Waits at most 8
   * seconds for the running work, in case a store or a function of the application does not answer.
   */
  async close(): Promise<void> {
    for (const holder of [this.#pipeline.ai.registry, this]) managedJobsOf(holder).delete(this.#jobs);
    await withinTime('The memory worker', CLOSE_MS, undefined, () => this.#worker.close()).catch(() => {
      logger.warn(
        'The memory manager was closed, but some of its work still runs, because a store or a function does not answer.',
      );
    });
  }

  /**
   * Returns a memory for agents: `defineAgent(ai, { ..., memory: memory.attach({ scope: 'user' }) })`. It places memories that fit a turn
   * in the turn's requests, and learns from sessions in the background, at the times that the option `generate` sets.
   *
   * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
   */
  attach(options: AttachOptions = {}): AttachedMemory {
    this.#assertOpen();
    const parts = {
      pipeline: this.#pipeline,
      findByWords: (scope: MemoryScope, text: string, abortSignal: AbortSignal) =>
        this.#nearest(scope, text, { abortSignal }, 'words'),
      ingest: this.#ingest,
      isClosed: () => this.#worker.isClosed,
      ...this.#places,
    };
    return new Attachment(this, parts, options);
  }

  #scopeIds(context: ActionContext | undefined, unreadable: UnreadableItems): AsyncGenerator<MemoryScopeId> {
    return itemsOf((page: PageOptions) => this.store.listScopes(page), { context, limit: 1000 }, unreadable);
  }

  async #workOn(scope: MemoryScope, { openIds, ...result }: Enqueued, wait: boolean): Promise<IngestResult> {
    const { options } = targetOf(scope);
    if (!wait || openIds.length === 0) {
      // A full queue may contain jobs whose worker has died.
      if (openIds.length > 0 || result.status === 'full') this.#worker.wake(options);
      return result;
    }
    const end = await this.#worker.workOff(scope, openIds);
    if (end === 'queued') {
      this.#worker.wake(options);
      return result;
    }
    if (result.status === 'full' || (result.status === 'known' && end === 'done')) return result;
    return { ...result, status: end === 'done' ? 'committed' : end };
  }

  /**
   * Finds the known memories that are nearest to a text. Fails if the search is incomplete, because a job would create a missed memory a
   * second time.
   */
  async #nearest(
    scope: MemoryScope,
    text: string,
    request: { kind?: Memory['kind']; abortSignal: AbortSignal },
    purpose: 'compare' | 'words',
  ): Promise<Memory[]> {
    const { id, options } = targetOf(scope);
    const { timeoutMs: deadlineMs } = this.#pipeline.limits;
    const wanted = { scope: id, query: text, k: NEAREST, ...request, deadlineMs };
    const { memories, report } = await this.#search.search(wanted, options, purpose);
    const isWhole = report.lexical === 'done' && (report.semantic === 'done' || report.semantic === 'off');
    if (!isWhole)
      throw unavailable(
        `The known memories could not be searched: ${report.errors.join(' ') || 'the search took too long.'}`,
      );
    return memories.map(({ memory }) => memory);
  }

  /** Saves the search index in the background, so that another process does not have to read the whole scope. */
  #saveIndex(scope: MemoryScope): void {
    const { id, options } = targetOf(scope);
    const saving = this.#search.saveIndex(id, options, LEAST_SAVED).catch((error: unknown) => {
      logWarning('The search index of a memory scope could not be saved; other processes build it again.', error);
    });
    void this.#worker.track(saving);
  }

  #usesOf(scope: MemoryScope): Map<string, string> {
    const key = tenantKeyOf(this.store, scope);
    const known = this.#uses.get(key);
    if (known) return known;
    const uses = new Map<string, string>();
    this.#uses.set(key, uses, 1);
    return uses;
  }

  #assertOpen(): void {
    if (this.#worker.isClosed) throw closed('memory manager');
  }
}

/** `ingest` checks the members of a fact. */
const isFact: OptionCheck = (value) =>
  (typeof value === 'string' ? isText(value) : isObject(value)) &&
  'a text that is not blank, or a fact such as { text }';

/** Refuses an option that is set to `undefined`, because without the option the call removes or reads more. */
function checkNamed<O extends object>(method: string, options: O, name: keyof O & string, without: string): void {
  if (name in options && options[name] === undefined)
    throw invalidArgument(`${method}: ${name} is undefined. Omit it ${without}.`);
}

/**
 * Long-term memory for the agents of a Genkit instance.
 *
 * @param ai The `Genkit` instance, with the model and the embedder.
 * @throws `INVALID_ARGUMENT` for an invalid option.
 * @example
 * const memory = memoryManager(ai, { store: new InMemoryMemoryStore(), model: 'googleai/gemini-2.5-flash' });
 * const scope = memory.scopeFor('user', { context: { auth: { uid: 'ada' } } });
 * await memory.create({ scope, memory: 'The user prefers a window seat.' });
 * const { memories } = await memory.search({ scope, query: 'Which seat?' });
 */
export function memoryManager(ai: Generates, options: MemoryManagerOptions): MemoryManager {
  return new MemoryManager(ai, options);
}
