import { checkOptions, isWhole } from '../../store/check-options.ts';
import type { HistoryStrategy } from '../types.ts';

/** Options of {@link lastTurns}. */
export interface LastTurnsOptions {
  /**
   * Turns that are left out at once. With a larger step the beginning of the requests changes less often, so providers' caches serve more.
   * At most `count`. Default: half of `count`.
   */
  step?: number;
}

/**
 * Keeps the last turns before the current one: at most `count`, and at least `count - step + 1`, because several are left out at once.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or no whole number.
 * @example
 * const history = [lastTurns(10)];
 */
export function lastTurns(count: number, options: LastTurnsOptions = {}): HistoryStrategy {
  checkOptions('lastTurns', { count: count ?? null }, { count: isWhole(0) });
  checkOptions('lastTurns', options, { step: isWhole(1, Math.max(1, count)) });
  const { step = Math.max(1, Math.floor(count / 2)) } = options;
  return (history, { turnsOf }) => {
    const turns = turnsOf(history.items);
    const excess = turns.length - count;
    return excess <= 0 ? history : { ...history, items: turns.slice(Math.ceil(excess / step) * step).flat() };
  };
}
