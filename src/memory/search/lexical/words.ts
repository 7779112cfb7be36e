/** The most characters of a text that are read. */
export const MAX_CHARACTERS = 20_000;
/** A longer word is ignored. */
const MAX_WORD = 64;

const WORD = /[\p{L}\p{N}\p{M}]+(?:'\p{L}+)*/gu;
/** Scripts without spaces between words: pairs of characters serve as words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;

/** The words of a text, in lower case. Numbers are without commas and ordinal endings. */
export function wordsOf(text: string): string[] {
  const plain = text
    .slice(0, MAX_CHARACTERS)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[’ʼ`´]/g, "'")
    .replace(/(\d),(?=\d{3}(?!\d))/g, '$1')
    .replace(/(?<![\p{L}\d])(\d{1,20})(?:st|nd|rd|th)(?!\p{L})/gu, '$1')
    .replace(UNSPACED, pairs);
  return (plain.match(WORD) ?? []).filter((word) => word.length <= MAX_WORD);
}

function pairs(run: string): string {
  const characters = Array.from(run);
  if (characters.length < 3) return ` ${run} `;
  return ` ${characters
    .slice(1)
    .map((character, i) => characters[i]! + character)
    .join(' ')} `;
}
