/** Words that change nothing about a fact. */
const FILLERS = new Set(['a', 'an', 'the', 'really', 'very', 'also', 'just', 'now', 'currently']);

/**
 * A text that is the same for texts that say the same with the same words: case, punctuation, articles, fillers and the ending of a plural do not
 * count; order, numbers and negations do.
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
