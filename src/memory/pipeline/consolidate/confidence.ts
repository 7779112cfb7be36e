import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import { sameFactKey } from './duplicates.ts';

const MOST = 0.99;
/** A contradiction that does not refute a memory multiplies its confidence by this. */
const CONTRADICTED = 0.9;
/** The confidence from the sources counts as much as this many outcomes, and one more for each source. */
const SOURCES_WEIGHT = 2;

/** The trust in a memory: that of its best source. */
export function trustOf({ sources }: Pick<Memory, 'sources'>): number {
  return Math.max(...sources.map(({ trust }) => trust));
}

/**
 * The memory with the confidence that follows from its sources, contradictions and outcomes. A memory that does not hold has half of it.
 *
 * The confidence is the probability that not all sources are wrong, reduced by contradictions. A source counts once, by its strongest type.
 * Of a memory with a key only the sources count that say what holds. Outcomes are averaged with it.
 */
export function withConfidence(memory: MemoryDraft): MemoryDraft {
  const { sources, validTo } = memory;
  const said = memory['key'] === undefined ? sources : strongestOf(sources).agreeing;
  const trusts = new Map<string, number>();
  for (const { id, trust } of said) trusts.set(id, Math.max(trust, trusts.get(id) ?? 0));
  const unlikely = [...trusts.values()].reduce((product, trust) => product * (1 - trust), 1);
  const likely = Math.min(MOST, 1 - unlikely) * CONTRADICTED ** countOf(memory, 'contradictions');
  const weight = SOURCES_WEIGHT + sourceCount(sources);
  const noted = Math.max(0, countOf(memory, 'successes') - sourceCount(sources));
  const confidence = (likely * weight + noted) / (weight + noted + countOf(memory, 'failures'));
  return { ...memory, confidence: round(Math.min(MOST, confidence) / (validTo === undefined ? 1 : 2)) };
}

/**
 * The memory with other sources. Each source of a procedure is one success, however often it says it; noted successes are kept.
 */
export function withSources(memory: MemoryDraft, sources: readonly MemorySource[]): MemoryDraft {
  if (memory.kind !== 'procedural') return { ...memory, sources };
  const successes = countOf(memory, 'successes') + sourceCount(sources) - sourceCount(memory.sources);
  return { ...memory, sources, successes };
}

/** The strongest source: the most trusted, then the newest, then the later one in order; and all that say the same as it. */
export function strongestOf(sources: readonly MemorySource[]): { best: MemorySource; agreeing: MemorySource[] } {
  const isStronger = (a: MemorySource, b: MemorySource) => (a.trust === b.trust ? a.at >= b.at : a.trust > b.trust);
  const best = sources.reduce((strongest, one) => (isStronger(one, strongest) ? one : strongest));
  const key = sameFactKey(best.statement);
  return { best, agreeing: sources.filter(({ statement }) => sameFactKey(statement) === key) };
}

/** A counter of a memory. */
export function countOf(
  memory: MemoryDraft,
  name: 'contradictions' | 'successes' | 'failures' | 'furtherSources',
): number {
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

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
