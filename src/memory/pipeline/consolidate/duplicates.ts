/** The end of a text's last sentence. A question mark is none: "Nuts are fine?" says something else. The texts "..." and "!!!" differ. */
const END = /(?<=[^\s.!。！])[\s.!。！]+$/;

/** An article before a word: "vitamin A" has none. */
const ARTICLE = /(?:^(?:The|An?)|(?<=^|\s)(?:the|an?)) (?=\p{L}{2})/gu;

/**
 * A key that is equal only for texts that say the same. Case, white space, articles, the form of quotes, and full stops and exclamation marks
 * at the end do not count. All else does: "C#" is not "C++", "Hans" is not "Han". A duplicate that this misses is settled later; a fact that it
 * takes for another is lost.
 */
export function sameFactKey(text: string): string {
  return text
    .normalize('NFC')
    .trim()
    .replace(/\s+/g, ' ')
    .replace(ARTICLE, '')
    .replace(END, '')
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .toLowerCase();
}
