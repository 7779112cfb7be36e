import { checkOptions, isWhole } from '../../store/check-options.ts';
import { turnsOf } from '../turns.ts';
import type { HistoryStrategy } from '../types.ts';

/** Options of {@link sessionMemories}. */
export interface SessionMemoriesOptions {
  /** The last turns before the current one, which are sent as they are. Default: 2. */
  keepTurns?: number;
}

/** The strategies that this module made. On the global object, so that both module formats know each other's. */
const NEEDS_MEMORIES = Symbol.for('genkitx-agents.session-memories');

/**
 * Sends the facts that were learned from this session in place of the messages that they were learned from. What was not learned from yet is
 * sent as it is, and so is everything as long as nothing was learned. Needs an agent with the option `memory`.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const window = contextWindow({ history: [sessionMemories({ keepTurns: 3 })] });
 * const support = defineAgent(ai, { name: 'support', model, store, context: window, memory: memory.attach({ scope: 'user' }) });
 */
export function sessionMemories(options: SessionMemoriesOptions = {}): HistoryStrategy {
  checkOptions('sessionMemories', options, { keepTurns: isWhole(0) });
  const { keepTurns = 2 } = options;
  const strategy: HistoryStrategy = (history, { sessionMemories: facts }) => {
    if (!facts || history.summary) return history;
    const turns = turnsOf(history.items);
    const kept = turns.slice(Math.max(0, turns.length - keepTurns)).flat();
    const first = kept[0]?.position ?? Infinity;
    const items = history.items.filter(({ position }) => position >= facts.to || position >= first);
    return { items, summary: facts };
  };
  return Object.assign(strategy, { [NEEDS_MEMORIES]: true });
}

/** Whether a strategy is one of these. */
export function needsMemories(strategy: HistoryStrategy): boolean {
  return NEEDS_MEMORIES in strategy;
}
