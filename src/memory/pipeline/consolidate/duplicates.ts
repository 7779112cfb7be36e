/** Words that change nothing about a fact. */
const FILLERS = new Set(['a', 'an', 'the', 'really', 'very', 'also', 'just', 'now', 'currently']);

/**
 * A key that is equal for texts with the same words. Case, punctuation, articles, fillers and plural endings do not count; order, numbers
 * and negations do.
 */
export function sameFactKey(text: string): string {
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/\p{L}+(?:'\p{L}+)?|\p{N}+(?:[.,:]\p{N}+)*/gu) ?? [];
  const kept = words.filter((word) => !FILLERS.has(word)).map(stem);
  return kept.length > 0 ? kept.join(' ') : text.trim().toLowerCase();
}

function stem(word: string): string {
  const root = word.replace(/'s$/, '');
  return root.length > 3 ? root.replace(/(?<![su'])s$/, '') : root;
}
