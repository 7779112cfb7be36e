import { stemmer as danish } from '@orama/stemmers/danish';
import { stemmer as dutch } from '@orama/stemmers/dutch';
import { stemmer as english } from '@orama/stemmers/english';
import { stemmer as finnish } from '@orama/stemmers/finnish';
import { stemmer as french } from '@orama/stemmers/french';
import { stemmer as german } from '@orama/stemmers/german';
import { stemmer as italian } from '@orama/stemmers/italian';
import { stemmer as norwegian } from '@orama/stemmers/norwegian';
import { stemmer as portuguese } from '@orama/stemmers/portuguese';
import { stemmer as russian } from '@orama/stemmers/russian';
import { stemmer as spanish } from '@orama/stemmers/spanish';
import { stemmer as swedish } from '@orama/stemmers/swedish';
import { stopwords as danishStopWords } from '@orama/stopwords/danish';
import { stopwords as dutchStopWords } from '@orama/stopwords/dutch';
import { stopwords as englishStopWords } from '@orama/stopwords/english';
import { stopwords as finnishStopWords } from '@orama/stopwords/finnish';
import { stopwords as frenchStopWords } from '@orama/stopwords/french';
import { stopwords as germanStopWords } from '@orama/stopwords/german';
import { stopwords as italianStopWords } from '@orama/stopwords/italian';
import { stopwords as norwegianStopWords } from '@orama/stopwords/norwegian';
import { stopwords as portugueseStopWords } from '@orama/stopwords/portuguese';
import { stopwords as russianStopWords } from '@orama/stopwords/russian';
import { stopwords as spanishStopWords } from '@orama/stopwords/spanish';
import { stopwords as swedishStopWords } from '@orama/stopwords/swedish';
import { nameMonths } from './dates.ts';
import { ENGLISH_FORMS } from './irregular-forms.ts';
import { wordsOf } from './words.ts';

/** A language with a stemmer and stop words. */
export type MemoryLanguage =
  | 'danish'
  | 'dutch'
  | 'english'
  | 'finnish'
  | 'french'
  | 'german'
  | 'italian'
  | 'norwegian'
  | 'portuguese'
  | 'russian'
  | 'spanish'
  | 'swedish';

const STEMMERS = {
  danish: { stem: danish, stopWords: danishStopWords },
  dutch: { stem: dutch, stopWords: dutchStopWords },
  english: { stem: english, stopWords: englishStopWords },
  finnish: { stem: finnish, stopWords: finnishStopWords },
  french: { stem: french, stopWords: frenchStopWords },
  german: { stem: german, stopWords: germanStopWords },
  italian: { stem: italian, stopWords: italianStopWords },
  norwegian: { stem: norwegian, stopWords: norwegianStopWords },
  portuguese: { stem: portuguese, stopWords: portugueseStopWords },
  russian: { stem: russian, stopWords: russianStopWords },
  spanish: { stem: spanish, stopWords: spanishStopWords },
  swedish: { stem: swedish, stopWords: swedishStopWords },
} as const satisfies Record<MemoryLanguage, unknown>;

export const MEMORY_LANGUAGES = Object.keys(STEMMERS) as MemoryLanguage[];

/** The default languages. */
export const DEFAULT_LANGUAGES: readonly MemoryLanguage[] = [
  'english',
  'german',
  'french',
  'spanish',
  'italian',
  'portuguese',
  'dutch',
];

/**
 * A language other than the first needs this many more stop words in a text, because some words of a short text belong to several
 * languages.
 */
const MARGIN = 2;
/** The most words of a text that are used to detect its language. */
const SAMPLE_WORDS = 64;
/** The most words that are cached with their stems. */
const MAX_WORDS = 100_000;

/**
 * Accents, and the vowel marks of Hebrew and Arabic, which are seldom written. In other scripts, a letter with a mark is a different
 * letter.
 */
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0655]/g;

/** A word with all data that a search needs, so that each word of a query takes one lookup. */
export interface KnownWord {
  readonly text: string;
  /** A bit for each language in which the word is a stop word. */
  readonly stopWordOf: number;
  /** The month that the word names, 1 to 12. */
  readonly month: number | undefined;
  /** The stem in each language. Computed on first use. */
  readonly stems: (string | undefined)[];
}

/** The words of some languages. A language is an index into these. */
export class Vocabulary {
  readonly #languages: readonly MemoryLanguage[];
  /** For each stop word, a bit for each of its languages. */
  readonly #stopWords = new Map<string, number>();
  readonly #months: ReadonlyMap<string, number>;
  readonly #words = new Map<string, KnownWord>();

  /** @param languages The first is used if the language of a text is ambiguous. */
  constructor(languages: readonly MemoryLanguage[]) {
    this.#languages = languages;
    this.#months = nameMonths(languages);
    languages.forEach((language, bit) => {
      for (const word of STEMMERS[language].stopWords) {
        this.#stopWords.set(word, (this.#stopWords.get(word) ?? 0) | (1 << bit));
      }
    });
  }

  /** The words of a text, in their order. */
  read(text: string): KnownWord[] {
    return wordsOf(text).map((word) => this.#words.get(word) ?? this.#learn(word));
  }

  /**
   * Returns the language of a text (the one with most of the text's stop words), and the text's words without stop words; if it has only
   * stop words, all words.
   */
  contentOf(words: readonly KnownWord[]): { language: number; content: readonly KnownWord[] } {
    const counts = this.#languages.map(() => 0);
    // Many words are stop words of the same languages.
    const frequencies = new Map<number, number>();
    for (const { stopWordOf } of words.slice(0, SAMPLE_WORDS))
      frequencies.set(stopWordOf, (frequencies.get(stopWordOf) ?? 0) + 1);
    for (const [bits, count] of frequencies) {
      for (let bit = 0; bits >> bit > 0; bit++) counts[bit]! += count * ((bits >> bit) & 1);
    }
    const most = Math.max(...counts);
    const language = most >= counts[0]! + MARGIN ? counts.indexOf(most) : 0;
    const content = words.filter(({ stopWordOf }) => (stopWordOf & (1 << language)) === 0);
    return { language, content: content.length > 0 ? content : words };
  }

  /**
   * Returns the index term of a word: its stem, without accents and apostrophes. The term of an irregular form contains two stems, the
   * form's and the base's, with a space between: "found find". Both are needed, because "found" is a form of "find" and also the base of
   * "founded".
   */
  stem({ text, stems }: KnownWord, language: number): string {
    return (stems[language] ??= this.#stemOf(withoutAffix(text), this.#languages[language]!));
  }

  #stemOf(word: string, language: MemoryLanguage): string {
    const { stem } = STEMMERS[language];
    if (language !== 'english') return plain(stem(word));
    // In English words accents are optional: "résumé", "resume".
    const unaccented = plain(word);
    const base = ENGLISH_FORMS.get(unaccented);
    return base === undefined ? stem(unaccented) : `${stem(unaccented)} ${stem(base)}`;
  }

  #learn(part: string): KnownWord {
    if (this.#words.size >= MAX_WORDS) this.#words.clear();
    // Copies the word, because a substring would keep the whole text in memory.
    const text = Buffer.from(part).toString();
    const stems = this.#languages.map(() => undefined);
    const word = { text, stopWordOf: this.#stopWords.get(text) ?? 0, month: this.#months.get(text), stems };
    this.#words.set(text, word);
    return word;
  }
}

function plain(word: string): string {
  return word.normalize('NFD').replace(ACCENTS, '');
}

/** Removes affixes: "Anna's" becomes "Anna", "l'eau" becomes "eau", "O'Reilly's" becomes "Reilly". */
function withoutAffix(word: string): string {
  const [first, second] = word.split("'") as [string, ...string[]];
  return second !== undefined && first.length <= 2 && second.length >= 2 ? second : first;
}
