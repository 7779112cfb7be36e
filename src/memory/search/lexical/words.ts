/** The most characters of a text that are read. */
export const MAX_CHARACTERS = 20_000;
/** The most characters of a word. A longer word is cut. */
const MAX_WORD = 64;

/** Most texts have no other characters, and are split several times faster. */
const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORD = /[a-z0-9]+(?:'[a-z]+)*/g;
const WORD = /[\p{L}\p{N}\p{M}]+(?:'\p{L}+)*/gu;
/**
 * In scripts without spaces between words, and in Korean, whose nouns have particles attached, each pair of characters is a word. A Korean
 * noun of one syllable with a particle is not found by the noun alone or with another particle. Tibetan needs no pairs, because it
 * separates syllables. `ー` lengthens a vowel in Hiragana and Katakana, and belongs to neither script.
 */
const PAIRED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
/** A character with its marks. */
const CHARACTER = /\P{M}\p{M}*|\p{M}+/gu;

/**
 * Returns the words of a text in lower case, and numbers without commas and ordinal endings. A text without letters and numbers, for
 * example emoji, is split at spaces.
 */
export function wordsOf(text: string): string[] {
  const read = text.slice(0, MAX_CHARACTERS);
  const isAscii = ASCII.test(read);
  const plain = isAscii ? withPlainNumbers(read.toLowerCase().replaceAll('`', "'")) : normalized(read);
  const words = plain.match(isAscii ? ASCII_WORD : WORD) ?? plain.match(/\S+/g) ?? [];
  return words.map((word) => (word.length > MAX_WORD ? word.slice(0, MAX_WORD) : word));
}

function normalized(text: string): string {
  const lower = text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[’ʼ`´]/g, "'")
    .replaceAll('ß', 'ss');
  return withPlainNumbers(lower).replace(PAIRED, pairs);
}

function withPlainNumbers(text: string): string {
  if (!/\d/.test(text)) return text;
  return text
    .replace(/(\d),(?=\d{3}(?!\d))/g, '$1')
    .replace(/(?<![\p{L}\d])(\d{1,20})(?:st|nd|rd|th)(?!\p{L})/gu, '$1');
}

function pairs(run: string): string {
  const characters = run.match(CHARACTER)!;
  if (characters.length < 3) return ` ${run} `;
  return ` ${characters
    .slice(1)
    .map((character, i) => characters[i]! + character)
    .join(' ')} `;
}
