import {
  checkOptions,
  isBoolean,
  isFunction,
  isListOf,
  isNumber,
  isObject,
  isOneOf,
  isTimerMs,
  isWhole,
  type OptionCheck,
} from '../../store/check-options.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import { MEMORY_TOOLS } from '../memory-tool-names.ts';
import type { AttachOptions, MemoryPlacement, MemoryToolName } from './types.ts';

/** {@link AttachOptions} with all defaults applied. */
export interface AttachSettings {
  readonly scopes: readonly MemoryScopeId['scope'][];
  readonly k: number;
  readonly maxTokens: number;
  readonly deadlineMs: number;
  readonly minScore: number | undefined;
  readonly profile: MemoryPlacement | 'none';
  readonly memories: MemoryPlacement | 'tool';
  readonly tools: readonly MemoryToolName[];
  readonly learn: boolean;
  readonly onReport: AttachOptions['onReport'];
}

const KINDS = new Set<unknown>(['user', 'session', 'app']);
const PLACES = ['system', 'before-history', 'before-prompt'] as const;

const isScope: OptionCheck = (value) => {
  const kinds: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isOne = kinds.length > 0 && kinds.every((kind) => KINDS.has(kind)) && new Set(kinds).size === kinds.length;
  return isOne ? undefined : "'user', 'session' or 'app', or a list of these";
};

const isTools = isListOf(isOneOf(...MEMORY_TOOLS), "'load_memory', 'create_memory' and 'forget_memory'");

/**
 * Checks the options, and applies the defaults.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function settleAttach(options: AttachOptions): AttachSettings {
  checkOptions('memory.attach', options, {
    scope: isScope,
    preload: isObject,
    placement: isObject,
    tools: isTools,
    learn: isBoolean,
    onReport: isFunction,
  });
  const { scope = 'user', preload = {}, placement = {}, learn = true } = options;
  checkOptions('memory.attach: preload', preload, {
    k: isWhole(1, 50),
    maxTokens: isWhole(0),
    deadlineMs: isTimerMs(0),
    minScore: isNumber,
  });
  checkOptions('memory.attach: placement', placement, {
    profile: isOneOf(...PLACES, 'none'),
    memories: isOneOf(...PLACES, 'tool'),
  });
  const { k = 10, maxTokens = 1_000, deadlineMs = 200, minScore } = preload;
  const { profile = 'system', memories = 'before-prompt' } = placement;
  const tools = options.tools ?? (memories === 'tool' ? ['load_memory' as const] : []);
  return {
    scopes: typeof scope === 'string' ? [scope] : scope,
    k,
    maxTokens,
    deadlineMs,
    minScore,
    profile,
    memories,
    tools: [...new Set(tools)],
    learn,
    onReport: options.onReport,
  };
}
