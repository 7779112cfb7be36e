import { invalidArgument, isAborted } from '../../errors.ts';
import {
  checkOptions,
  isFunction,
  isNumber,
  isOneOf,
  isObject,
  isShare,
  isSignal,
  isString,
  isTime,
  isTimerMs,
  isWhole,
  withDefaults,
  type OptionCheck,
} from '../../store/check-options.ts';
import type { MemoryScopeId, MemoryStore, MemoryStoreOptions } from '../../store/memory/contract.ts';
import { memoryScopeKey, tenantScopeKey } from '../../store/memory/scope.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import { Deadline, SYSTEM_CLOCK, type SearchClock } from './deadline.ts';
import { DEFAULT_LANGUAGES, MEMORY_LANGUAGES, Vocabulary } from './lexical/languages.ts';
import { ScopeIndex } from './scope-index.ts';
import { CANDIDATES } from './rank.ts';
import { SearchRun, type EmbedQuery, type ScopeSearchRequest } from './search-run.ts';
import type { FoundMemory, MemorySearchOptions, MemorySearchResult, SearchWeights } from './types.ts';

const MIB = 1024 * 1024;
const DEFAULT_WEIGHTS = { recency: 0.1, importance: 0.1, confidence: 0.5, halfLifeMs: 30 * 86_400_000 };
/**
 * The weights to compare texts. Confidence does not count, because a new fact may contradict a memory of little trust. Of memories that are
 * equally relevant by words, the newest come first.
 */
const RELEVANCE_FIRST = { ...DEFAULT_WEIGHTS, recency: 1e-9, importance: 0, confidence: 0 };

const isTopics: OptionCheck = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
    ? undefined
    : 'a list of at least one topic';
const isLanguages: OptionCheck = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((item) => (MEMORY_LANGUAGES as unknown[]).includes(item))
    ? undefined
    : `a list of ${MEMORY_LANGUAGES.join(', ')}`;

const OPTIONS = {
  languages: isLanguages,
  weights: isObject,
  rerank: isFunction,
  rewriteQuery: isFunction,
  cacheSize: isWhole(0),
  maxIndexBytes: isWhole(0),
};
const WEIGHTS = { recency: isNumber, importance: isNumber, confidence: isShare, halfLifeMs: isWhole(1) };
const REQUEST = {
  scope: isObject,
  query: isString,
  k: isWhole(1, CANDIDATES),
  minScore: isNumber,
  topics: isTopics,
  kind: isOneOf('declarative', 'procedural'),
  asOf: isTime,
  deadlineMs: isTimerMs(0),
  abortSignal: isSignal,
};

/**
 * Finds memories by their words and, with `embed`, by their meaning.
 *
 * Keeps an index of each scope that was searched in this process, and updates it from the store before each search. If the store, the
 * embedder or the reranker fails or hangs, the search still returns at the deadline; the report names the skipped steps.
 */
export class MemorySearch {
  readonly #store: MemoryStore;
  readonly #options: MemorySearchOptions;
  readonly #embed: EmbedQuery | undefined;
  readonly #weights: Required<SearchWeights>;
  readonly #clock: SearchClock;
  readonly #vocabulary: Vocabulary;
  readonly #indexes: LruCache<ScopeIndex>;
  readonly #results: LruCache<FoundMemory[]>;

  /**
   * @param options The application's options.
   * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
   */
  constructor(
    store: MemoryStore,
    options: MemorySearchOptions = {},
    { embed, clock = SYSTEM_CLOCK }: { embed?: EmbedQuery; clock?: SearchClock } = {},
  ) {
    checkOptions('memoryManager: search', options, OPTIONS);
    checkOptions('memoryManager: search.weights', options.weights, WEIGHTS);
    const { languages = DEFAULT_LANGUAGES, cacheSize = 0, maxIndexBytes = 256 * MIB } = options;
    this.#store = store;
    this.#options = options;
    this.#embed = embed;
    this.#weights = withDefaults(DEFAULT_WEIGHTS, options.weights);
    this.#clock = clock;
    this.#vocabulary = new Vocabulary(languages);
    this.#indexes = new LruCache(maxIndexBytes);
    this.#results = new LruCache(cacheSize);
  }

  /**
   * Finds the memories that fit a query best. They are frozen.
   *
   * @param tenant A separate argument, because the request may have come from a client.
   * @param purpose `compare`: sorts by relevance, without the application's rewriter, reranker and cache, which are for questions. `words`:
   *   also without the embedder.
   * @throws `INVALID_ARGUMENT` for an invalid request; the reason of `abortSignal` if it aborts.
   */
  async search(
    request: ScopeSearchRequest,
    tenant: MemoryStoreOptions = {},
    purpose: 'answer' | 'compare' | 'words' = 'answer',
  ): Promise<MemorySearchResult> {
    checkOptions('search', request, REQUEST);
    if (typeof request?.query !== 'string') throw invalidArgument('search needs a query.');
    const key = tenantScopeKey(this.#store, memoryScopeKey(request.scope), tenant);
    request.abortSignal?.throwIfAborted();
    const deadline = new Deadline(this.#clock, request.deadlineMs ?? 200, request.abortSignal);
    const run = new SearchRun(
      {
        store: this.#store,
        options: purpose === 'answer' ? this.#options : {},
        embed: purpose === 'words' ? undefined : this.#embed,
        weights: purpose === 'answer' ? this.#weights : RELEVANCE_FIRST,
        vocabulary: this.#vocabulary,
        results: this.#results,
        key,
        scopeIndex: this.#indexOf(key, request.scope),
        now: () => this.#clock.now(),
        keepIndex: (index) => this.#indexes.set(key, index, index.weight),
      },
      { ...request, ...tenant },
      deadline,
    );
    try {
      const result = await run.result();
      request.abortSignal?.throwIfAborted();
      return result;
    } finally {
      deadline.end();
    }
  }

  /**
   * Stores the index of a scope in shards, so that another process does not have to read the scope's memories. The worker calls it after a
   * commit; no turn waits for it. Writes only the changes; after a removal, everything. Returns whether something was stored: `false` also
   * if another commit came in between, which calls this method again.
   *
   * @param least With fewer changed memories nothing is stored, because reading these in another process costs less than the writes.
   */
  async saveIndex(scope: MemoryScopeId, options: MemoryStoreOptions = {}, least = 1): Promise<boolean> {
    const key = tenantScopeKey(this.#store, memoryScopeKey(scope), options);
    const index = this.#indexOf(key, scope);
    try {
      return await index.save(options, least);
    } catch (error) {
      if (isAborted(error)) return false;
      throw error;
    } finally {
      this.#indexes.set(key, index, index.weight);
    }
  }

  #indexOf(key: string, scope: MemoryScopeId): ScopeIndex {
    const known = this.#indexes.get(key);
    if (known) return known;
    const index = new ScopeIndex(this.#store, scope, this.#vocabulary, () => this.#clock.now());
    this.#indexes.set(key, index, index.weight);
    return index;
  }
}
