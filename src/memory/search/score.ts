import type { Memory } from '../../store/memory/contract.ts';

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

/** The part of the score that the query decides. */
export type Relevance = Pick<ScoreParts, 'lexical' | 'semantic' | 'relevance'>;

/** Constant of the reciprocal rank fusion: how little the first ranks differ. */
const FUSION = 60;

/** The part of a list's vote that a rank has: 1 for the first. */
export function rankShare(rank: number): number {
  return (FUSION + 1) / (FUSION + 1 + rank);
}

export function scoreOf(
  memory: Memory,
  found: Relevance,
  now: number,
  weights: Required<SearchWeights>,
): { memory: Memory; score: number; parts: ScoreParts } {
  const recency = 0.5 ** (Math.max(0, now - saidAt(memory)) / weights.halfLifeMs);
  const { importance, confidence } = memory;
  const sum = found.relevance + weights.recency * recency + weights.importance * importance;
  const score = sum * (1 - weights.confidence + weights.confidence * confidence);
  return { memory, score, parts: { ...found, recency, importance, confidence } };
}

/** When it was said last. */
function saidAt(memory: Memory): number {
  let last = -Infinity;
  for (const { at } of memory.sources) {
    const time = Date.parse(at);
    if (time > last) last = time;
  }
  return last === -Infinity ? Date.parse(memory.updatedAt) : last;
}

/** Whether a memory holds and is not to be removed. */
export function holdsAt({ validTo, expiresAt }: Memory, now: number): boolean {
  return isAhead(validTo, now) && isAhead(expiresAt, now);
}

function isAhead(end: string | undefined, now: number): boolean {
  return end === undefined || Date.parse(end) > now;
}
