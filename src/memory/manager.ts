import type { ActionContext, MessageData } from 'genkit';
import { logger } from 'genkit/logging';
import {
  closed,
  describeThrown,
  failedPrecondition,
  invalidArgument,
  notFound,
  quote,
  unavailable,
} from '../errors.ts';
import type { Json } from '../json/value.ts';
import { checkOptions, isBoolean, isWhole, type OptionCheck } from '../store/check-options.ts';
import type {
  Memory,
  MemoryDraft,
  MemoryErasure,
  MemoryJob,
  MemoryOperation,
  MemoryScopeId,
} from '../store/memory/contract.ts';
import { memoryScopeKey } from '../store/memory/scope.ts';
import type { SnapshotStore } from '../store/contract.ts';
import { Attachment } from './attach/attach.ts';
import { readSession } from './attach/read-session.ts';
import type { AttachedMemory, AttachOptions } from './attach/types.ts';
import { backfillSessions, type BackfillOptions, type BackfillResult } from './backfill.ts';
import { evaluateExtraction } from './evaluate.ts';
import { noteManager, noteSessions, type MemorySessions } from './pipeline/jobs/process-jobs.ts';
import { MemoryWorker } from './pipeline/jobs/worker.ts';
import { holding } from './pipeline/consolidate/working-memories.ts';
import { readOrganized } from './pipeline/commit/organize.ts';
import { modelAsker, withinTime, type AskModel, type Generates } from './pipeline/extract/ask-model.ts';
import { readGate } from './pipeline/guard/gate.ts';
import { quarantinedOf, quarantineNote, type Quarantined } from './pipeline/guard/quarantine.ts';
import {
  addJobs,
  assertAppAllowed,
  enqueue,
  type Enqueued,
  type IngestWhile,
  type Redact,
} from './pipeline/ingest/ingest.ts';
import { shortHash } from './pipeline/ingest/ranges.ts';
import { sha256Of, type JobInput } from './pipeline/jobs/job-input.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline, type ScopeWork } from './pipeline/pipeline.ts';
import { exportScope } from './rights/export.ts';
import { forget, type ForgottenSource } from './rights/forget.ts';
import { pruneScope } from './rights/prune.ts';
import { mint, scopeFor, targetOf, type MemoryScope } from './scopes.ts';
import { SYSTEM_CLOCK } from './search/deadline.ts';
import { MemorySearch } from './search/memory-search.ts';
import type { MemorySearchRequest, MemorySearchResult } from './search/types.ts';
import { settleManager, type ManagerSettings } from './settings.ts';
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

/** Uses of memories that a process keeps until a commit writes them. */
const MOST_USES = 10_000;

/** Whose call it is. */
export interface ScopeOption {
  /** Whose memories. */
  scope: MemoryScope;
}

/** What `prune` removed, or would remove. */
export interface PrunedMemories {
  /** Memories, those that did not hold any more included. */
  memories: number;
}

/**
 * Keeps what is learned across sessions: extracts it from messages, compares it with what is known, and finds it again.
 *
 * Made by {@link memoryManager}. Every method that takes a `scope` throws `INVALID_ARGUMENT` for anything that is not one, and the store's errors.
 */
export class MemoryManager {
  /** The store that it was made with. */
  readonly store: Pipeline['store'];
  /** @internal */
  readonly settings: ManagerSettings;
  readonly #pipeline: Pipeline;
  readonly #worker: MemoryWorker;
  readonly #search: MemorySearch;
  /** Of agents with this memory. */
  readonly #stores = new Set<SnapshotStore>();
  readonly #ingestWhile: IngestWhile = (...of) => this.#ingest(...of);
  readonly #saving = new Set<Promise<unknown>>();
  readonly #redact: Redact | undefined;
  readonly #isSuccess: MemoryManagerOptions['isSuccess'];
  readonly #uses = new Map<string, Map<string, string>>();
  #refused = 0;
  #isClosed = false;

  /** @internal */
  readonly registry: Generates['registry'];

  /** @internal */
  constructor(ai: Generates, options: MemoryManagerOptions) {
    const { appName, userIdOf, triggers, app, hasWorker, ...settled } = settleManager(options);
    this.settings = { appName, userIdOf, triggers, app, hasWorker };
    this.store = settled.store;
    const { redact } = options;
    this.#isSuccess = options.isSuccess;
    this.#redact =
      redact &&
      (async (text) => {
        const answer = await redact(text);
        return typeof answer === 'string' ? answer : answer.value;
      });
    this.#pipeline = {
      ...settled,
      ai,
      nearest: (scope, text, request) => this.#nearest(scope, text, request),
      usesOf: (scope) => this.#usesOf(scope),
      changed: (scope) => this.#saveIndex(scope),
    };
    this.#search = new MemorySearch(this.store, {
      ...options.search,
      ...(options.embedder !== undefined && { embed: (query, signal) => this.#embed(query, signal) }),
      clock: { ...SYSTEM_CLOCK, now: this.#pipeline.now },
    });
    this.#worker = new MemoryWorker(this.#pipeline);
    this.registry = ai.registry;
    noteManager(ai.registry, this);
  }

  /**
   * The scope of an authenticated context: of its user, of one of its sessions, of the app.
   *
   * @param options.context The context that the server authenticated; it also names the tenant.
   * @param options.appName Default: `appName` of the manager.
   * @param options.sessionId For `session`: a session that the caller may read.
   * @throws `UNAUTHENTICATED` for `user` when the context names no user.
   */
  scopeFor(
    kind: MemoryScopeId['scope'],
    options: { context: ActionContext | undefined; appName?: string; sessionId?: string },
  ): MemoryScope {
    const { context, appName = this.settings.appName, sessionId } = options;
    const userId = kind === 'user' ? this.settings.userIdOf(context ?? {}) : undefined;
    return scopeFor(kind, { context, appName, userId, ...(sessionId !== undefined && { sessionId }) });
  }

  /**
   * Learns from messages, or keeps facts. What was read of a source already is not read again: pass all its messages each time.
   *
   * @returns As soon as the work is stored; with `wait` when it is done.
   * @throws `INVALID_ARGUMENT` for messages or facts that are none; `FAILED_PRECONDITION` for the scope of an app without `app: true`, and for
   *   a session when no agent with a store has this memory; `NOT_FOUND` when the scope has no such session.
   */
  async ingest(options: IngestOptions): Promise<IngestResult> {
    return options.sessionId === undefined ? this.#ingest(options) : this.#ingestSession(options, options.sessionId);
  }

  async #ingestSession(options: IngestOptions, sessionId: string): Promise<IngestResult> {
    const { scope, memories } = options;
    if (memories || options.messages) throw invalidArgument("'sessionId' is in place of 'messages' and 'memories'.");
    if (this.#stores.size === 0)
      throw failedPrecondition('To read a session, an agent needs this memory, and a store that lists sessions.');
    const read = async () => {
      for (const store of this.#stores) {
        const session = await readSession(store, scope, sessionId);
        if (session) return session;
      }
      return undefined;
    };
    const session = await read();
    if (!session) throw notFound(`There is no session ${quote(sessionId)}.`);
    const { snapshotId, messages } = session;
    const source = { id: sessionId, ...options.source, sessionId, ...(snapshotId !== undefined && { snapshotId }) };
    return this.#ingest({ ...options, source, messages }, async () => (await read()) !== undefined);
  }

  async #ingest(options: IngestOptions, isThere?: () => Promise<boolean>): Promise<IngestResult> {
    this.#assertOpen();
    checkOptions('ingest', options, INGEST);
    const { scope, source, messages, procedure, wait = false } = options;
    assertAppAllowed(scopeKind(scope), this.settings.app);
    if (messages && options.extract !== 'verbatim') this.#assertLearns(procedure);
    if (procedure) this.#assertSuccessIsKnown(messages);
    const isWanted = async () =>
      (!procedure || (await this.#isSuccess!({ scope, sourceId: source!.id, messages: messages! }))) &&
      (!isThere || (await isThere()));
    const tools = { redact: this.#redact, isWanted, full: () => ++this.#refused };
    const result = await addJobs(this.#pipeline, options, tools);
    return this.#workOn(scope, result, wait);
  }

  /**
   * Keeps facts that the user, or the application, states: without a conversation to read. Those that a user wishes to be remembered have the
   * trust of `explicit`.
   *
   * @param options.source Default: one that is named for what it says.
   * @param options.wait Answer when it is done. Default: true.
   */
  async create(
    options: ScopeOption & { memory: MemoryFact | string; source?: IngestOptions['source']; wait?: boolean },
  ): Promise<IngestResult> {
    const { scope, memory, source, wait = true } = options;
    const id = `created:${shortHash(sha256Of(memory))}`;
    return this.ingest({ scope, source: source ?? { id, type: 'explicit' }, memories: [memory], wait });
  }

  /**
   * The memories of a scope that fit a text best, with their scores, and how the search went.
   *
   * @throws `INVALID_ARGUMENT` for a request that no store could answer; the reason of `abortSignal` when that aborts.
   */
  async search({
    scope,
    ...request
  }: ScopeOption & Omit<MemorySearchRequest, 'scope' | 'context'>): Promise<MemorySearchResult> {
    const { id, options } = this.#workOf(scope);
    return this.#search.search({ ...request, ...options, scope: id });
  }

  /** Notes that memories were placed in a request; written with the scope's next commit. */
  noteUse(scope: MemoryScope, ids: readonly string[]): void {
    const uses = this.#usesOf(scope);
    const at = new Date(this.#pipeline.now()).toISOString();
    for (const id of ids) uses.set(id, at);
  }

  /** The structured profile; `undefined` while there is none. One read. */
  async profile({ scope }: ScopeOption): Promise<Json | undefined> {
    return (await readOrganized(this.#pipeline, this.#workOf(scope))).profile;
  }

  /** The rolling summary; `undefined` while there is none. One read. */
  async summary({ scope }: ScopeOption): Promise<string | undefined> {
    return (await readOrganized(this.#pipeline, this.#workOf(scope))).summary;
  }

  /** Counts how a procedure did: one that leads to success is trusted more. */
  async noteOutcome({ scope, id, isSuccess }: ScopeOption & { id: string; isSuccess: boolean }): Promise<void> {
    const count = isSuccess ? 'successes' : 'failures';
    await this.#change(scope, id, (memory) => {
      const counted = { ...memory, [count]: ((memory[count] as number | undefined) ?? 0) + 1 } as MemoryDraft;
      const [successes, failures] = [
        (counted['successes'] as number | undefined) ?? 0,
        (counted['failures'] as number | undefined) ?? 0,
      ];
      return { ...counted, confidence: (successes + 1) / (successes + failures + 2) };
    });
  }

  /**
   * Makes a memory hold again that another one replaced; that one ceases to hold.
   *
   * @throws `NOT_FOUND` when there is no such memory.
   */
  async restore({ scope, id }: ScopeOption & { id: string }): Promise<void> {
    const at = new Date(this.#pipeline.now()).toISOString();
    const replacing = await this.#change(scope, id, holding);
    if (replacing.supersededBy === undefined) return;
    await this.#change(scope, replacing.supersededBy, (memory) => ({ ...memory, validTo: at, supersededBy: id }));
  }

  /** Whether a scope may be learned about. What was learned before stays: `erase` removes it. */
  readonly consent = {
    /** Keeps the answer for good; `off` holds for what waits in the queue, too. */
    set: async (scope: MemoryScope, consent: 'on' | 'off'): Promise<void> => {
      if (consent !== 'on' && consent !== 'off') throw invalidArgument("Consent is 'on' or 'off'.");
      const { id, options } = this.#workOf(scope);
      const value = { consent, at: new Date(this.#pipeline.now()).toISOString() };
      const note: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: PIPELINE_KEYS.consent, value };
      await this.store.commit(id, [note], { ...options, now: this.#pipeline.now() });
    },
    /** The scope's own answer, else the manager's. */
    get: async (scope: MemoryScope): Promise<'on' | 'off'> => {
      const { id, options } = this.#workOf(scope);
      const { notes } = await this.store.notes(id, NOTES.pipeline, { ...options, keys: [PIPELINE_KEYS.consent] });
      return (notes[0]?.value as { consent: 'on' | 'off' } | undefined)?.consent ?? this.#pipeline.consent;
    },
  };

  /** Texts that were kept back: by the guards, because they would replace too much, or because all users of an app would read them. */
  readonly quarantine = {
    /** What waits for a decision. */
    list: async ({ scope }: ScopeOption): Promise<QuarantinedText[]> => {
      const { id, options } = this.#workOf(scope);
      const { notes } = await this.store.notes(id, NOTES.quarantine, options);
      return notes.flatMap(({ key, value }) =>
        quarantinedOf(value).flatMap((item, i) => (item.isDecided ? [] : describeQuarantined(`${key}#${i}`, item))),
      );
    },
    /**
     * Lets a text pass: a memory is kept, a message is learned from. The built-in rules and guards are not asked again.
     *
     * @throws `NOT_FOUND` when it does not wait any more.
     */
    approve: async ({ scope, id }: ScopeOption & { id: string }): Promise<IngestResult> => {
      const work = this.#workOf(scope);
      // Before the text is read: it must not come back when the scope is erased meanwhile.
      const { epoch } = await readGate(this.#pipeline, work, id);
      const item = await this.#quarantined(scope, id);
      // The job has the same id if this is repeated after a crash.
      const result = await enqueue(
        this.#pipeline,
        work,
        { inputs: [approvedInput(item)], epoch },
        () => ++this.#refused,
      );
      if (result.status !== 'full') await this.#removeQuarantined(work, id);
      return this.#workOn(scope, result, true);
    },
    /** Removes a text for good. */
    discard: async ({ scope, id }: ScopeOption & { id: string }): Promise<void> => {
      await this.#quarantined(scope, id);
      await this.#removeQuarantined(this.#workOf(scope), id);
    },
  };

  /** Lets a memory of an app reach its users: the same as `quarantine.approve`. */
  approve(options: ScopeOption & { id: string }): Promise<IngestResult> {
    return this.quarantine.approve(options);
  }

  /** The queue. */
  readonly jobs = {
    /** Jobs of the tenant, oldest first. */
    list: async (
      options: { context?: ActionContext; state?: MemoryJob['state']; scope?: MemoryScope } = {},
    ): Promise<MemoryJob[]> => {
      const { state, scope } = options;
      const target = scope && targetOf(scope);
      const context = target ? target.context : options.context;
      const found: MemoryJob[] = [];
      let cursor: string | undefined;
      do {
        const page = await this.store.listJobs({
          ...(context && { context }),
          ...(state && { state }),
          ...(target && { scope: target.id }),
          ...(cursor !== undefined && { cursor }),
          limit: 1000,
        });
        found.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return found;
    },
    /** Tries a dead job again, with all its attempts. */
    replay: async (id: string, { context }: { context?: ActionContext } = {}): Promise<void> => {
      const options = context ? { context } : {};
      const now = this.#pipeline.now();
      await this.store.changeJob(id, {
        ...options,
        owner: undefined,
        to: 'waiting',
        attempts: 0,
        now,
        dueAt: new Date(now).toISOString(),
      });
      if (this.settings.hasWorker) this.#worker.wake(options);
    },
    /** How often this manager found the queue full. */
    refused: (): number => this.#refused,
  };

  /**
   * Removes what a source said: from memories and from what they were, from jobs, quarantine, profile, summary, indexes and vectors. Memories that
   * other sources support are made anew of what those say. Messages of the source that were read count as read, so that they do not come back. With `snapshotIds` only what was read in these
   * snapshots goes, say those of an abandoned branch.
   *
   * @throws `UNAVAILABLE` when a worker of another process does not let go of the source; call it again.
   */
  async forgetSource({
    scope,
    source,
    snapshotIds,
  }: ScopeOption & { source: string; snapshotIds?: readonly string[] }): Promise<ForgottenSource> {
    const work = this.#workOf(scope);
    if (typeof source !== 'string' || source === '') throw invalidArgument('forgetSource takes the id of a source.');
    const release = (job: MemoryJob) => this.#worker.remove(job, work.options);
    return forget(this.#pipeline, work, { sourceId: source, snapshotIds }, { ask: this.#asker(), release });
  }

  /**
   * Removes memories by age, confidence, use and number, and those that have expired.
   *
   * @param policy What goes; the members add up.
   * @param options.scope Default: all scopes of the tenant of `context`.
   * @returns How many memories were removed, or with `dryRun` would be.
   */
  async prune(
    policy: MemoryPrunePolicy,
    options: { scope?: MemoryScope; context?: ActionContext; dryRun?: boolean } = {},
  ): Promise<PrunedMemories> {
    checkOptions('prune', policy, POLICY);
    const { scope, context, dryRun = false } = options;
    if (scope) return { memories: await pruneScope(this.#pipeline, this.#workOf(scope), policy, dryRun) };
    const at = context ? { context } : {};
    let memories = 0;
    let cursor: string | undefined;
    do {
      const page = await this.store.listScopes({ ...at, limit: 1000, ...(cursor !== undefined && { cursor }) });
      for (const id of page.items)
        memories += await pruneScope(this.#pipeline, this.#workOf(mint(id, context)), policy, dryRun);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    if (!dryRun) memories += (await this.store.sweep({ ...at, now: this.#pipeline.now() })).removed;
    return { memories };
  }

  /**
   * The scopes of a tenant that hold something, in all apps. For a backend: it looks into every scope.
   *
   * @param options.context Names the tenant. Default: none.
   */
  async listScopes(options: {
    filter: (scope: MemoryScopeId) => boolean;
    context?: ActionContext | undefined;
  }): Promise<MemoryScope[]> {
    const { filter, context } = options;
    const scopes: MemoryScope[] = [];
    let cursor: string | undefined;
    do {
      const page = { limit: 1000, ...(context && { context }), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await this.store.listScopes(page);
      scopes.push(...items.filter((id) => filter(id)).map((id) => mint(id, context)));
      cursor = nextCursor;
    } while (cursor !== undefined);
    return scopes;
  }

  /** Everything that the store holds of a scope, line by line. */
  export({ scope }: ScopeOption): AsyncGenerator<MemoryExportLine> {
    return exportScope(this.#pipeline, this.#workOf(scope), () => this.quarantine.list({ scope }));
  }

  /** Removes everything that the store holds of a scope, the answer about consent included. Jobs that run bring nothing back. */
  async erase({ scope }: ScopeOption): Promise<MemoryErasure> {
    const { id, options } = this.#workOf(scope);
    this.#uses.delete(this.#keyOf(scope));
    return this.store.erase(id, options);
  }

  /**
   * Learns from the sessions of a session store, the one written last first. Interrupted, call it again: what was read is not read again.
   *
   * @throws The session store's errors from listing its sessions.
   */
  backfill(options: BackfillOptions): Promise<BackfillResult> {
    return backfillSessions(this.#ingestWhile, options);
  }

  /**
   * How well the extraction does on conversations with known memories. Nothing is stored.
   *
   * @param options.isSame Whether two texts say the same. Default: with the same words, but for case, punctuation and fillers.
   */
  evaluate(options: {
    cases: readonly GoldenCase[];
    isSame?: (extracted: string, expected: string) => boolean | Promise<boolean>;
  }): Promise<ExtractionScores> {
    return evaluateExtraction(this.#pipeline, this.#asker(), options);
  }

  /** Resolves when this process works on no job. */
  async settled(): Promise<void> {
    await this.#worker.settled();
    await Promise.all(this.#saving);
  }

  /** Stops: jobs at work go back to the queue with their attempts. The store stays open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker.close();
    await Promise.all(this.#saving);
  }

  /**
   * A memory for agents: `defineAgent(ai, { ..., memory: memory.attach({ scope: 'user' }) })`. What fits a turn is placed in its requests, and
   * completed turns are learned from in the background, when `generate` says so.
   *
   * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
   */
  attach(options: AttachOptions = {}): AttachedMemory {
    this.#assertOpen();
    const { topics } = this.#pipeline;
    const parts = {
      topics,
      hasProcedures: this.#isSuccess !== undefined,
      ingest: this.#ingestWhile,
      stores: this.#stores,
    };
    return new Attachment(this, parts, options);
  }

  /** @internal An agent's sessions are learned from: `processMemoryJobs` looks there for what was never enqueued. */
  noteSessions(sessions: MemorySessions): void {
    noteSessions(this.registry, this, sessions);
  }

  /** @internal One attempt at a job of a tenant. */
  attempt(context: ActionContext | undefined): ReturnType<MemoryWorker['attempt']> {
    return this.#worker.attempt(context ? { context } : {});
  }

  async #workOn(scope: MemoryScope, { openIds, ...result }: Enqueued, wait: boolean): Promise<IngestResult> {
    if (openIds.length === 0) return result;
    const { id, options } = this.#workOf(scope);
    if (!wait) {
      if (this.settings.hasWorker) this.#worker.wake(options);
      return result;
    }
    const isDone = await this.#worker.workOff(id, openIds, options);
    if (result.status === 'full' || (result.status === 'known' && isDone)) return result;
    return { ...result, status: isDone ? 'committed' : 'failed' };
  }

  #assertLearns(procedure = false): void {
    const { model, extract } = this.#pipeline;
    if (model !== undefined || (extract !== undefined && !procedure)) return;
    throw failedPrecondition(
      `Without a model nothing can be learned from messages${procedure ? ', and no procedure be made' : ''}: give memoryManager one, or extract.`,
    );
  }

  #assertSuccessIsKnown(messages: readonly MessageData[] | undefined): void {
    if (!this.#isSuccess)
      throw failedPrecondition('Procedures are made of sessions that were a success: give memoryManager isSuccess.');
    if (!messages) throw invalidArgument("A procedure is made of 'messages' or a 'sessionId'.");
  }

  async #quarantined(scope: MemoryScope, id: string): Promise<Quarantined> {
    const { id: scopeId, options } = this.#workOf(scope);
    const [key, index] = splitId(id);
    const { notes } = await this.store.notes(scopeId, NOTES.quarantine, { ...options, keys: [key] });
    const item = quarantinedOf(notes[0]?.value)[index];
    if (item && !item.isDecided) return item;
    throw notFound(`No text ${quote(id)} waits for a decision.`);
  }

  /** The place of a text in its note stays, so that the ids of the others do. */
  async #removeQuarantined({ id: scopeId, options }: ScopeWork, id: string): Promise<void> {
    const [key, index] = splitId(id);
    await this.#retried(async () => {
      const { revision, notes } = await this.store.notes(scopeId, NOTES.quarantine, { ...options, keys: [key] });
      const left = quarantinedOf(notes[0]?.value).map((item, i) => (i === index ? decided(item) : item));
      const note = quarantineNote(key, left.every(({ isDecided }) => isDecided) ? [] : left);
      await this.store.commit(scopeId, [note], { ...options, expectedRevision: revision, now: this.#pipeline.now() });
    });
  }

  /** Changes a memory, whatever else is changed meanwhile; answers what it was. */
  async #change(scope: MemoryScope, memoryId: string, change: (memory: MemoryDraft) => MemoryDraft): Promise<Memory> {
    const { id, options } = this.#workOf(scope);
    return this.#retried(async () => {
      const revision = await this.store.revision(id, options);
      const [memory] = await this.store.get(id, [memoryId], options);
      if (!memory) throw notFound(`There is no memory ${quote(memoryId)}.`);
      const operation: MemoryOperation = { op: 'put', memory: change(memory) };
      await this.store.commit(id, [operation], { ...options, expectedRevision: revision, now: this.#pipeline.now() });
      return memory;
    });
  }

  async #retried<T>(attempt: () => Promise<T>): Promise<T> {
    for (let attempts = 1; ; attempts++) {
      try {
        return await attempt();
      } catch (error) {
        if ((error as { status?: unknown } | null)?.status !== 'ABORTED' || attempts === 50) throw error;
      }
    }
  }

  /** Memories that a job is to be compared with: it must not miss one because the store or the embedder is slow. */
  async #nearest(scope: MemoryScope, text: string, request: { k: number; kind: Memory['kind'] }): Promise<Memory[]> {
    const { memories, report } = await this.search({
      scope,
      query: text,
      ...request,
      deadlineMs: this.#pipeline.limits.timeoutMs,
    });
    const isWhole = report.lexical === 'done' && (report.semantic === 'done' || report.semantic === 'off');
    if (!isWhole)
      throw unavailable(`What is known could not be searched: ${report.errors.join(' ') || 'it took too long.'}`);
    if (report.deadlinePassed) logger.warn('A memory job goes on without a reranker or rewriter that took too long.');
    return memories.map(({ memory }) => memory);
  }

  async #embed(query: string, abortSignal: AbortSignal): Promise<readonly number[]> {
    const { ai, embedder, limits } = this.#pipeline;
    const [answer] = await withinTime(limits.timeoutMs, abortSignal, () =>
      ai.embed({ embedder: embedder!, content: query }),
    );
    return answer!.embedding;
  }

  /** In the background: another process searches a scope without reading all of it. */
  #saveIndex(scope: MemoryScope): void {
    const { id, options } = this.#workOf(scope);
    const saving = this.#search.saveIndex(id, options).catch((error: unknown) => {
      logger.warn(`The index of a memory scope was not saved; searches build it anew. ${describeThrown(error)}`);
    });
    this.#saving.add(saving);
    void saving.then(() => this.#saving.delete(saving));
  }

  #asker(): AskModel | undefined {
    const { ai, model, limits } = this.#pipeline;
    if (model === undefined) return undefined;
    return modelAsker(ai, model, { timeoutMs: limits.timeoutMs, signal: new AbortController().signal });
  }

  #workOf(scope: MemoryScope): ScopeWork {
    const { id, context } = targetOf(scope);
    return { scope, id, options: context === undefined ? {} : { context } };
  }

  #keyOf(scope: MemoryScope): string {
    const { id, options } = this.#workOf(scope);
    return JSON.stringify([this.store.tenant(options), memoryScopeKey(id)]);
  }

  #usesOf(scope: MemoryScope): Map<string, string> {
    const key = this.#keyOf(scope);
    const uses = this.#uses.get(key) ?? new Map<string, string>();
    this.#uses.delete(key);
    this.#uses.set(key, uses);
    for (const oldest of this.#uses.keys()) {
      if (this.#uses.size <= MOST_USES) break;
      this.#uses.delete(oldest);
    }
    return uses;
  }

  #assertOpen(): void {
    if (this.#isClosed) throw closed('memory manager');
  }
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

const isAny: OptionCheck = () => undefined;

const INGEST = {
  scope: isAny,
  source: isAny,
  messages: isAny,
  memories: isAny,
  sessionId: isAny,
  extract: (value: unknown) => (value === 'verbatim' ? undefined : "'verbatim'"),
  procedure: isBoolean,
  wait: isBoolean,
};

const isShare: OptionCheck = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? undefined : 'a number of 0 to 1';

const POLICY = {
  maxAgeMs: isWhole(0),
  minConfidence: isShare,
  halfLifeMs: isWhole(1),
  unusedMs: isWhole(0),
  maxMemories: isWhole(0),
  invalidMs: isWhole(0),
};

function scopeKind(scope: MemoryScope): MemoryScope {
  targetOf(scope);
  return scope;
}

function splitId(id: string): [string, number] {
  if (typeof id !== 'string') throw invalidArgument('The id of a quarantined text is a string.');
  const at = id.lastIndexOf('#');
  return [id.slice(0, Math.max(0, at)) || '?', Number(id.slice(at + 1))];
}

function decided({ at }: Quarantined): Quarantined {
  return { reason: '', at, source: { id: '', at }, isDecided: true };
}

function describeQuarantined(id: string, { reason, at, source, message, candidate }: Quarantined): QuarantinedText {
  const text = candidate?.text ?? (message?.content ?? []).flatMap((part) => part.text ?? []).join('\n');
  return { id, kind: candidate ? 'memory' : 'message', reason, text, sourceId: source.id, at };
}

function approvedInput({ source, message, position = 0, candidate }: Quarantined): JobInput {
  if (message) {
    const hash = shortHash(sha256Of(message));
    const range = { from: position, to: position + 1, base: hash, hashes: hash };
    return { version: 1, task: 'learn', source, range, messages: [message], isApproved: true };
  }
  const { source: said, role: _, ...fact } = candidate!;
  const origin = { ...source, type: said.type, trust: said.trust };
  return { version: 1, task: 'facts', source: origin, facts: [fact], sha256: sha256Of(fact), isApproved: true };
}
