import type { Memory, MemoryHit } from '../../store/memory/contract.ts';
import { insertBest } from '../../store/parts/insert-best.ts';
import { lastSaid, type LexicalHits } from './lexical/lexical-index.ts';
import type { FoundMemory, ScoreParts, SearchWeights } from './types.ts';

/** The most memories that are ranked. */
export const CANDIDATES = 50;
/** How many more memories than its answer takes a search needs by meaning. */
const MORE_NEAREST = 10;
/** Constant of the reciprocal rank fusion: the larger, the less the first ranks differ. */
const FUSION = 60;

/** A memory that may be among the best, with the parts of its score that depend on the query. */
export interface RankedMemory extends Pick<ScoreParts, 'lexical' | 'semantic' | 'relevance'> {
  readonly memory: Memory;
  /** The time of its last source, in ms since 1970. */
  readonly saidAt: number;
  /** Whether it says the same as the query. It is never left out. */
  readonly isSame?: boolean;
}

/**
 * How many memories a search for `k` asks for by meaning, if nothing reranks them. A store may bill each. More do harm: a memory that is far
 * down in both lists would come before one that is first in one of them.
 */
export function nearestWanted(k: number): number {
  return Math.min(CANDIDATES, k + MORE_NEAREST);
}

/** Joins the hits by words and by meaning, most relevant first. Uses reciprocal ranks if both have hits. */
export function fuse({ hits, coverage }: LexicalHits, nearest: readonly MemoryHit[]): RankedMemory[] {
  // A memory that says the same as the query may be the only hit, and have no score.
  const best = hits[0]?.score || 1;
  const words = hits.map(({ memory, score, saidAt, isSame }, rank): RankedMemory => {
    const relevance = nearest.length > 0 ? rankShare(rank) / 2 : (score / best) * Math.min(1, 2 * coverage);
    return { memory, saidAt, isSame, lexical: score, semantic: undefined, relevance };
  });
  if (nearest.length === 0) return words;
  const found = new Map(words.map((candidate) => [candidate.memory.id, candidate]));
  nearest.forEach(({ memory, similarity = 0 }, rank) => {
    const known = found.get(memory.id);
    const share = hits.length > 0 ? rankShare(rank) / 2 : Math.max(0, similarity);
    const relevance = (known?.relevance ?? 0) + share;
    const [saidAt, isSame] = [lastSaid(memory), known?.isSame ?? false];
    found.set(memory.id, { memory, saidAt, isSame, lexical: known?.lexical, semantic: similarity, relevance });
  });
  const order = (a: RankedMemory, b: RankedMemory) => Number(b.isSame) - Number(a.isSame) || b.relevance - a.relevance;
  return [...found.values()].sort(order).slice(0, CANDIDATES);
}

/** Sorts the candidates by the reranker's numbers, which are in the same order. The greatest is the most relevant. */
export function reorder(candidates: readonly RankedMemory[], ranks: readonly number[]): RankedMemory[] {
  const ranked = candidates.map((candidate, i) => ({ candidate, rank: ranks[i]! }));
  ranked.sort((a, b) => b.rank - a.rank);
  return ranked.map(({ candidate }, rank) => ({ ...candidate, relevance: rankShare(rank) }));
}

/** The best `k` by their scores, best first. A memory with the query's text is always among them, if need be in the last place. */
export function chooseBest(
  candidates: readonly RankedMemory[],
  { k, time, weights }: { k: number; time: number; weights: Required<SearchWeights> },
): FoundMemory[] {
  const best: { candidate: RankedMemory; recency: number; score: number }[] = [];
  let same: (typeof best)[number] | undefined;
  for (const candidate of candidates) {
    const { memory, saidAt, relevance } = candidate;
    const recency = 0.5 ** (Math.max(0, time - saidAt) / weights.halfLifeMs);
    const sum = relevance + weights.recency * recency + weights.importance * memory.importance;
    const score = sum * (1 - weights.confidence + weights.confidence * memory.confidence);
    const scored = { candidate, recency, score };
    insertBest(best, scored, k, (one) => one.score);
    if (candidate.isSame) same = scored;
  }
  if (same && !best.includes(same)) best[k - 1] = same;
  return best.map(({ candidate: { memory, lexical, semantic, relevance }, recency, score }) => {
    const { importance, confidence } = memory;
    // Written out: with spreads this function took several times as long.
    return { memory, score, parts: { lexical, semantic, relevance, recency, importance, confidence } };
  });
}

/** The weight of a rank: 1 for the first. */
function rankShare(rank: number): number {
  return (FUSION + 1) / (FUSION + 1 + rank);
}
