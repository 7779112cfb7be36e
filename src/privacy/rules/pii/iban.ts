import validator from 'validator';
import { patternRule, type Span } from './patterns/pattern-rule.ts';

const BEGINNING = /(?<![A-Za-z\d])[A-Z]{2} ?\d\d(?=[ \t.-]{0,2}[A-Z\d])/gi;
const LONGEST = 34;
/** With separators. */
const LONGEST_WRITTEN = 80;

/** International bank account numbers of the known countries, with valid check digits. */
export const iban = patternRule('iban', LONGEST_WRITTEN, function* (text): Generator<Span> {
  let searched = 0;
  for (const { index: start } of text.matchAll(BEGINNING)) {
    if (start < searched) continue;
    const found = longestIban(text, start);
    if (!found) continue;
    searched = found.end;
    yield found;
  }
});

/** Tries each end of a group, because words may follow the number after a plain space. */
function longestIban(text: string, start: number): Span | undefined {
  const window = text.slice(start, start + LONGEST_WRITTEN);
  let compact = '';
  let found: Span | undefined;
  for (const { 0: piece, index } of window.matchAll(/[A-Za-z\d]+|[^A-Za-z\d]+/g)) {
    if (!/^[A-Za-z\d]/.test(piece)) {
      if (!/^[ \t.-]{1,2}$|^\r?\n$/.test(piece)) break;
      continue;
    }
    compact += piece.toUpperCase();
    if (compact.length > LONGEST) break;
    const end = start + index + piece.length;
    if (compact.length >= 15 && validator.isIBAN(compact)) found = { start, end, canonical: compact };
  }
  return found;
}
