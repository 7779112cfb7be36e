import { setImmediate as nextMacrotask } from 'node:timers/promises';
import { errorMessage } from '../../errors.ts';
import { freeze } from '../../json/immutable.ts';
import type { Memory, MemoryHit, MemoryScopeId, MemoryStore, MemoryStoreOptions } from '../../store/memory/contract.ts';
import { holdsAt } from '../../store/memory/version.ts';
import type { LruCache } from '../../store/parts/lru-cache.ts';
import { LATE, type Deadline } from './deadline.ts';
import type { Vocabulary } from './lexical/languages.ts';
import { LexicalIndex, lastSaid, type LexicalFilter, type LexicalHits } from './lexical/lexical-index.ts';
import { CANDIDATES, chooseBest, fuse, nearestWanted, reorder, type RankedMemory } from './rank.ts';
import type { ScopeIndex } from './scope-index.ts';
import type {
  FoundMemory,
  MemorySearchOptions,
  MemorySearchReport,
  MemorySearchRequest,
  MemorySearchResult,
  SearchStep,
  SearchWeights,
} from './types.ts';

const PAGE = 1_000;
/** The default number of results. */
const DEFAULT_K = 10;
const NOTHING: LexicalHits = { hits: [], coverage: 0 };

/** Makes the vector of a query with the embedder that made the vectors of the memories. */
export type EmbedQuery = (query: string, abortSignal: AbortSignal) => Promise<readonly number[]>;

/** A request with the id of the scope, as a store takes it. */
export interface ScopeSearchRequest extends Omit<MemorySearchRequest, 'scope'> {
  scope: MemoryScopeId;
}

/** The parts that a search uses. */
export interface SearchParts {
  readonly store: MemoryStore;
  readonly options: MemorySearchOptions;
  /** `undefined`: searches only by words. */
  readonly embed: EmbedQuery | undefined;
  readonly weights: Required<SearchWeights>;
  readonly vocabulary: Vocabulary;
  readonly results: LruCache<readonly FoundMemory[]>;
  /** Names the tenant and the scope. */
  readonly key: string;
  readonly scopeIndex: ScopeIndex;
  readonly now: () => number;
  /** Call it when the index has changed. */
  readonly keepIndex: (index: ScopeIndex) => void;
}

type StepName = 'lexical' | 'semantic' | 'rewrite' | 'rerank';

/** One search. */
export class SearchRun {
  readonly #parts: SearchParts;
  readonly #request: ScopeSearchRequest & MemoryStoreOptions;
  readonly #deadline: Deadline;
  readonly #steps: Record<StepName, SearchStep> = { lexical: 'off', semantic: 'off', rewrite: 'off', rerank: 'off' };
  readonly #errors: string[] = [];
  #revision: number | undefined;

  constructor(parts: SearchParts, request: ScopeSearchRequest & MemoryStoreOptions, deadline: Deadline) {
    this.#parts = parts;
    this.#request = request;
    this.#deadline = deadline;
  }

  async result(): Promise<MemorySearchResult> {
    const { results, options, embed } = this.#parts;
    const { query: asked, minScore = -Infinity } = this.#request;
    const query = options.rewriteQuery ? await this.#rewritten(asked, options.rewriteQuery) : asked;
    const indexing = this.#index();
    let key: string | undefined;
    if (options.cacheSize) {
      // The key contains the revision.
      await indexing;
      key = this.#cacheKey(query);
      const known = key === undefined ? undefined : results.get(key);
      if (known)
        return this.#answer(
          known.filter(({ memory }) => this.#fits(memory)),
          true,
        );
    }
    const early = this.#searchEarly(query);
    const nearing = embed && this.#nearest(query, embed);
    const [index, nearest = []] = nearing ? await Promise.all([indexing, nearing]) : [await indexing];
    const lexical = early.hits(index) ?? index?.search(query, this.#filter(), CANDIDATES) ?? NOTHING;
    const fused = fuse(lexical, nearest);
    const candidates = options.rerank ? await this.#reranked(query, fused, options.rerank) : fused;
    const found = this.#ranked(candidates);
    const memories = (this.#isCurrent(found) ? found : await this.#revalidated(found)).filter(
      ({ score }) => score >= minScore,
    );
    if (key !== undefined && this.#isWhole()) results.set(key, memories, 1);
    return this.#answer(memories, false);
  }

  /** Returns the cache key of this search's result; `undefined` if the result must not be cached. */
  #cacheKey(query: string): string | undefined {
    if (!this.#isWhole() || this.#steps.lexical !== 'done' || this.#request.asOf !== undefined) return undefined;
    return JSON.stringify([this.#parts.key, this.#revision, { ...this.#request, ...NOT_IN_KEY }, query]);
  }

  /** Waits for a step until the deadline. Returns `undefined` if the step is late or fails. */
  async #step<T>(name: StepName, work: () => Promise<T>): Promise<T | undefined> {
    const wait = name === 'rewrite' || name === 'rerank' ? 'waitHalf' : 'wait';
    try {
      const answer = this.#deadline.isOver ? LATE : await this.#deadline[wait](work());
      this.#steps[name] = answer === LATE ? 'late' : 'done';
      return answer === LATE ? undefined : answer;
    } catch (error) {
      this.#steps[name] = 'failed';
      this.#errors.push(`${name}: ${errorMessage(error)}`);
      return undefined;
    }
  }

  async #rewritten(query: string, rewrite: NonNullable<MemorySearchOptions['rewriteQuery']>): Promise<string> {
    const rewritten = await this.#step('rewrite', async () => {
      const text: unknown = await rewrite(query, this.#deadline.signal);
      if (typeof text !== 'string') throw new TypeError('rewriteQuery must return a text.');
      return text;
    });
    return rewritten ?? query;
  }

  async #index(): Promise<LexicalIndex | undefined> {
    const { scopeIndex, keepIndex } = this.#parts;
    const { asOf, context } = this.#request;
    if (asOf !== undefined) return this.#step('lexical', () => this.#pastIndex(asOf));
    // The index may be complete only after the deadline.
    const update = () => scopeIndex.update({ context }).finally(() => keepIndex(scopeIndex));
    const updated = await this.#step('lexical', update);
    const index = updated ?? scopeIndex.index;
    if (index) this.#revision = scopeIndex.revision;
    return index;
  }

  /** Searches the known index while the changes are read from the store. Changes are rare; if there are any, the hits are dropped. */
  #searchEarly(query: string): { hits(index: LexicalIndex | undefined): LexicalHits | undefined } {
    const { scopeIndex } = this.#parts;
    let found: { hits: LexicalHits; index: LexicalIndex; revision: number } | undefined;
    const immediate = setImmediate(() => {
      const { index, revision } = scopeIndex;
      if (index && this.#request.asOf === undefined)
        found = { hits: index.search(query, this.#filter(), CANDIDATES), index, revision };
    });
    return {
      hits: (index) => {
        clearImmediate(immediate);
        return found && found.index === index && found.revision === scopeIndex.revision ? found.hits : undefined;
      },
    };
  }

  /** Builds an index of the memories that were valid at `asOf`. */
  async #pastIndex(asOf: string): Promise<LexicalIndex> {
    const { store, vocabulary } = this.#parts;
    const { scope, context, topics, kind } = this.#request;
    const index = new LexicalIndex(vocabulary);
    let cursor: string | undefined;
    do {
      const page = await store.query(scope, { context, asOf, cursor, k: PAGE, filter: { topics, kind } });
      for (const { memory } of page.items) index.put(memory);
      cursor = page.nextCursor;
      await nextMacrotask();
    } while (cursor !== undefined && !this.#deadline.isOver);
    return index;
  }

  async #nearest(query: string, embed: EmbedQuery): Promise<readonly MemoryHit[]> {
    if (query.trim() === '') return [];
    const { scope, context, topics, kind, asOf, k = DEFAULT_K } = this.#request;
    const hits = await this.#step('semantic', async () => {
      const vector = await embed(query, this.#deadline.signal);
      const wanted = this.#parts.options.rerank ? CANDIDATES : nearestWanted(k);
      const filter = { topics, kind };
      return (await this.#parts.store.query(scope, { context, asOf, filter, vector, k: wanted })).items;
    });
    return hits?.filter(({ memory }) => this.#fits(memory)) ?? [];
  }

  async #reranked(
    query: string,
    candidates: RankedMemory[],
    rerank: NonNullable<MemorySearchOptions['rerank']>,
  ): Promise<RankedMemory[]> {
    if (candidates.length === 0) return candidates;
    const memories = candidates.map(({ memory }) => freeze(memory));
    const ranks = await this.#step('rerank', async () => {
      const numbers: unknown = await rerank(query, memories, this.#deadline.signal);
      if (!Array.isArray(numbers) || numbers.length !== memories.length || !numbers.every(Number.isFinite))
        throw new TypeError(`rerank must return a number for each of the ${memories.length} memories.`);
      return numbers as readonly number[];
    });
    return ranks ? reorder(candidates, ranks) : candidates;
  }

  /** Returns the best `k` candidates. */
  #ranked(candidates: readonly RankedMemory[]): FoundMemory[] {
    const { weights, now } = this.#parts;
    const { asOf, k = DEFAULT_K } = this.#request;
    return chooseBest(candidates, { k, weights, time: asOf === undefined ? now() : Date.parse(asOf) });
  }

  #isCurrent(found: readonly FoundMemory[]): boolean {
    const { scopeIndex } = this.#parts;
    if (this.#request.asOf !== undefined || this.#steps.lexical !== 'done') return true;
    return found.every(({ memory }) => scopeIndex.isCurrent(memory));
  }

  /** Reads the memories again, because in the index confidence and importance may be outdated, and a memory may have been removed. */
  async #revalidated(found: readonly FoundMemory[]): Promise<FoundMemory[]> {
    const { scopeIndex } = this.#parts;
    const { context } = this.#request;
    const memories = found.map(({ memory }) => memory);
    const current = await this.#step('lexical', () => scopeIndex.revalidate(memories, { context }));
    if (!current) return [...found];
    const byId = new Map(current.map((memory) => [memory.id, memory]));
    return this.#ranked(
      found.flatMap(({ memory: { id }, parts }) => {
        const memory = byId.get(id);
        return memory && this.#fits(memory) ? { ...parts, memory, saidAt: lastSaid(memory) } : [];
      }),
    );
  }

  #filter(): LexicalFilter {
    const { topics, kind } = this.#request;
    // Without a function, the index does not have to read each match.
    const isWanted = topics === undefined && kind === undefined ? undefined : (one: Memory) => this.#isWanted(one);
    return { time: this.#time(), isWanted };
  }

  #fits(memory: Memory): boolean {
    const time = this.#time();
    return this.#isWanted(memory) && (time === undefined || holdsAt(memory, time));
  }

  /** The time at which a memory must be valid. `undefined` with `asOf`, because the store has selected the memories. */
  #time(): number | undefined {
    return this.#request.asOf === undefined ? this.#parts.now() : undefined;
  }

  #isWanted(memory: Memory): boolean {
    const { topics, kind } = this.#request;
    if (kind !== undefined && memory.kind !== kind) return false;
    return topics === undefined || topics.some((topic) => memory.topics.includes(topic));
  }

  #isWhole(): boolean {
    return Object.values(this.#steps).every((step) => step === 'done' || step === 'off');
  }

  #answer(memories: readonly FoundMemory[], isCached: boolean): MemorySearchResult {
    const { lexical, semantic, rewrite, rerank } = this.#steps;
    // Members are written out, because a spread took as long as the rest of a search that finds nothing.
    const report: MemorySearchReport = {
      lexical,
      semantic,
      rewrite,
      rerank,
      deadlinePassed: [lexical, semantic, rewrite, rerank].includes('late'),
      revision: this.#revision,
      isCached,
      errors: this.#errors,
    };
    // New objects, because the cached objects must not change.
    const found = memories.map(({ memory, score, parts }) => ({ memory: freeze(memory), score, parts }));
    return { memories: found, report };
  }
}

/** Members of a request that are not part of the cache key: they do not change the result, or `SearchParts.key` contains them. */
const NOT_IN_KEY = { context: undefined, abortSignal: undefined, deadlineMs: undefined, scope: undefined };
