import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import { sameFactKey } from '../../same-fact.ts';

const MAX_CONFIDENCE = 0.99;
/** Each contradiction multiplies the confidence of a memory that still holds by this. */
const CONTRADICTION_FACTOR = 0.9;
/** In the average with the outcomes, the confidence from the sources weighs this much, and 1 more for each source. */
const SOURCES_WEIGHT = 2;

/** The trust in a memory: that of its most trusted source. */
export function trustOf({ sources }: Pick<Memory, 'sources'>): number {
  return Math.max(...sources.map(({ trust }) => trust));
}

/** The time of the newest source of a memory. */
export function newestSourceTime({ sources }: Pick<Memory, 'sources'>): string {
  return sources.reduce((last, { at }) => (at > last ? at : last), '');
}

/**
 * The memory with its confidence: the probability that not all sources are wrong, reduced by contradictions, averaged with the outcomes,
 * and halved if the memory does not hold. Sources with the same id count once, with the highest trust. For a memory with a key, only sources
 * that state its text count.
 */
export function withConfidence(memory: MemoryDraft): MemoryDraft {
  const { sources, validTo } = memory;
  const counted = memory['key'] === undefined ? sources : strongestOf(sources).agreeing;
  const trustById = new Map<string, number>();
  for (const { id, trust } of counted) trustById.set(id, Math.max(trust, trustById.get(id) ?? 0));
  const allWrong = [...trustById.values()].reduce((product, trust) => product * (1 - trust), 1);
  const fromSources =
    Math.min(MAX_CONFIDENCE, 1 - allWrong) * CONTRADICTION_FACTOR ** countOf(memory, 'contradictions');
  const weight = SOURCES_WEIGHT + sourceCount(sources);
  // Each source of a procedure is one of its successes, and counts as a source only.
  const successes = Math.max(0, countOf(memory, 'successes') - sourceCount(sources));
  const failures = countOf(memory, 'failures');
  const confidence = Math.min(MAX_CONFIDENCE, (fromSources * weight + successes) / (weight + successes + failures));
  const current = validTo === undefined ? confidence : confidence / 2;
  return { ...memory, confidence: Math.round(current * 10_000) / 10_000 };
}

/** The memory with other sources. Each source of a procedure is one success; the successes that were reported are kept. */
export function withSources(memory: MemoryDraft, sources: readonly MemorySource[]): MemoryDraft {
  if (memory.kind !== 'procedural') return { ...memory, sources };
  const successes = countOf(memory, 'successes') + sourceCount(sources) - sourceCount(memory.sources);
  return { ...memory, sources, successes };
}

/** The strongest source, which is the most trusted, then the newest, then the last one; and all sources with the same statement. */
export function strongestOf(sources: readonly MemorySource[]): { best: MemorySource; agreeing: MemorySource[] } {
  const isStronger = (a: MemorySource, b: MemorySource) => {
    if (a.trust !== b.trust) return a.trust > b.trust;
    return a.at === b.at ? !isLaterPart(b, a) : a.at > b.at;
  };
  const best = sources.reduce((strongest, source) => (isStronger(source, strongest) ? source : strongest));
  const key = sameFactKey(best.statement);
  return { best, agreeing: sources.filter(({ statement }) => sameFactKey(statement) === key) };
}

/** Whether a source is a later part of a conversation than another. What one job reads has one time. */
export function isLaterPart({ id, from }: MemorySource, earlier: MemorySource): boolean {
  return id === earlier.id && from !== undefined && earlier.to !== undefined && from >= earlier.to;
}

/** A counter of a memory. */
export function countOf(memory: MemoryDraft, name: 'contradictions' | 'successes' | 'failures'): number {
  return (memory[name] as number | undefined) ?? 0;
}

/** The confidence after the time since the last source. */
export function agedConfidence({ confidence, sources }: Memory, now: number, halfLifeMs: number | undefined): number {
  if (halfLifeMs === undefined) return confidence;
  const last = Math.max(...sources.map(({ at }) => Date.parse(at)));
  return confidence * 0.5 ** (Math.max(0, now - last) / halfLifeMs);
}

function sourceCount(sources: readonly MemorySource[]): number {
  return new Set(sources.map(({ id }) => id)).size;
}
