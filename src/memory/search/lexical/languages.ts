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

/** A language whose stems and stop words are known. */
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

/** Another language than the first must have this many stop words more: some words of a short text belong to several languages. */
const MARGIN = 2;
/** The most words by which the language of a text is found. */
const SAMPLE_WORDS = 64;
/** The most words that are kept with their stems. */
const MAX_WORDS = 100_000;

/** Accents, and the vowel marks of Hebrew and Arabic, which are seldom written. The marks of other scripts make other letters. */
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u0655]/g;

/** A word with what the search knows of it: one lookup for each word of a query is enough. */
export interface KnownWord {
  readonly text: string;
  /** The languages that have it as a stop word, as bits. */
  readonly stopWordOf: number;
  /** The number of the month that it names, 1 to 12. */
  readonly month: number | undefined;
  /** By language, its stem. Computed on first use. */
  readonly stems: (string | undefined)[];
}

/** The words of some languages. A language is an index into these. */
export class Vocabulary {
  readonly #languages: readonly MemoryLanguage[];
  /** For each stop word, the languages that have it, as bits. */
  readonly #stopWords = new Map<string, number>();
  readonly #months: ReadonlyMap<string, number>;
  readonly #words = new Map<string, KnownWord>();

  /** @param languages The first is the language of a text that could be of several. */
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

  /** The language of a text: the one with most of its stop words. And its words without stop words; all, if it has only stop words. */
  contentOf(words: readonly KnownWord[]): { language: number; content: readonly KnownWord[] } {
    const counts = this.#languages.map(() => 0);
    for (const { stopWordOf } of words.slice(0, SAMPLE_WORDS)) {
      for (let bit = 0; stopWordOf >> bit > 0; bit++) counts[bit]! += (stopWordOf >> bit) & 1;
    }
    const most = Math.max(...counts);
    const language = most >= counts[0]! + MARGIN ? counts.indexOf(most) : 0;
    const content = words.filter(({ stopWordOf }) => (stopWordOf & (1 << language)) === 0);
    return { language, content: content.length > 0 ? content : words };
  }

  /**
   * The index term of a word: its stem, without accents and apostrophes. An irregular form has two, its own and that of its base, with a space
   * between: "found find". It may be another word as well: "found" is a form of "find", and the base of "founded".
   */
  stem({ text, stems }: KnownWord, language: number): string {
    return (stems[language] ??= this.#stemOf(withoutAffix(text), this.#languages[language]!));
  }

  #stemOf(word: string, language: MemoryLanguage): string {
    const { stem } = STEMMERS[language];
    if (language !== 'english') return plain(stem(word));
    // English words have accents by choice: "résumé", "resume".
    const unaccented = plain(word);
    const base = ENGLISH_FORMS.get(unaccented);
    return base === undefined ? stem(unaccented) : `${stem(unaccented)} ${stem(base)}`;
  }

  #learn(part: string): KnownWord {
    if (this.#words.size >= MAX_WORDS) this.#words.clear();
    // A copy: a part of a text keeps the whole text in memory.
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

/** "Anna's" is about Anna, "l'eau" about eau, "O'Reilly's" about Reilly. */
function withoutAffix(word: string): string {
  const [first, second] = word.split("'") as [string, ...string[]];
  return second !== undefined && first.length <= 2 && second.length >= 2 ? second : first;
}
