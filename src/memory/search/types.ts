import type { ActionContext } from 'genkit';
import type { Memory, MemoryScopeId } from '../../store/memory/contract.ts';
import type { SearchClock } from './deadline.ts';
import type { MemoryLanguage } from './languages.ts';

/** Options of `MemorySearch`. */
export interface MemorySearchOptions {
  /** Makes the vector of a query, by the embedder that made those of the memories. Default: search is by words alone. */
  embed?: (query: string, abortSignal: AbortSignal) => Promise<readonly number[]>;
  /**
   * Languages of the memories. Each text is taken to be in the one whose stop words it has most of, or in the first. Default: English, German,
   * French, Spanish, Italian, Portuguese, Dutch.
   */
  languages?: readonly MemoryLanguage[];
  /** How much recency, importance and confidence count against relevance. */
  weights?: SearchWeights;
  /**
   * Answers a number for each memory, in their order; the most fitting has the greatest. It is given 50 memories at most, and half of the time
   * that is left. Default: none.
   */
  rerank?: (query: string, memories: readonly Memory[], abortSignal: AbortSignal) => Promise<readonly number[]>;
  /** Answers what to look for in place of the query: by a model, say. It has half of the time. Default: the query itself. */
  rewriteQuery?: (query: string, abortSignal: AbortSignal) => Promise<string>;
  /** Results to keep for the same question while the scope has the same revision. Default: 0. */
  cacheSize?: number;
  /** Bytes that the indexes of all scopes may take in this process; those that were used longest ago go first. Default: 268,435,456 (256 MiB). */
  maxIndexBytes?: number;
  /** Default: the clock of this process. */
  clock?: SearchClock;
}

/** How much each part counts in the score of a memory. */
export interface SearchWeights {
  /** How recently it was said. Default: 0.1. */
  recency?: number;
  /** Its importance. Default: 0.1. */
  importance?: number;
  /** 0 to 1: the share of the score that confidence can take away. Default: 0.5. */
  confidence?: number;
  /** Recency halves in so many ms. Default: 2,592,000,000 (30 days). */
  halfLifeMs?: number;
}

/** What to find. */
export interface MemorySearchRequest {
  /** Whose memories. */
  scope: MemoryScopeId;
  /** A question, or the words to look for. The first 20,000 characters count. */
  query: string;
  /** At most so many, 1 to 50. Default: 10. */
  k?: number;
  /** Only memories with at least this score. Default: all that were found. */
  minScore?: number;
  /** Only with at least one of these topics. Default: of any. */
  topics?: readonly string[];
  /** Only of this kind. Default: of both. */
  kind?: Memory['kind'];
  /** As the scope was then (ISO 8601); reads all that held then. Default: as it is now. */
  asOf?: string;
  /** After so many ms the search answers with what is there. Default: 200. */
  deadlineMs?: number;
  /** Ends the search; it then throws the reason. */
  abortSignal?: AbortSignal;
  /** Names the tenant. */
  context?: ActionContext;
}

/** What the score of a memory is made of. */
export interface ScoreParts {
  /** Its score by words; compares memories of the same search. Omitted: its words were not found. */
  readonly lexical?: number;
  /** The cosine of its embedding and the query's, −1 to 1. Omitted: it was not found by meaning. */
  readonly semantic?: number;
  /** 0 to 1. The best memory that was found has 1, unless it has less than half of the query's words. */
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
  /** As it is in the store; a copy of the caller's own. */
  readonly memory: Memory;
  /** The sum of relevance, recency and importance by their weights, lowered by a lack of confidence. */
  readonly score: number;
  /** What the score is made of. */
  readonly parts: ScoreParts;
}

/** `off`: not asked for; `late`: the deadline came first; `failed`: it threw. */
export type SearchStep = 'done' | 'late' | 'failed' | 'off';

/** How a search went. */
export interface MemorySearchReport {
  /** Whether anything was left out because it took too long. */
  readonly deadlinePassed: boolean;
  /** By words. `late` and `failed`: with the index as this process had it, if it had one. */
  readonly lexical: SearchStep;
  /** By meaning. */
  readonly semantic: SearchStep;
  /** `rewriteQuery`. Without an answer the query itself was looked for. */
  readonly rewrite: SearchStep;
  /** `rerank`. Without an answer the order is that of the search. */
  readonly rerank: SearchStep;
  /** The revision of the scope that was searched by words; `undefined` without an index. */
  readonly revision: number | undefined;
  /** Answered from the cache. */
  readonly isCached: boolean;
  /** Why a step failed. For the log: it may hold words of the store or the embedder. */
  readonly errors: readonly string[];
}

/** What a search answers. */
export interface MemorySearchResult {
  /** Best first. */
  readonly memories: FoundMemory[];
  /** How it went. */
  readonly report: MemorySearchReport;
}
