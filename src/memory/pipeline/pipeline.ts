import { invalidArgument } from '../../errors.ts';
import { checkOptions, isAny, type OptionCheck } from '../../store/check-options.ts';
import type { Memory } from '../../store/memory/contract.ts';
import { targetOf, type MemoryScope, type ScopeTarget } from '../scopes.ts';
import type { MemorySettings } from '../settings.ts';
import type { Generates } from './ask-model.ts';

/** A manager's settings, and its functions that the pipeline uses. */
export interface Pipeline extends MemorySettings {
  readonly ai: Generates;
  /** The memories of a scope that are most similar to a text, at most 10. Only those that hold. */
  readonly nearest: (
    scope: MemoryScope,
    text: string,
    options: { kind: Memory['kind']; abortSignal: AbortSignal },
  ) => Promise<readonly Memory[]>;
  /** By memory id, the time of the last use that is not in the store yet. A job that takes it along, and a commit that writes it, remove the entry. */
  readonly usesOf: (scope: MemoryScope) => Map<string, string>;
  /** To be called after a commit. */
  readonly saveIndex: (scope: MemoryScope) => void;
  /** Counts that the queue was full. Returns the count. */
  readonly countRefusal: () => number;
}

/**
 * Checks the options of a method, and returns their scope.
 *
 * @param needed The options without which the method can do nothing, besides the scope.
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

/** Kinds of notes. Those that begin with `index` are derived: the removal of a memory drops them. */
export const NOTES = { pipeline: 'pipeline', quarantine: 'quarantine', derived: 'index:organized' } as const;
