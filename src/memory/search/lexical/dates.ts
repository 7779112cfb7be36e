import type { MemoryLanguage } from './languages.ts';

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

/** Words that show that the next word is meant as a month. */
const BEFORE_MONTH = new Set(['in', 'of', 'since', 'until', 'by', 'last', 'im', 'seit', 'en', 'em', 'de', 'nel']);

/** The terms of a day: "2023", "month5", "day5-8". None if `at` is no date. */
export function dateTerms(at: string): string[] {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return [];
  const month = date.getUTCMonth() + 1;
  return [`${date.getUTCFullYear()}`, `month${month}`, `day${month}-${date.getUTCDate()}`];
}

/** Finds the months and days that a query names. */
export class DateWords {
  readonly #months = new Map<string, number>();
  readonly #isAlsoOther: (word: string) => boolean;

  /** @param isAlsoOther Whether a month's name has another meaning ("may"); then a number or a word such as "in" must stand beside it. */
  constructor(languages: readonly MemoryLanguage[], isAlsoOther: (word: string) => boolean) {
    this.#isAlsoOther = isAlsoOther;
    for (const language of languages) {
      const format = new Intl.DateTimeFormat(LOCALES[language], { month: 'long', timeZone: 'UTC' });
      for (let month = 0; month < 12; month++) {
        this.#months.set(format.format(Date.UTC(2000, month, 1)).toLowerCase(), month + 1);
      }
    }
  }

  /** The terms of the dates that these words name. */
  termsOf(words: readonly string[]): string[] {
    return words.flatMap((word, i) => {
      const month = this.#months.get(word);
      if (month === undefined) return [];
      const [before = '', after = ''] = [words[i - 1], words[i + 1]];
      const day = [before, after].find((text) => /^(?:[12]?\d|3[01])$/.test(text));
      const isMeant = day !== undefined || /^\d{4}$/.test(after) || BEFORE_MONTH.has(before);
      if (!isMeant && this.#isAlsoOther(word)) return [];
      return day === undefined ? [`month${month}`] : [`month${month}`, `day${month}-${day}`];
    });
  }
}
