import type { Memory, MemoryHit } from '../../store/memory/contract.ts';
import { insertBest } from '../../store/parts/insert-best.ts';
import type { LexicalHits } from './lexical/lexical-index.ts';
import type { FoundMemory, ScoreParts, SearchWeights } from './types.ts';

/** The most memories that are ranked. */
export const CANDIDATES = 50;
/** Constant of the reciprocal rank fusion: the larger, the less the first ranks differ. */
const FUSION = 60;
/** The time of each memory's last source, cached: parsing these times in each search takes a sixth of it. */
const saidTimes = new WeakMap<Memory, number>();

/** A memory that may be among the best, with the parts of its score that depend on the query. */
export interface Candidate {
  readonly memory: Memory;
  readonly parts: Pick<ScoreParts, 'lexical' | 'semantic' | 'relevance'>;
}

/** Joins the hits by words and by meaning, most relevant first. Uses reciprocal ranks if both have hits. */
export function fuse({ hits, coverage }: LexicalHits, nearest: readonly MemoryHit[]): Candidate[] {
  const best = hits[0]?.score ?? 0;
  const words = hits.map(({ memory, score }, rank): Candidate => {
    const relevance = nearest.length > 0 ? rankShare(rank) / 2 : (score / best) * Math.min(1, 2 * coverage);
    return { memory, parts: { lexical: score, relevance } };
  });
  if (nearest.length === 0) return words;
  const found = new Map(words.map((candidate) => [candidate.memory.id, candidate]));
  nearest.forEach(({ memory, similarity = 0 }, rank) => {
    const known = found.get(memory.id)?.parts;
    const share = hits.length > 0 ? rankShare(rank) / 2 : Math.max(0, similarity);
    const relevance = (known?.relevance ?? 0) + share;
    found.set(memory.id, { memory, parts: { ...known, semantic: similarity, relevance } });
  });
  return [...found.values()].sort((a, b) => b.parts.relevance - a.parts.relevance).slice(0, CANDIDATES);
}

/** Sorts the candidates by the reranker's numbers, which are in the same order. The greatest is the most relevant. */
export function reorder(candidates: readonly Candidate[], ranks: readonly number[]): Candidate[] {
  const ranked = candidates.map((candidate, i) => ({ candidate, rank: ranks[i] ?? -Infinity }));
  ranked.sort((a, b) => b.rank - a.rank);
  return ranked.map(({ candidate: { memory, parts } }, rank) => ({
    memory,
    parts: { ...parts, relevance: rankShare(rank) },
  }));
}

/** The best `k` by their scores, best first. */
export function chooseBest(
  candidates: readonly Candidate[],
  { k, time, weights }: { k: number; time: number; weights: Required<SearchWeights> },
): FoundMemory[] {
  const best: (Candidate & { readonly recency: number; readonly score: number })[] = [];
  for (const { memory, parts } of candidates) {
    const { importance, confidence } = memory;
    const recency = 0.5 ** (Math.max(0, time - saidAt(memory)) / weights.halfLifeMs);
    const sum = parts.relevance + weights.recency * recency + weights.importance * importance;
    const score = sum * (1 - weights.confidence + weights.confidence * confidence);
    insertBest(best, { memory, parts, recency, score }, k, (one) => one.score);
  }
  return best.map(({ memory, parts, recency, score }) => {
    const { importance, confidence } = memory;
    return { memory, score, parts: { ...parts, recency, importance, confidence } };
  });
}

/** The weight of a rank: 1 for the first. */
function rankShare(rank: number): number {
  return (FUSION + 1) / (FUSION + 1 + rank);
}

/** The time of its last source, in ms. */
function saidAt(memory: Memory): number {
  const known = saidTimes.get(memory);
  if (known !== undefined) return known;
  const times = memory.sources.map(({ at }) => Date.parse(at)).filter((time) => !Number.isNaN(time));
  const time = times.length > 0 ? Math.max(...times) : Date.parse(memory.updatedAt);
  saidTimes.set(memory, time);
  return time;
}
