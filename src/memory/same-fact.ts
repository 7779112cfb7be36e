/**
 * Full stops and exclamation marks at the end of a text. A question mark is not included, because "Nuts are fine?" says something else. The
 * texts "..." and "!!!" differ.
 */
const END = /(?<=[^\s.!。！])[\s.!。！]+$/;

/** A visible character. U+2800 is the Braille pattern without dots. */
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** The word "the", except before a single letter. */
const THE = /(?<!\S)the (?=\p{L}{2})/gu;

/**
 * Returns a key that is equal only for texts that state the same fact. It ignores the case of the first letter, white space, "the", the
 * form of quotes, and full stops and exclamation marks at the end. All else counts: "C#" is not "C++", "Turkey" is not "turkey", "a few" is
 * not "few". Missing a duplicate is harmless, because it is found later; equal keys for different facts would lose a fact.
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

/** Whether a text has only white space and invisible characters. */
export function isBlank(text: string): boolean {
  return !VISIBLE.test(text);
}
