import type { MessageData } from 'genkit';
import type { HistoryItem } from './types.ts';

/** The items by turn. A turn begins with a user message; messages before the first one are a turn of their own. */
export function turnsOf(items: readonly HistoryItem[]): HistoryItem[][] {
  const turns: HistoryItem[][] = [];
  for (const item of items) {
    if (item.message.role === 'user' || turns.length === 0) turns.push([item]);
    else turns.at(-1)!.push(item);
  }
  return turns;
}

/** The tokens of the items' messages. */
export function tokensOf(items: readonly HistoryItem[], countTokens: (message: MessageData) => number): number {
  return items.reduce((total, { message }) => total + countTokens(message), 0);
}
