/** What is read of a text; a longer one is cut. */
export const MAX_CHARACTERS = 20_000;
/** A longer word is no word. */
const MAX_WORD = 64;

const WORD = /[\p{L}\p{N}\p{M}]+(?:'\p{L}+)*/gu;
/** Written without spaces between words: pairs of characters stand for words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;

/** The words of a text, in lower case. Numbers lose the commas and ordinal endings that they are written with. */
export function wordsOf(text: string): string[] {
  const plain = text
    .slice(0, MAX_CHARACTERS)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[’ʼ`´]/g, "'")
    .replace(/(\d),(?=\d{3}(?!\d))/g, '$1')
    .replace(/(?<!\p{L})(\d+)(?:st|nd|rd|th)(?!\p{L})/gu, '$1')
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
