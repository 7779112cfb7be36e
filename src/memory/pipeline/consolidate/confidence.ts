import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import { sameFactKey } from '../../same-fact.ts';

const MAX_CONFIDENCE = 0.99;
/** Each contradiction multiplies the confidence of a memory that stays valid by this. */
const CONTRADICTION_FACTOR = 0.9;
/** The weight of the sources' confidence in the average with the outcomes, before 1 is added for each source. An outcome has weight 1. */
const SOURCES_WEIGHT = 2;

/** Returns the trust of a memory's most trusted source. */
export function trustOf({ sources }: Pick<Memory, 'sources'>): number {
  return Math.max(...sources.map(({ trust }) => trust));
}

/** Returns the time of a memory's newest source. */
export function newestSourceTime({ sources }: Pick<Memory, 'sources'>): string {
  return sources.reduce((last, { at }) => (at > last ? at : last), '');
}

/**
 * Sets a memory's confidence: the probability that not all sources are wrong, reduced by contradictions, averaged with the outcomes, and
 * halved if the memory is not valid. Sources with the same id count once, with the highest trust. For a memory with a key, only sources
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
  // Each source of a procedure is also counted in `successes`. It must count only as a source.
  const successes = Math.max(0, countOf(memory, 'successes') - sourceCount(sources));
  const failures = countOf(memory, 'failures');
  const confidence = Math.min(MAX_CONFIDENCE, (fromSources * weight + successes) / (weight + successes + failures));
  const current = validTo === undefined ? confidence : confidence / 2;
  return { ...memory, confidence: Math.round(current * 10_000) / 10_000 };
}

/** Replaces a memory's sources. For a procedure, each source counts as one success; reported successes are kept. */
export function withSources(memory: MemoryDraft, sources: readonly MemorySource[]): MemoryDraft {
  if (memory.kind !== 'procedural') return { ...memory, sources };
  const successes = countOf(memory, 'successes') + sourceCount(sources) - sourceCount(memory.sources);
  return { ...memory, sources, successes };
}

/** Returns the strongest source (the most trusted, then the newest, then the last), and all sources with the same statement. */
export function strongestOf(sources: readonly MemorySource[]): { best: MemorySource; agreeing: MemorySource[] } {
  const isStronger = (a: MemorySource, b: MemorySource) => {
    if (a.trust !== b.trust) return a.trust > b.trust;
    return a.at === b.at ? !isLaterPart(b, a) : a.at > b.at;
  };
  const best = sources.reduce((strongest, source) => (isStronger(source, strongest) ? source : strongest));
  const key = sameFactKey(best.statement);
  return { best, agreeing: sources.filter(({ statement }) => sameFactKey(statement) === key) };
}

/** Whether a source is a later part of the same conversation. All sources that one job reads have the same time. */
export function isLaterPart({ id, from }: MemorySource, earlier: MemorySource): boolean {
  return id === earlier.id && from !== undefined && earlier.to !== undefined && from >= earlier.to;
}

/** Returns a counter of a memory. */
export function countOf(memory: MemoryDraft, name: 'contradictions' | 'successes' | 'failures'): number {
  return (memory[name] as number | undefined) ?? 0;
}

/** Returns the confidence, reduced by the time since the last source. */
export function agedConfidence(memory: Memory, now: number, halfLifeMs: number | undefined): number {
  if (halfLifeMs === undefined) return memory.confidence;
  const age = Math.max(0, now - Date.parse(newestSourceTime(memory)));
  return memory.confidence * 0.5 ** (age / halfLifeMs);
}

function sourceCount(sources: readonly MemorySource[]): number {
  return new Set(sources.map(({ id }) => id)).size;
}
