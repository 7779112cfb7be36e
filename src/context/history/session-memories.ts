import { checkOptions, isWhole } from '../../store/check-options.ts';
import type { HistoryStrategy } from '../types.ts';

/** Options of {@link sessionMemories}. */
export interface SessionMemoriesOptions {
  /** Turns before the current one that are sent unchanged. Default: 2. */
  keepTurns?: number;
}

/** A registered symbol, so that both module formats know each other's strategies. */
const KEPT_TURNS: unique symbol = Symbol.for('genkitx-agents.session-memories') as never;

/**
 * Sends the facts that were learned from this session in place of the messages that they were learned from. Messages that were not learned
 * from yet are sent unchanged. Needs an agent with the option `memory`.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const window = contextWindow({ history: [sessionMemories({ keepTurns: 3 })] });
 * const support = defineAgent(ai, { name: 'support', model, store, context: window });
 */
export function sessionMemories(options: SessionMemoriesOptions = {}): HistoryStrategy {
  checkOptions('sessionMemories', options, { keepTurns: isWhole(0) });
  const { keepTurns = 2 } = options;
  const strategy: HistoryStrategy = (history, { sessionMemories: facts }) => {
    if (!facts || history.summary) return history;
    return { items: history.items.filter(({ position }) => position >= facts.to), summary: facts };
  };
  return Object.assign(strategy, { [KEPT_TURNS]: keepTurns });
}

/** The `keepTurns` of a strategy of {@link sessionMemories}; `undefined` for another one. */
export function keptTurnsOf(strategy: HistoryStrategy): number | undefined {
  return (strategy as { [KEPT_TURNS]?: number })[KEPT_TURNS];
}
