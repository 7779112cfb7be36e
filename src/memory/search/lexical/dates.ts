import type { KnownWord, MemoryLanguage } from './languages.ts';

const LOCALES: Record<MemoryLanguage, string> = {
  danish: 'da',
  dutch: 'nl',
  english: 'en',
  finnish: 'fi',
  french: 'fr',
  german: 'de',
  italian: 'it',
  norwegian: 'nb',
  portuguese: 'pt',
  russian: 'ru',
  spanish: 'es',
  swedish: 'sv',
};

/** Words after which an ambiguous word ("may") is a month. */
const BEFORE_MONTH = new Set(['in', 'of', 'since', 'until', 'by', 'last', 'im', 'seit', 'en', 'em', 'de', 'nel']);

/** The beginning of a question about a time: "When", "Since when", "For how long". */
const ASKS_TIME = /^\s*(?:\w+ )?(?:when|how long)\b/i;

const NAMES_TIME =
  /\b(?:yesterday|today|tomorrow|tonight|ago|since|(?:day|week|weekend|month|year)s?|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b/i;

/** Whether an English query asks for a time. */
export function asksTime(query: string): boolean {
  return ASKS_TIME.test(query);
}

/** Whether an English text names a time without a date, such as "last week". */
export function namesTime(text: string): boolean {
  return NAMES_TIME.test(text);
}

/** Returns the terms of a day: "2023", "month5", "day5-8". None if `at` is not a date. */
export function dateTerms(at: string): string[] {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return [];
  const month = date.getUTCMonth() + 1;
  return [`${date.getUTCFullYear()}`, `month${month}`, `day${month}-${date.getUTCDate()}`];
}

/** The names of the months in these languages, each with its number. */
export function nameMonths(languages: readonly MemoryLanguage[]): Map<string, number> {
  const months = new Map<string, number>();
  for (const language of languages) {
    const format = new Intl.DateTimeFormat(LOCALES[language], { month: 'long', timeZone: 'UTC' });
    for (let month = 0; month < 12; month++) {
      months.set(format.format(Date.UTC(2000, month, 1)).toLowerCase(), month + 1);
    }
  }
  return months;
}

/**
 * Returns the terms of the dates that a query names. A month whose name has another meaning ("may") counts only next to a number or after a
 * word such as "in".
 */
export function findDateTerms(words: readonly KnownWord[]): string[] {
  return words.flatMap(({ month, stopWordOf }, i) => {
    if (month === undefined) return [];
    const [before = '', after = ''] = [words[i - 1]?.text, words[i + 1]?.text];
    const day = [before, after].find((text) => /^(?:[12]?\d|3[01])$/.test(text));
    const isMeant = day !== undefined || /^\d{4}$/.test(after) || BEFORE_MONTH.has(before);
    if (!isMeant && stopWordOf !== 0) return [];
    return day === undefined ? [`month${month}`] : [`month${month}`, `day${month}-${day}`];
  });
}
