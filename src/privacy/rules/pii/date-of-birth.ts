import { patternRule, textBefore, type Span } from './patterns/pattern-rule.ts';

/** With digits: 1985-03-12, 12.03.1985, 3/12/85, 1985年3月12日, 19850312. */
const NUMERIC =
  /(?<![\d.-]|\d\/)(?:(?:19|20)\d\d[-./年] ?\d{1,2}[-./月] ?\d{1,2}日?|\d{1,2} ?[-./] ?\d{1,2} ?[-./] ?(?:(?:19|20)\d\d|\d\d)|(?:19|20)\d\d[01]\d[0-3]\d|\d{4}년 ?\d{1,2}월 ?\d{1,2}일)(?!\d|[-./]\d)/g;
/** With the month as a word: 12 March 1985, 12-Mar-1985, 12. März 1985, 12 de marzo de 1985. */
const DAY_FIRST =
  /(?<!\d)\d{1,2}(?:[.º°]|er|st|nd|rd|th)?[ -](?:of |de |d')?\p{L}{3,}\.?[ ,-] ?(?:de |del )?(?:19|20)\d\d(?!\d)/gu;
/** March 12th, 1985 */
const MONTH_FIRST = /(?<!\p{L})\p{L}{3,}\.? \d{1,2}(?:st|nd|rd|th)?,? (?:19|20)\d\d(?!\d)/gu;

/** Words for a date of birth, also as names of members: birthDate, date_of_birth. */
const WORD =
  /date[ _-]?of[ _-]?birth|birth[ _-]?(?:date|day)|\bd\.?[ ]?o\.?[ ]?b\b\.?|\bborn\b|\(b\.|geburts(?:datum|tag)|\bgeboren\b|\bgeb\.|naissance|\bn[ée]+\(?e?\)? le|anniversaire|nacimiento|\bnacid[oa]|\bnaci[óo]|cumplea[ñn]os|nascita|\bnat[oa]\b|compleanno|nascimento|\bnascid[oa]|\bnasci\b|anivers[aá]rio|geboortedatum|\bverjaardag|urodzeni|\burodzon[ya]|\bur\.|födelsedatum|\bfödd\b|fødselsdato|\bfødt\b|syntymäaika|\bsyntynyt|narození|\bnarozen|doğum|рожден|родил|народж|γέννησης|تاريخ الميلاد|תאריך לידה|生年月日|出生|生日|誕生日|생년월일|생일|जन्म/giu;
/** Words of other dates, and the end of a sentence: after these, a date does not belong to the word before. */
const OTHER_DATE =
  /[.!?。！？]\s+\p{Lu}|[;\n][^;\n:=]{1,40}[:=]|expir|issue|invoice|order|valid|until|since|due\b|ausgestellt|gültig|rechnung|bestell|caduc|vence|emisi|émis|expire|factur|scad|verloopt/iu;
const REACH = 48;
const REACH_AFTER = 24;

/** Dates near a word for a date of birth, in some twenty languages. */
export const dateOfBirth = patternRule('date-of-birth', 96, function* (text, label): Generator<Span> {
  if (!/\d/.test(text)) return;
  for (const pattern of [NUMERIC, DAY_FIRST, MONTH_FIRST]) {
    for (const { 0: date, index: start } of text.matchAll(pattern)) {
      const end = start + date.length;
      if (isPlausible(date) && isBirthDate(text, start, end, label)) yield { start, end };
    }
  }
});

function isBirthDate(text: string, start: number, end: number, label: string | undefined): boolean {
  const before = textBefore(text, start, label, REACH);
  const word = [...before.matchAll(WORD)].at(-1);
  if (word && !/\d{4}/.test(before.slice(word.index)) && !OTHER_DATE.test(before.slice(word.index + word[0].length)))
    return true;
  // "am 12.03.1985 geboren", "12/03/1985 (DOB)"
  const after = text.slice(end, end + REACH_AFTER);
  const next = after.matchAll(WORD).next().value;
  return next !== undefined && /^[\s(,]{1,3}$/.test(after.slice(0, next.index));
}

/** Whether such a month and day exist, so that part numbers are not taken for dates. */
function isPlausible(date: string): boolean {
  const numbers = (
    /^\d{8}$/.test(date) ? [date.slice(0, 4), date.slice(4, 6), date.slice(6)] : date.match(/\d+/g)!
  ).map(Number);
  const [first, second] = numbers.filter((number) => number < 1900);
  return (
    numbers.every((number, i) => number > 0 || i === 2) &&
    first! <= 31 &&
    (second === undefined || (second <= 31 && (numbers.length < 3 || Math.min(first!, second) <= 12)))
  );
}
