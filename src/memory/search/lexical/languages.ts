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
const MAX_KNOWN_STEMS = 100_000;

/** Finds the language of a text, and makes index terms of its words. */
export class Stems {
  readonly languages: readonly MemoryLanguage[];
  /** For each stop word, the languages that have it, as bits. */
  readonly #stopWords = new Map<string, number>();
  readonly #stems: Map<string, string>[];

  /** @param languages The first is the language of a text that could be of several. */
  constructor(languages: readonly MemoryLanguage[]) {
    this.languages = languages;
    this.#stems = languages.map(() => new Map<string, string>());
    languages.forEach((language, bit) => {
      for (const word of STEMMERS[language].stopWords) {
        this.#stopWords.set(word, (this.#stopWords.get(word) ?? 0) | (1 << bit));
      }
    });
  }

  /**
   * The language of a text, the one with most of its stop words, as an index into `languages`; and its words without stop words. If it has
   * only stop words, they are its content.
   */
  contentOf(words: readonly string[]): { language: number; content: string[] } {
    const languagesOf = words.map((word) => this.#stopWords.get(word) ?? 0);
    const counts = this.languages.map(() => 0);
    for (const bits of languagesOf.slice(0, SAMPLE_WORDS)) {
      for (let bit = 0; bits >> bit > 0; bit++) counts[bit]! += (bits >> bit) & 1;
    }
    const most = Math.max(...counts);
    const language = most >= counts[0]! + MARGIN ? counts.indexOf(most) : 0;
    const content = words.filter((_, i) => (languagesOf[i]! & (1 << language)) === 0);
    return { language, content: content.length > 0 ? content : [...words] };
  }

  isStopWordOfAny(word: string): boolean {
    return this.#stopWords.has(word);
  }

  /** The index term of a word: its stem, without accents and apostrophes. */
  stem(word: string, language: number): string {
    const known = this.#stems[language]!;
    let stem = known.get(word);
    if (stem === undefined) {
      if (known.size >= MAX_KNOWN_STEMS) known.clear();
      stem = STEMMERS[this.languages[language]!].stem(withoutAffix(word)).normalize('NFD').replace(/\p{M}/gu, '');
      known.set(word, stem);
    }
    return stem;
  }
}

/** "Anna's" is about Anna, "l'eau" about eau. */
function withoutAffix(word: string): string {
  const at = word.indexOf("'");
  if (at < 0) return word;
  return at <= 2 && at < word.length - 2 ? word.slice(at + 1) : word.slice(0, at);
}
