import type { Memory } from '../../store/memory/contract.ts';
import type { MemoryScope } from '../scopes.ts';
import type { MemoryLanguage } from './lexical/languages.ts';

/** Options of the search of a memory manager. */
export interface MemorySearchOptions {
  /**
   * The languages of the memories. The language of a text is the one with most of the text's stop words; if that is ambiguous, the first in
   * the list. Default: English, German, French, Spanish, Italian, Portuguese, Dutch.
   */
  languages?: readonly MemoryLanguage[];
  /** The weights of recency, importance and confidence. Relevance has weight 1. */
  weights?: SearchWeights;
  /**
   * Returns a number for each memory, in the order of the memories; the best memory gets the largest number. It gets at most 50 memories,
   * and half of the remaining time. Default: none.
   */
  rerank?: (query: string, memories: readonly Memory[], abortSignal: AbortSignal) => Promise<readonly number[]>;
  /**
   * Returns the text to search for instead of the query, for example written by a model. It gets half of the time. Default: the query
   * itself.
   */
  rewriteQuery?: (query: string, abortSignal: AbortSignal) => Promise<string>;
  /** The number of results to cache. A result is reused for equal requests while the scope's revision is unchanged. Default: 0. */
  cacheSize?: number;
  /** The most bytes of all indexes in this process; the least recently used are dropped first. Default: 268,435,456 (256 MiB). */
  maxIndexBytes?: number;
}

/** The weights of the parts of a score. */
export interface SearchWeights {
  /** The weight of the time since the last source. Default: 0.1. */
  recency?: number;
  /** The weight of the importance. Default: 0.1. */
  importance?: number;
  /** 0 to 1: the share of the score that confidence can take away. Default: 0.5. */
  confidence?: number;
  /** The time in which recency halves, in ms. Default: 2,592,000,000 (30 days). */
  halfLifeMs?: number;
}

/** A request to search memories. */
export interface MemorySearchRequest {
  /** The scope that is searched. */
  scope: MemoryScope;
  /**
   * A question, or words to search for. Only its first 20,000 characters are read, and only the eight terms that are rarest in the scope
   * count.
   */
  query: string;
  /** The most memories, 1 to 50. Default: 10. */
  k?: number;
  /** Only memories with at least this score. Default: all that were found. */
  minScore?: number;
  /** Only memories with at least one of these topics. Default: any. */
  topics?: readonly string[];
  /** Only memories of this kind. Default: both. */
  kind?: Memory['kind'];
  /** Searches the scope as it was at this time (ISO 8601); reads all memories that were valid then. Default: as it is now. */
  asOf?: string;
  /** After this time, in ms, the search returns the memories found so far. Default: 200. */
  deadlineMs?: number;
  /** Aborts the search, which then throws the signal's reason. */
  abortSignal?: AbortSignal;
}

/** The parts of a memory's score. */
export interface ScoreParts {
  /** The score by words, comparable only within one search. `undefined`: it was not found by words. */
  readonly lexical: number | undefined;
  /** The cosine of its embedding and the query's embedding, −1 to 1. `undefined`: it was not found by meaning. */
  readonly semantic: number | undefined;
  /**
   * 0 to 1. In a search only by words: 1 for the best memory, less if no memory has half of the query's terms. Otherwise from similarity or
   * rank.
   */
  readonly relevance: number;
  /** 0 to 1. */
  readonly recency: number;
  /** 0 to 1. */
  readonly importance: number;
  /** 0 to 1. */
  readonly confidence: number;
}

/** A memory that was found. */
export interface FoundMemory {
  /** The memory in the store, frozen. */
  readonly memory: Memory;
  /** The weighted sum of relevance, recency and importance, lowered by a lack of confidence. */
  readonly score: number;
  /** The parts of the score. */
  readonly parts: ScoreParts;
}

/** `off`: not used; `late`: the deadline came first; `failed`: it threw. */
export type SearchStep = 'done' | 'late' | 'failed' | 'off';

/** The report about a search. */
export interface MemorySearchReport {
  /** Whether anything was left out because it took too long. */
  readonly deadlinePassed: boolean;
  /** The search by words. With `late` and `failed` it used the index that this process had, if any. */
  readonly lexical: SearchStep;
  /** The search by meaning. */
  readonly semantic: SearchStep;
  /** `rewriteQuery`. Without its result the query itself was used. */
  readonly rewrite: SearchStep;
  /** `rerank`. Without its result the memories stay in the order of the search. */
  readonly rerank: SearchStep;
  /** The revision of the scope that was searched by words; `undefined` without an index. */
  readonly revision: number | undefined;
  /** Whether the result came from the cache. */
  readonly isCached: boolean;
  /** Why steps failed. Only for the log, because it may contain texts of the store or the embedder. */
  readonly errors: readonly string[];
}

/** The result of a search. */
export interface MemorySearchResult {
  /** Best first. Includes a memory that states exactly the same as the query, unless `minScore` excludes it. */
  readonly memories: FoundMemory[];
  /** The steps of the search and their errors. */
  readonly report: MemorySearchReport;
}
