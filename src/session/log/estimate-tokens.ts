import { estimateTokenCount } from 'tokenx';

/**
 * Letters and digits in one word: an id, a hash, Base64. Such a word has a token for each two characters or less, where `tokenx` would expect
 * one for each seven.
 */
const MIXED_WORD = { pattern: /^(?=[A-Za-z]*\d)[A-Za-z\d]{4,}$/, averageCharsPerToken: 1.8 };

/** Estimated tokens of a text, for OpenAI's current tokenizer; other models have similar counts. */
export function estimateTokens(text: string): number {
  return estimateTokenCount(text, { languageConfigs: [MIXED_WORD] });
}

/** The items that fit into a budget, in their order. An item that is too long is skipped; shorter ones after it may still fit. */
export function fitting<T>(items: readonly T[], tokensOf: (item: T) => number, maxTokens: number): T[] {
  let left = maxTokens;
  return items.filter((item) => {
    const tokens = tokensOf(item);
    if (tokens > left) return false;
    left -= tokens;
    return true;
  });
}
