import type { Memory, MemorySource } from '../../../store/memory/contract.ts';

const MOST = 0.99;
/** A contradiction that does not refute a memory multiplies its confidence by this. */
const CONTRADICTED = 0.9;

/** The trust in a memory: that of its best source. */
export function trustOf({ sources }: Pick<Memory, 'sources'>): number {
  return Math.max(...sources.map(({ trust }) => trust));
}

/** The probability that not all sources are wrong, reduced by contradictions. */
export function confidenceOf(sources: readonly MemorySource[], contradictions: number): number {
  const bySource = new Map<string, number>();
  for (const { id, trust } of sources) bySource.set(id, Math.max(trust, bySource.get(id) ?? 0));
  let unlikely = 1;
  for (const trust of bySource.values()) unlikely *= 1 - trust;
  return round(Math.min(MOST, 1 - unlikely) * CONTRADICTED ** contradictions);
}

/** The confidence after the time since the last source. */
export function agedConfidence({ confidence, sources }: Memory, now: number, halfLifeMs: number | undefined): number {
  if (halfLifeMs === undefined) return confidence;
  const last = Math.max(...sources.map(({ at }) => Date.parse(at)));
  return confidence * 0.5 ** (Math.max(0, now - last) / halfLifeMs);
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
