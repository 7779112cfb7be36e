import type { MessageData } from 'genkit';
import { logger } from 'genkit/logging';
import { logError } from '../../errors.ts';
import { logRejection } from '../../store/parts/notify.ts';
import type { History, HistoryItem, HistoryStrategy, StrategyTools, Summary } from '../types.ts';

/** Applies the strategies in order. One that throws, or returns no history, is logged and leaves the history as it was. */
export function applyStrategies(
  strategies: readonly HistoryStrategy[],
  items: readonly HistoryItem[],
  log: readonly MessageData[],
  tools: StrategyTools,
): History {
  return strategies.reduce<History>(
    (before, strategy, i) => {
      try {
        const after: unknown = strategy(before, tools);
        if (isHistory(after, log)) return after;
        const failure = `History strategy ${i + 1} of a context window returned no history; the turn continues without it.`;
        logger.error(failure);
        logRejection(after, failure);
      } catch (error) {
        logError(`History strategy ${i + 1} of a context window threw; the turn continues without it.`, error);
      }
      return before;
    },
    { items },
  );
}

function isHistory(value: unknown, log: readonly MessageData[]): value is History {
  const { items, summary } = (value ?? {}) as { [K in keyof History]?: unknown };
  if (!Array.isArray(items) || !items.every((item) => isItem(item, log))) return false;
  return summary === undefined || isSummary(summary, log.length);
}

/** Whether it is a message of the session, or a changed copy of one. A position outside the session passes, but is not sent. */
function isItem(value: unknown, log: readonly MessageData[]): value is HistoryItem {
  const { position, message } = (value ?? {}) as Partial<HistoryItem>;
  if (!Number.isInteger(position) || !Array.isArray(message?.content)) return false;
  const own = log[position!] ?? message;
  if (own === message) return true;
  return own.role === message.role && message.content.every((part) => typeof part === 'object' && part !== null);
}

function isSummary(value: unknown, length: number): value is Summary {
  const { text, to } = (value ?? {}) as Partial<Summary>;
  return typeof text === 'string' && Number.isInteger(to) && to! >= 0 && to! <= length;
}
