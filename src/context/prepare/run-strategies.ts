import { logger } from 'genkit/logging';
import { describeThrown } from '../../errors.ts';
import type { History, HistoryItem, HistoryStrategy, StrategyTools, Summary } from '../types.ts';

/** Applies the strategies in order. One that throws, or returns no history, is logged and leaves the history as it was. */
export function applyStrategies(
  strategies: readonly HistoryStrategy[],
  items: readonly HistoryItem[],
  tools: StrategyTools,
): History {
  return strategies.reduce<History>(
    (before, strategy, i) => {
      try {
        const after: unknown = strategy(before, tools);
        if (isHistory(after, items.length)) return after;
        logger.error(`History strategy ${i + 1} of a context window returned no history; the turn goes on without it.`);
      } catch (error) {
        logger.error(
          `History strategy ${i + 1} of a context window threw; the turn goes on without it. ${describeThrown(error)}`,
        );
      }
      return before;
    },
    { items },
  );
}

function isHistory(value: unknown, length: number): value is History {
  const { items, summary } = (value ?? {}) as { [K in keyof History]?: unknown };
  return Array.isArray(items) && items.every(isItem) && (summary === undefined || isSummary(summary, length));
}

function isItem(value: unknown): value is HistoryItem {
  const { position, message } = (value ?? {}) as Partial<HistoryItem>;
  return Number.isInteger(position) && Array.isArray(message?.content);
}

function isSummary(value: unknown, length: number): value is Summary {
  const { text, to } = (value ?? {}) as Partial<Summary>;
  return typeof text === 'string' && Number.isInteger(to) && to! >= 0 && to! <= length;
}
