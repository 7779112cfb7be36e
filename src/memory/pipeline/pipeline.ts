import type { Genkit } from 'genkit';
import { invalidArgument } from '../../errors.ts';
import { checkOptions, isAny, type OptionCheck } from '../../store/check-options.ts';
import type { Memory } from '../../store/memory/contract.ts';
import { targetOf, type MemoryScope, type ScopeTarget } from '../scopes.ts';
import type { MemorySettings } from '../settings.ts';

/** The part of Genkit that the pipeline needs. */
export type Generates = Pick<Genkit, 'generate' | 'embedMany' | 'evaluate' | 'registry'>;

/** A manager's settings, and the functions of the manager that the pipeline uses. */
export interface Pipeline extends MemorySettings {
  readonly ai: Generates;
  /** Returns the valid memories of a scope that are most similar to a text, at most 10. */
  readonly nearest: (
    scope: MemoryScope,
    text: string,
    options: { kind: Memory['kind']; abortSignal: AbortSignal },
  ) => Promise<readonly Memory[]>;
  /**
   * The time of each memory's last use, by memory id, if it is not stored yet. An entry is removed when a job carries it or a commit writes
   * it.
   */
  readonly usesOf: (scope: MemoryScope) => Map<string, string>;
  /** Call it after a commit. */
  readonly saveIndex: (scope: MemoryScope) => void;
  /** Counts a refusal because the queue was full. Returns the count. */
  readonly countRefusal: () => number;
}

/**
 * Checks the options of a method, and returns the target of their scope.
 *
 * @param needed The required options besides the scope.
 * @throws `INVALID_ARGUMENT` for options that are missing, unknown or invalid.
 */
export function checkCall(
  method: string,
  options: { readonly scope: MemoryScope } | undefined,
  checks: Readonly<Record<string, OptionCheck>> = {},
  needed: readonly string[] = [],
): ScopeTarget {
  checkOptions(method, options, { scope: isAny, ...checks });
  const given = (options ?? {}) as Readonly<Record<string, unknown>>;
  const names = ['scope', ...needed];
  const missing = names.find((name) => given[name] === undefined);
  if (missing) throw invalidArgument(`${method} needs '${missing}': ${method}({ ${names.join(', ')} }).`);
  return targetOf(options!.scope);
}

/** Kinds of notes. Kinds that begin with `index` are derived: the removal of a memory drops them. */
export const NOTES = { pipeline: 'pipeline', quarantine: 'quarantine', derived: 'index:organized' } as const;
