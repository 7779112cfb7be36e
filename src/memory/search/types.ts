import type { Memory } from '../../store/memory/contract.ts';
import type { MemoryScope } from '../scopes.ts';
import type { MemoryLanguage } from './lexical/languages.ts';

/** Options of the search of a memory manager. */
export interface MemorySearchOptions {
  /**
   * Languages of the memories. The language of a text is the one with most of its stop words, or else the first. Default: English, German,
   * French, Spanish, Italian, Portuguese, Dutch.
   */
  languages?: readonly MemoryLanguage[];
  /** The weights of recency, importance and confidence, compared with relevance. */
  weights?: SearchWeights;
  /**
   * Returns a number for each memory, in their order; the best has the greatest. It gets at most 50 memories, and half of the time that is
   * left. Default: none.
   */
  rerank?: (query: string, memories: readonly Memory[], abortSignal: AbortSignal) => Promise<readonly number[]>;
  /** Returns the text to search for in place of the query, such as one by a model. It gets half of the time. Default: the query itself. */
  rewriteQuery?: (query: string, abortSignal: AbortSignal) => Promise<string>;
  /** The number of results to cache. A result serves equal requests while the scope has the same revision. Default: 0. */
  cacheSize?: number;
  /** The most bytes of all indexes in this process; those used longest ago go first. Default: 268,435,456 (256 MiB). */
  maxIndexBytes?: number;
}

/** The weights of the parts of a score. */
export interface SearchWeights {
  /** The time since its last source. Default: 0.1. */
  recency?: number;
  /** Its importance. Default: 0.1. */
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
  /** A question, or words to search for. Of its first 20,000 characters the eight terms count that are rarest in the scope. */
  query: string;
  /** The most memories, 1 to 50. Default: 10. */
  k?: number;
  /** Only memories with at least this score. Default: all that were found. */
  minScore?: number;
  /** Only memories with at least one of these topics. Default: any. */
  topics?: readonly string[];
  /** Only memories of this kind. Default: both. */
  kind?: Memory['kind'];
  /** Searches the scope as it was then (ISO 8601); reads all memories that held then. Default: as it is now. */
  asOf?: string;
  /** After this time, in ms, the search returns what it has found so far. Default: 200. */
  deadlineMs?: number;
  /** Ends the search, which then throws the reason. */
  abortSignal?: AbortSignal;
}

/** The parts of a memory's score. */
export interface ScoreParts {
  /** Its score by words, comparable within a search only. `undefined`: it was not found by words. */
  readonly lexical: number | undefined;
  /** The cosine of its embedding and that of the query, −1 to 1. `undefined`: it was not found by meaning. */
  readonly semantic: number | undefined;
  /** 0 to 1. By words alone: 1 for the best memory, less if none has half of the query's terms. Else by similarity or rank. */
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

/** `off`: not asked for; `late`: the deadline came first; `failed`: it threw. */
export type SearchStep = 'done' | 'late' | 'failed' | 'off';

/** The report about a search. */
export interface MemorySearchReport {
  /** Whether anything was left out because it took too long. */
  readonly deadlinePassed: boolean;
  /** The search by words. After `late` and `failed` it used the index that this process had, if any. */
  readonly lexical: SearchStep;
  /** The search by meaning. */
  readonly semantic: SearchStep;
  /** `rewriteQuery`. Without its answer the query itself was used. */
  readonly rewrite: SearchStep;
  /** `rerank`. Without its answer the order is that of the search. */
  readonly rerank: SearchStep;
  /** The revision of the scope that was searched by words; `undefined` without an index. */
  readonly revision: number | undefined;
  /** Whether the result came from the cache. */
  readonly isCached: boolean;
  /** Why steps failed. For the log, because it may contain texts of the store or the embedder. */
  readonly errors: readonly string[];
}

/** The result of a search. */
export interface MemorySearchResult {
  /** Best first. If a memory says just what the query says, it is one of them, unless `minScore` leaves it out. */
  readonly memories: FoundMemory[];
  /** How the search went. */
  readonly report: MemorySearchReport;
}
