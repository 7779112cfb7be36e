import type { ModelArgument, EmbedderArgument, z } from 'genkit';
import type { Memory, MemoryStore } from '../../store/memory/contract.ts';
import { targetOf, type MemoryScope, type ScopeTarget } from '../scopes.ts';
import type { MemoryExtractor, MemoryGuard, MemoryLimits, MemoryReport, MemoryTopic, MemoryTrust } from '../types.ts';
import type { Generates } from './extract/ask-model.ts';

/** A manager's options with their defaults, and what the pipeline needs besides. */
export interface Pipeline {
  readonly ai: Generates;
  readonly store: MemoryStore;
  readonly model: ModelArgument | undefined;
  readonly embedder: EmbedderArgument | undefined;
  readonly topics: readonly MemoryTopic[];
  readonly extract: 'verbatim' | MemoryExtractor | undefined;
  readonly guards: readonly MemoryGuard[];
  readonly consent: 'on' | 'off';
  readonly learnFromTools: boolean;
  readonly toolTtlMs: number;
  readonly trust: Required<MemoryTrust>;
  readonly profile: z.ZodTypeAny | undefined;
  readonly summary: boolean;
  readonly limits: Required<MemoryLimits>;
  readonly now: () => number;
  readonly random: () => number;
  readonly report: (report: MemoryReport) => void;
  /** Memories of a scope that are nearest to a text, those that hold alone. */
  readonly nearest: (
    scope: MemoryScope,
    text: string,
    options: { k: number; kind: Memory['kind'] },
  ) => Promise<readonly Memory[]>;
  /** When memories of a scope were used, as far as the store does not have it yet; what a commit has written is taken out. */
  readonly usesOf: (scope: MemoryScope) => Map<string, string>;
  /** The scope has changed. */
  readonly changed: (scope: MemoryScope) => void;
  /** The queue was full; answers how often it was. */
  readonly countRefusal: () => number;
}

/** Where the work of a job goes. */
export interface ScopeWork extends ScopeTarget {
  readonly scope: MemoryScope;
}

/** @throws `INVALID_ARGUMENT` for anything that is not a scope. */
export function workOf(scope: MemoryScope): ScopeWork {
  return { scope, ...targetOf(scope) };
}

/** The most operations of a commit. */
export const MOST_OPERATIONS = 100;

/** Kinds of notes. Those that begin with `index` are derived: they go when a memory is removed. */
export const NOTES = { pipeline: 'pipeline', quarantine: 'quarantine', derived: 'index:organized' } as const;

/** Keys of the notes of kind `pipeline`. */
export const PIPELINE_KEYS = {
  consent: 'consent',
  epoch: 'epoch',
  source: (sourceHash: string) => `source:${sourceHash}`,
  split: (jobId: string) => `split:${jobId}`,
} as const;
