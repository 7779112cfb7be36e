import type { Memory, MemoryHit } from '../../store/memory/contract.ts';
import { insertBest } from '../../store/parts/insert-best.ts';
import { lastSaid, type LexicalHits } from './lexical/lexical-index.ts';
import type { FoundMemory, ScoreParts, SearchWeights } from './types.ts';

/** The most memories that are ranked. */
export const CANDIDATES = 50;
/** The number of memories that a search by meaning requests in addition to `k`. */
const MORE_NEAREST = 10;
/** The constant of reciprocal rank fusion. The larger it is, the less the first ranks differ. */
const FUSION = 60;

/** A candidate for the result, with the parts of its score that depend on the query. */
export interface RankedMemory extends Pick<ScoreParts, 'lexical' | 'semantic' | 'relevance'> {
  readonly memory: Memory;
  /** The time of its last source, in ms since 1970. */
  readonly saidAt: number;
  /** Whether it states the same as the query. Such a memory is never dropped. */
  readonly isSame?: boolean;
}

/**
 * Returns the number of memories that a search for `k` requests by meaning, without a reranker. A store may bill each memory. A larger
 * number harms the result: a memory far down in both lists would come before the first memory of one list.
 */
export function nearestWanted(k: number): number {
  return Math.min(CANDIDATES, k + MORE_NEAREST);
}

/** Joins the hits by words and by meaning, most relevant first. Uses reciprocal ranks if both lists have hits. */
export function fuse({ hits, coverage }: LexicalHits, nearest: readonly MemoryHit[]): RankedMemory[] {
  // The only hit may be a memory that states the same as the query and has score 0.
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

/** Sorts the candidates by the reranker's numbers, one for each candidate. The candidate with the largest number is the most relevant. */
export function reorder(candidates: readonly RankedMemory[], ranks: readonly number[]): RankedMemory[] {
  const ranked = candidates.map((candidate, i) => ({ candidate, rank: ranks[i]! }));
  ranked.sort((a, b) => b.rank - a.rank);
  return ranked.map(({ candidate }, rank) => ({ ...candidate, relevance: rankShare(rank) }));
}

/**
 * Returns the `k` candidates with the best scores, best first. Always includes a memory with the query's text, in the last place if
 * necessary.
 */
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
    // Members are written out, because spreads made this function several times slower.
    return { memory, score, parts: { lexical, semantic, relevance, recency, importance, confidence } };
  });
}

/** Returns the weight of a rank: 1 for the first. */
function rankShare(rank: number): number {
  return (FUSION + 1) / (FUSION + 1 + rank);
}
