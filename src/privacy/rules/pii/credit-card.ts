import validator from 'validator';
import { digitRuns, type DigitGroup } from './patterns/digit-groups.ts';
import { patternRule, type Span } from './patterns/pattern-rule.ts';

const SEPARATOR = /^(?:[ \t]{0,2}[-./_|·•]?[ \t]{0,2}|\r?\n)$/;
const MIN_DIGITS = 13;
const MAX_DIGITS = 19;

/** Card numbers of the large brands, with a valid check digit. */
export const creditCard = patternRule('credit-card', 64, function* (text): Generator<Span> {
  for (const run of digitRuns(text, SEPARATOR)) {
    for (let from = 0; from < run.length; from++) {
      const to = endOfCard(text, run, from);
      if (to === undefined) continue;
      const card = run.slice(from, to);
      yield { start: card[0]!.start, end: card.at(-1)!.end, canonical: card.map(({ digits }) => digits).join('') };
      from = to - 1;
    }
  }
});

/** The index after the last group of the card that begins at the group `from`. */
function endOfCard(text: string, run: readonly DigitGroup[], from: number): number | undefined {
  let digits = '';
  for (let to = from + 1; to <= run.length; to++) {
    digits += run[to - 1]!.digits;
    if (digits.length > MAX_DIGITS) return undefined;
    if (digits.length >= MIN_DIGITS && isCard(text, run.slice(from, to), digits)) return to;
  }
  return undefined;
}

function isCard(text: string, groups: readonly DigitGroup[], digits: string): boolean {
  return (
    isGroupedLikeCard(groups) &&
    hasLengthOfBrand(digits) &&
    validator.isCreditCard(digits) &&
    standsAlone(text, groups[0]!.start, groups.at(-1)!.end)
  );
}

/** `validator` accepts any length for some brands. */
function hasLengthOfBrand(digits: string): boolean {
  if (digits.startsWith('4')) return [13, 16, 19].includes(digits.length);
  return !/^(?:5[1-5]|2)/.test(digits) || digits.length === 16;
}

/** Whether the digits are one piece, pieces of one size with another size at the end, or 4-6-5 or 4-6-4: no other numbers in a row. */
function isGroupedLikeCard(groups: readonly DigitGroup[]): boolean {
  const sizes = groups.map(({ digits }) => digits.length);
  if (/^4,6,[45]$/.test(sizes.join(',')) || sizes.length === 1) return true;
  return sizes.slice(0, -1).every((size) => size === sizes[0]) && sizes.at(-1)! <= Math.max(sizes[0]!, 7);
}

/** Whether this is neither an article number nor a part of a fraction, a hash or a part number. Letters may touch it, but not letters with digits. */
function standsAlone(text: string, start: number, end: number): boolean {
  const before = text.slice(Math.max(0, start - 16), start);
  const after = text.slice(end, end + 12);
  if (/\b(?:EAN|GTIN|ISBN|UPC|IMEI)\D{0,8}$/i.test(before)) return false;
  if (/\d\.$|(?:^|[^\d,])0,$/.test(before) || /^\.\d/.test(after)) return false;
  return !/\d[A-Za-z]+$/.test(before) && !/^[A-Za-z]+\d/.test(after);
}
