import { checkOptions, isWhole } from '../../store/check-options.ts';
import { tokensOf } from '../turns.ts';
import type { HistoryStrategy } from '../types.ts';
import { cutToBudget } from './cut-to-budget.ts';

/** Options of {@link tokenBudget}. */
export interface TokenBudgetOptions {
  /**
   * The fewest tokens that are left out at once. With a larger step the beginning of the requests changes less often, so providers' caches
   * serve more. At most the budget. Default: half of the budget.
   */
  step?: number;
}

/**
 * Keeps the newest turns whose messages take at most `tokens`. A turn is kept whole or not at all.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or no whole number.
 * @example
 * const history = [tokenBudget(4_000)];
 */
export function tokenBudget(tokens: number, options: TokenBudgetOptions = {}): HistoryStrategy {
  checkOptions('tokenBudget', { tokens: tokens ?? null }, { tokens: isWhole(0) });
  checkOptions('tokenBudget', options, { step: isWhole(1, Math.max(1, tokens)) });
  const { step = Math.max(1, Math.floor(tokens / 2)) } = options;
  return (history, { turnsOf, countTokens }) => {
    const turns = turnsOf(history.items);
    const sizes = turns.map((turn) => tokensOf(turn, countTokens));
    const first = cutToBudget(sizes, tokens, step);
    return first === 0 ? history : { ...history, items: turns.slice(first).flat() };
  };
}
