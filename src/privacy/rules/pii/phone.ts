import { parsePhoneNumberFromString, type CountryCode, type PhoneNumber } from 'libphonenumber-js/max';
import type { PrivacyRule } from '../types.ts';
import { digitRuns, type DigitGroup } from './patterns/digit-groups.ts';
import { patternRule, textBefore, type Span } from './patterns/pattern-rule.ts';

/** The countries whose national formats are always tried, in this order. */
const COUNTRIES: readonly CountryCode[] = [
  ...(['DE', 'FR', 'GB', 'IT', 'NL', 'AT', 'CH', 'BE', 'SE', 'AU', 'JP', 'IN', 'IE', 'FI', 'KR'] as const),
  ...(['US', 'ES', 'PL', 'PT', 'BR', 'MX', 'DK', 'NO', 'CZ', 'CN'] as const),
];

const SEPARATOR = /^[ \t]?\)?[ \t]?[-./]?[ \t]?\(?$/;
const MIN_DIGITS = 7;
const MAX_DIGITS = 15;

/** A word that says that a telephone number follows. */
const WORD =
  /(?:phone|\btele?ph?|\btel\b|mobile?|\bcell|handy|\bfax|\bcall|\bdial|\btext|whats ?app|signal|\bsms\b|\breach|contact|hotline|\bring\b|ruf\b|nummer\b|erreich|t[ée]l[ée]fono?|m[oó]vil|celular|ll[aá]m|portable|appel|joindre|cellulare|chiam|mobiel|bel\b|bellen|my number|mein nummer|telefon|telemóvel|ligue|zadzwo|kom[oó]rk|тел|звон|моб|номер|電話|电话|手机|携帯|전화|هاتف)/gi;
/** Between that word and the number. */
const BETWEEN =
  /^\p{L}{0,8}(?:(?!id\b|ref\b|pin\b|key\b)[\s:=.,()"'–-]|\p{L}{1,3}(?!\p{L})|number|phone|anytime|back|home|office|work|numéro|número|numero|unter)*$/iu;
/** A word that says that a number of another kind follows. */
const OTHER_NUMBER =
  /(?:order|part|invoice|serial|ticket|case|\bref|item|sku|\bp\/?n\b|\bs\/?n\b|\bids?\b|model|batch|\blot\b|track|version|bestell|kunden|steuer|rechnung|auftrag|artikel|vertrag|commande|facture|pedido|factura|ordine|fattura)\p{L}{0,10}\.?(?: ?(?:no|nr|num|number|id|code)\b\.?)?[\s:#.=-]{0,3}$/iu;
/** A date, which is never a telephone number. */
const DATE = /^(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|[0-3]?\d[-./][0-3]?\d[-./](?:19|20)\d\d)(?!\d)/;

/** Sizes of digit groups that few other numbers have: (415) 555-2671, 1-415-555-2671, 612 34 56 78, 98765 43210, 131 2345 6789. */
const GROUPS_WITHOUT_ZERO = /^(?:(?:1,)?3,3,4|3,2,2,2|3,3,3|3,4,4|5,5)$/;
/** Countries that write 612 345 678. */
const BY_THREES: ReadonlySet<string | undefined> = new Set(['ES', 'PL', 'PT', 'CZ']);
const GROUPS_AFTER_BRACKET = /^(?:3,3,4|2,[45],4|3,\d,?\d?,?\d?)$/;

interface Attempt {
  readonly text: string;
  readonly groups: readonly DigitGroup[];
  /** The digits of all groups. */
  readonly digits: string;
}

/**
 * Telephone numbers with `+`, and national ones that are grouped as in their country or follow a word that announces them.
 *
 * @param countries National numbers of these count in any grouping. Default: none; {@link COUNTRIES} are tried in any case.
 */
export function phone(countries?: readonly CountryCode[]): PrivacyRule {
  const own = countries ?? [];
  return patternRule('phone', 40, function* (text, label): Generator<Span> {
    for (const run of digitRuns(text, SEPARATOR)) {
      // The index of the group at the beginning, after a date, or after a number: no unrelated group stands before it.
      let fresh = 0;
      for (let from = 0; from < run.length; from++) {
        const { start } = run[from]!;
        const isDate = text[start - 1] !== '+' && DATE.test(text.slice(start, start + 11));
        const found = isDate ? undefined : numberAt(text, run, from, from === fresh, own, label);
        if (found) yield found.span;
        if (!isDate && !found) continue;
        fresh = from + (found?.groups ?? 3);
        from = fresh - 1;
      }
    }
  });
}

/** The longest valid number that begins at the group `from`. */
function numberAt(
  text: string,
  run: readonly DigitGroup[],
  from: number,
  isFresh: boolean,
  own: readonly CountryCode[],
  label: string | undefined,
): { span: Span; groups: number } | undefined {
  const first = run[from]!;
  const lead = /(?:\+[ \t]?\(?|\(\+?)$/.exec(text.slice(Math.max(0, first.start - 3), first.start))?.[0] ?? '';
  const start = first.start - lead.length;
  if (!mayBegin(text, start, lead)) return undefined;
  if (!lead.includes('+') && OTHER_NUMBER.test(textBefore(text, start, label, 40))) return undefined;
  const isAnnounced = follows(text, start, label);
  if (!isFresh && !isAnnounced && lead === '') return undefined;
  for (let to = endOfLongest(run, from); to > from; to--) {
    const groups = run.slice(from, to);
    const digits = groups.map((group) => group.digits).join('');
    if (digits.length < MIN_DIGITS) return undefined;
    const { end } = groups.at(-1)!;
    if (!mayEnd(text, end)) continue;
    // A bracket that is not closed within the number stands around it.
    const written = text.slice(start, end);
    const isOpen = lead.startsWith('(') && written.split('(').length > written.split(')').length;
    const attempt = { text: written.slice(isOpen ? 1 : 0), groups, digits };
    const number = lead.includes('+') ? international(attempt) : national(attempt, own, isAnnounced);
    if (number) return { span: { start: isOpen ? start + 1 : start, end, canonical: number }, groups: to - from };
  }
  return undefined;
}

/** The index after the last group that keeps the count of digits within the limit. */
function endOfLongest(run: readonly DigitGroup[], from: number): number {
  let digits = 0;
  let to = from;
  while (to < run.length && digits + run[to]!.digits.length <= MAX_DIGITS + 3) digits += run[to++]!.digits.length;
  return to;
}

/** Whether a number may begin here: not inside a word, a part number, a fraction or a sum. */
function mayBegin(text: string, start: number, lead: string): boolean {
  const before = text.slice(Math.max(0, start - 2), start);
  return lead.includes('+') ? !/[\d.]$/.test(before) : !/[A-Za-z\d_#$€£@%+]$|[A-Za-z][-/]$|[\d)][-./:]$/.test(before);
}

function mayEnd(text: string, end: number): boolean {
  const after = text.slice(end, end + 8);
  return !/^(?:[A-Za-z_%°€$£@\d]|[-./:]\d|[-/][A-Za-z]|\s?(?:km|m|kg|g|mm|EUR|USD|GBP|CHF|PLN|CZK|euros?|dollars?|zł|Kč|kr|Ft|€|\$)(?!\p{L}))/iu.test(
    after,
  );
}

function follows(text: string, start: number, label: string | undefined): boolean {
  const before = textBefore(text, start, label, 40);
  const last = [...before.matchAll(WORD)].at(-1);
  return last !== undefined && BETWEEN.test(before.slice(last.index + last[0].length));
}

function international({ text, groups, digits }: Attempt): string | undefined {
  // A latitude and a longitude: +40.6894-074.0447
  if (/^\+\d{1,3}\.\d{4,}[+-]/.test(text)) return undefined;
  const number = parse(text);
  if (number?.isValid()) return number.number;
  return number?.isPossible() && (groups.length > 1 || digits.length >= 10) ? number.number : undefined;
}

function national(attempt: Attempt, own: readonly CountryCode[], isAnnounced: boolean): string | undefined {
  const { text, digits, groups } = attempt;
  if (/^\d+\.\d+$/.test(text) && !isAnnounced) return undefined;
  if (groups.length === 1 && digits.length <= MIN_DIGITS) return undefined;
  if (digits.startsWith('00')) return international({ ...attempt, text: `+${digits.slice(2)}` });
  for (const country of own) {
    const number = parse(text, country);
    if (number?.isValid() && (isAnnounced || groups.length > 1 || isMobile(number))) return number.number;
  }
  if (!isAnnounced && !isShapedLikeNumber(attempt)) return undefined;
  for (const country of COUNTRIES) {
    const number = parse(text, country);
    if (number?.isValid() && (isAnnounced || fits(number, attempt))) return number.number;
  }
  const isLong = groups.length > 1 || digits.length > 9;
  return (isAnnounced && isLong) || /^\(\d{3}\) ?\d{3}-\d{4}$/.test(text) ? digits : undefined;
}

function isShapedLikeNumber({ text, groups, digits }: Attempt): boolean {
  const sizes = groups.map((group) => group.digits.length).join(',');
  if (text.startsWith('(')) return digits.startsWith('0') || GROUPS_AFTER_BRACKET.test(sizes);
  if (digits.startsWith('0')) return digits.length >= 9 && digits.length <= 13 && groups[0]!.digits.length > 1;
  return GROUPS_WITHOUT_ZERO.test(sizes);
}

/** Whether a number that no word announces is written as its country writes it. */
function fits(number: PhoneNumber, { digits, groups, text }: Attempt): boolean {
  if (digits.startsWith('0')) return groups.length > 1 || (digits.length > 9 && isMobile(number));
  if (text.startsWith('(')) return true;
  const sizes = groups.map((group) => group.digits.length).join(',');
  // Large numbers have the same groups.
  if (sizes === '3,3,3') return isMobile(number) && BY_THREES.has(number.country);
  const usual = number
    .formatNational()
    .replace(/^0/, '')
    .split(/\D+/)
    .filter((group) => group !== '');
  return sizes.replace(/^1,/, '') === usual.map((group) => group.length).join(',');
}

function isMobile(number: PhoneNumber): boolean {
  return number.getType() === 'MOBILE';
}

function parse(text: string, defaultCountry?: CountryCode): PhoneNumber | undefined {
  return parsePhoneNumberFromString(text, { defaultCountry, extract: false });
}
