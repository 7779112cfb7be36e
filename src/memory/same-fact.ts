/** The end of a text's last sentence. A question mark is none: "Nuts are fine?" says something else. The texts "..." and "!!!" differ. */
const END = /(?<=[^\s.!。！])[\s.!。！]+$/;

/** A character that is seen. U+2800 is the Braille pattern without dots. */
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** The word "the", except before a single letter. */
const THE = /(?<=^|\s)the (?=\p{L}{2})/gu;

/**
 * A key that is equal only for texts that say the same. The case of the first letter, white space, "the", the form of quotes, and full stops
 * and exclamation marks at the end do not count. All else does: "C#" is not "C++", "Turkey" is not "turkey", "a few" is not "few". A duplicate
 * that this misses is settled later; a fact that it takes for another is lost.
 */
export function sameFactKey(text: string): string {
  return text
    .normalize('NFC')
    .trim()
    .replace(/\s\s+|[^\S ]/g, ' ')
    .replace(/^./u, (first) => first.toLowerCase())
    .replace(THE, '')
    .replace(END, '')
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"');
}

/** Whether a text says nothing: it has only white space and invisible characters. */
export function isBlank(text: string): boolean {
  return !VISIBLE.test(text);
}
