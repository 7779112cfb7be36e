import { jsonEqual } from '../../../json/value.ts';
import type { Memory } from '../../../store/memory/contract.ts';
import { insertBest } from '../../../store/parts/insert-best.ts';
import { lastSaid } from '../rank.ts';
import { dateTerms, findDateTerms } from './dates.ts';
import { DialogueMap, isMessage } from './dialogue.ts';
import type { Vocabulary } from './languages.ts';
import { MAX_TERMS, TermIndex } from './term-index.ts';

/** The best hits, at most this many, share their score with their neighbours. The others are left out. */
const MAX_SPREADING = 500;

/** A memory that has terms of a query, or is the neighbour of such a message. */
export interface LexicalHit {
  readonly memory: Memory;
  /** Comparable within a search only. */
  readonly score: number;
  /** The time of its last source, in ms since 1970. */
  readonly saidAt: number;
}

/** The result of a search by words. */
export interface LexicalHits {
  /** Best first. */
  readonly hits: readonly LexicalHit[];
  /** 0 to 1: the largest share of the query's terms that a memory has, of those that count. */
  readonly coverage: number;
}

/** The terms of the memories of one scope. */
export class LexicalIndex {
  readonly #vocabulary: Vocabulary;
  /** By id, the number of each memory in the index. */
  readonly #numbers = new Map<string, number>();
  /** By number. Removed and replaced memories keep a place. */
  readonly #memories: (Memory | undefined)[] = [];
  /** By number, the time of each memory's last source: parsing these times in each search takes a sixth of it. */
  readonly #saidAt: number[] = [];
  readonly #dialogue = new DialogueMap();
  /** The languages of the memories, as numbers of the vocabulary. */
  readonly #languages = new Set<number>();
  readonly #terms: TermIndex;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.#terms = new TermIndex((memory, field) => (field === 'text' ? this.#termsOf(memory) : datesOf(memory)));
  }

  get size(): number {
    return this.#numbers.size;
  }

  memories(): Memory[] {
    return Array.from(this.#numbers.values(), (number) => this.#memories[number]!);
  }

  /** Adds a memory, or replaces the one with its id. */
  put(memory: Memory): void {
    this.remove(memory.id);
    const number = this.#terms.put(memory);
    this.#numbers.set(memory.id, number);
    this.#memories[number] = memory;
    this.#saidAt[number] = lastSaid(memory);
    this.#dialogue.add(number, memory);
  }

  /** Replaces a memory whose text is the same: its confidence, importance or sources have changed. */
  refresh(memory: Memory): void {
    const number = this.#numbers.get(memory.id);
    if (number === undefined) return;
    // Its sources are its places in dialogues.
    if (!jsonEqual(memory.sources, this.#memories[number]!.sources)) return this.put(memory);
    this.#memories[number] = memory;
    this.#saidAt[number] = lastSaid(memory);
  }

  remove(id: string): void {
    const number = this.#numbers.get(id);
    if (number === undefined) return;
    this.#numbers.delete(id);
    this.#memories[number] = undefined;
    this.#dialogue.remove(number);
    this.#terms.drop(number);
  }

  get(id: string): Memory | undefined {
    const number = this.#numbers.get(id);
    return number === undefined ? undefined : this.#memories[number];
  }

  /** The best memories for which `fits` is true, at most `limit`. */
  search(query: string, fits: (memory: Memory) => boolean, limit: number): LexicalHits {
    if (this.size === 0) return { hits: [], coverage: 0 };
    const { terms, wordCount } = this.#queryTerms(query);
    const { found: matching, scores: ownScores, mostTerms } = this.#terms.match(terms);
    const matches = matching.filter((number) => fits(this.#memories[number]!));
    if (matches.length > MAX_SPREADING) matches.sort((a, b) => ownScores[b]! - ownScores[a]!);
    const { found, scores } = this.#dialogue.spread(matches.slice(0, MAX_SPREADING), ownScores);
    const best: number[] = [];
    for (const number of found) {
      const isBetter = best.length < limit || scores[number]! > scores[best[limit - 1]!]!;
      if (isBetter && fits(this.#memories[number]!)) insertBest(best, number, limit, (one) => scores[one]!);
    }
    const hits = best.map((number) => ({
      memory: this.#memories[number]!,
      score: scores[number]!,
      saidAt: this.#saidAt[number]!,
    }));
    return { hits, coverage: Math.min(1, mostTerms / Math.max(1, Math.min(wordCount, MAX_TERMS))) };
  }

  /** The terms of a query, for which each word is stemmed in each language of the scope; and how many they are in one language. */
  #queryTerms(query: string): { terms: string[]; wordCount: number } {
    const vocabulary = this.#vocabulary;
    const words = vocabulary.read(query);
    const { content } = vocabulary.contentOf(words);
    const languages = this.#languages.size > 0 ? [...this.#languages] : [0];
    const dates = findDateTerms(words);
    const termsIn = (some: readonly number[]) =>
      new Set([...content.flatMap((word) => some.map((language) => vocabulary.stem(word, language))), ...dates]);
    const terms = termsIn(languages);
    const wordCount = languages.length === 1 ? terms.size : termsIn(languages.slice(0, 1)).size;
    return { terms: [...terms].filter((term) => term !== ''), wordCount };
  }

  #termsOf(memory: Memory): string[] {
    const { language, content } = this.#vocabulary.contentOf(this.#vocabulary.read(textOf(memory)));
    this.#languages.add(language);
    return content.map((word) => this.#vocabulary.stem(word, language));
  }
}

/** The terms of the day on which a message was said. */
function datesOf(memory: Memory): string[] {
  return isMessage(memory) ? dateTerms(memory.sources[0]!.at) : [];
}

/** The text, after the name of its `speaker` if the memory has one. */
function textOf({ text, speaker }: Memory): string {
  return typeof speaker === 'string' && !text.startsWith(speaker) ? `${speaker} ${text}` : text;
}
