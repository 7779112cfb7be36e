import { replaceMapped, type MappedText } from '../../offset-map.ts';

/** Digits of all scripts, spaces, dashes, the full-width forms of ASCII, and invisible characters. */
const UNUSUAL = /[^\P{Nd}\d]|\p{No}|[^\P{Zs} ]|[^\P{Pd}-]|[\p{Cf}\u2212\uFF01-\uFF5E]|\uFE0F|\u20E3/gu;

/** The text with these characters as plain ASCII, so that rules need only one spelling: "４１１１ 1111" becomes "4111 1111". */
export function fold(text: string): MappedText {
  // oxlint-disable-next-line no-control-regex
  if (!/[^\u0000-\u007f]/.test(text)) return { text, originOf: (index) => index };
  return replaceMapped(text, UNUSUAL, plain);
}

function plain(character: string): string {
  if (/\p{Nd}/u.test(character)) return digit(character);
  if (/\p{Zs}/u.test(character)) return ' ';
  if (/[\p{Pd}\u2212]/u.test(character)) return '-';
  if (/[\p{Cf}\uFE0F\u20E3]/u.test(character)) return '';
  const compatible = character.normalize('NFKC');
  return compatible.length === 1 ? compatible : character;
}

/** In each script, the code point of the digit zero ends in the hexadecimal digit 0 or 6. */
function digit(character: string): string {
  const compatible = character.normalize('NFKC');
  if (/^\d$/.test(compatible)) return compatible;
  const code = character.codePointAt(0)!;
  const low = code & 15;
  return String(/\p{Nd}/u.test(String.fromCodePoint(code - low)) ? low : low - 6);
}
