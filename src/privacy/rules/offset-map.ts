/** A text made from an original, with a map of its indices to those of the original. */
export interface MappedText {
  readonly text: string;
  /** The index in the original of the code unit at `index`. The end maps to the end of the original. */
  readonly originOf: (index: number) => number;
}

/**
 * Replaces the matches of `pattern`, and maps the new indices to the original ones.
 *
 * @param pattern With the flag `g`. A match must not be empty.
 */
export function replaceMapped(text: string, pattern: RegExp, replace: (match: string) => string): MappedText {
  // The end of each replacement in the new text, and how much larger the original's index is there.
  const places: number[] = [];
  const shifts: number[] = [];
  let made = '';
  let from = 0;
  for (const { 0: match, index } of text.matchAll(pattern)) {
    const replacement = replace(match);
    made += text.slice(from, index) + replacement;
    from = index + match.length;
    if (replacement.length !== match.length) {
      places.push(made.length);
      shifts.push(from - made.length);
    }
  }
  return { text: made + text.slice(from), originOf: (index) => index + (shifts[countUpTo(places, index) - 1] ?? 0) };
}

/** How many of the sorted numbers are at most `limit`. */
function countUpTo(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
