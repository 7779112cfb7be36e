import { jsonEqual } from '../../../json/value.ts';
import type { Memory } from '../../../store/memory/contract.ts';
import { endOf } from '../../../store/memory/version.ts';
import { sameFactKey } from '../../same-fact.ts';
import { asksTime, dateTerms, findDateTerms, namesTime } from './dates.ts';
import { DialogueMap, isMessage } from './dialogue.ts';
import type { Vocabulary } from './languages.ts';
import { MAX_TERMS, TermIndex } from './term-index.ts';

/** At most this many of the best hits share their score with their neighbours. The other hits are dropped. */
const MAX_SPREADING = 500;

/**
 * Multiplies the score of a message whose speaker the query names, because the answer to a question about a person usually comes from that
 * person.
 */
const SPEAKER_FACTOR = 1.4;
/** Multiplies the score of a message that names a time, if the query asks for a time. */
const TIME_FACTOR = 1.4;
/** The name before the text of a message: "Anna: I have moved." */
const SPEAKER = /^\s*(\p{L}[\p{L}\p{M}.'’ -]{0,40}): /u;

const NO_TERMS: string[] = [];

/** A memory with terms of a query, or a neighbour of such a message. */
export interface LexicalHit {
  readonly memory: Memory;
  /** Comparable only within one search. */
  readonly score: number;
  /** The time of its last source, in ms since 1970. */
  readonly saidAt: number;
  /** Whether it states the same as the query, by {@link sameFactKey}. If there are several such memories, only one is marked. */
  readonly isSame: boolean;
}

/** Selects the memories of a search. */
export interface LexicalFilter {
  /** Only memories that are valid at this time, in ms since 1970. `undefined`: any. */
  readonly time?: number | undefined;
  /** `undefined`: all. */
  readonly isWanted?: ((memory: Memory) => boolean) | undefined;
}

/** The result of a search by words. */
export interface LexicalHits {
  /** Best first. */
  readonly hits: readonly LexicalHit[];
  /** 0 to 1: the largest share of the query's counted terms that a memory has. */
  readonly coverage: number;
}

/** The terms of the memories of one scope. */
export class LexicalIndex {
  readonly #vocabulary: Vocabulary;
  /** By id, the number of each memory in the index. */
  readonly #numbers = new Map<string, number>();
  /** By number. Removed and replaced memories leave an empty place. */
  readonly #memories: (Memory | undefined)[] = [];
  /** By number, the time of each memory's last source. */
  readonly #saidAt: number[] = [];
  /** By number, {@link endOf} of each memory. */
  readonly #ends: number[] = [];
  /** By number, the terms in the name of each message's speaker. */
  readonly #speakerOf: (readonly string[])[] = [];
  /** By number, the hash of each memory's {@link sameFactKey}. */
  readonly #hashes: number[] = [];
  /** By number, whether it is a message that names a time. */
  readonly #namesTime: boolean[] = [];
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
    this.#keep(number, memory);
    this.#speakerOf[number] = this.#speakerTerms(memory);
    this.#hashes[number] = hashOf(sameFactKey(memory.text));
    this.#namesTime[number] = isMessage(memory) && namesTime(memory.text);
    this.#dialogue.add(number, memory);
  }

  /** Replaces a memory whose text is the same: its confidence, importance or sources have changed. */
  refresh(memory: Memory): void {
    const number = this.#numbers.get(memory.id);
    if (number === undefined) return;
    // The sources are the memory's places in dialogues.
    if (!jsonEqual(memory.sources, this.#memories[number]!.sources)) return this.put(memory);
    this.#keep(number, memory);
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

  /** Returns the best memories, at most `limit`. A memory that states the same as the query is always included. */
  search(query: string, { time, isWanted }: LexicalFilter, limit: number): LexicalHits {
    if (this.size === 0) return { hits: [], coverage: 0 };
    const fits = (number: number): boolean =>
      (time === undefined || this.#ends[number]! > time) &&
      (isWanted === undefined || isWanted(this.#memories[number]!));
    const { terms, wordCount } = this.#queryTerms(query);
    const { mostTerms, ...matches } = this.#terms.match(terms);
    let hits = matches.found.filter(fits);
    if (hits.length > MAX_SPREADING) {
      hits = hits
        .toReversed()
        .toSorted((a, b) => matches.scores[b]! - matches.scores[a]!)
        .slice(0, MAX_SPREADING);
    }
    const { found, scores } = this.#dialogue.spread({ ...matches, hits });
    const isAboutTime = asksTime(query);
    const best: number[] = [];
    const bestScores: number[] = [];
    // Newest first: of equal hits the first one stays. Without `insertBest`, whose calls took a third of a search.
    for (let i = found.length - 1; i >= 0; i--) {
      const number = found[i]!;
      if (isAboutTime && this.#namesTime[number]) scores[number]! *= TIME_FACTOR;
      if (this.#speakerOf[number]!.some((term) => terms.has(term))) scores[number]! *= SPEAKER_FACTOR;
      const score = scores[number]!;
      let at = best.length;
      if (at === limit && bestScores[--at]! >= score) continue;
      if (!fits(number)) continue;
      for (; at > 0 && bestScores[at - 1]! < score; at--) {
        best[at] = best[at - 1]!;
        bestScores[at] = bestScores[at - 1]!;
      }
      best[at] = number;
      bestScores[at] = score;
    }
    const same = this.#sameAs(query, fits);
    if (same !== undefined && !best.includes(same)) best[Math.min(best.length, limit - 1)] = same;
    const bestHits = best.map((number) => ({
      memory: this.#memories[number]!,
      score: scores[number]!,
      saidAt: this.#saidAt[number]!,
      isSame: number === same,
    }));
    return { hits: bestHits, coverage: Math.min(1, mostTerms / Math.max(1, Math.min(wordCount, MAX_TERMS))) };
  }

  /** Returns the number of a memory that states the same as a text. */
  #sameAs(text: string, fits: (number: number) => boolean): number | undefined {
    const key = sameFactKey(text);
    const hash = hashOf(key);
    let number = -1;
    while ((number = this.#hashes.indexOf(hash, number + 1)) >= 0) {
      const memory = this.#memories[number];
      if (memory && fits(number) && sameFactKey(memory.text) === key) return number;
    }
    return undefined;
  }

  /** Returns the terms of a query, stemmed in each language of the scope, and their number in one language. */
  #queryTerms(query: string): { terms: ReadonlySet<string>; wordCount: number } {
    const words = this.#vocabulary.read(query);
    const { content } = this.#vocabulary.contentOf(words);
    const dates = findDateTerms(words);
    const languages = this.#languages.size > 0 ? [...this.#languages] : [0];
    const termsIn = (some: readonly number[]): Set<string> => {
      const terms = new Set<string>();
      // In the order of the words, because the first of equally rare terms count.
      for (const word of content) for (const language of some) terms.add(this.#vocabulary.stem(word, language));
      for (const date of dates) terms.add(date);
      return terms;
    };
    const terms = termsIn(languages);
    return { terms, wordCount: languages.length === 1 ? terms.size : termsIn(languages.slice(0, 1)).size };
  }

  /** Stores a memory, and copies the data that a search reads of each match to lists, which are faster to read than the memories. */
  #keep(number: number, memory: Memory): void {
    this.#memories[number] = memory;
    this.#saidAt[number] = lastSaid(memory);
    this.#ends[number] = endOf(memory);
  }

  #termsOf(memory: Memory): string[] {
    const { language, content } = this.#vocabulary.contentOf(this.#vocabulary.read(memory.text));
    this.#languages.add(language);
    return content.map((word) => this.#vocabulary.stem(word, language));
  }

  #speakerTerms(memory: Memory): string[] {
    const speaker = isMessage(memory) ? SPEAKER.exec(memory.text)?.[1] : undefined;
    if (speaker === undefined) return NO_TERMS;
    const { language } = this.#vocabulary.contentOf(this.#vocabulary.read(memory.text));
    return this.#vocabulary.read(speaker).map((word) => this.#vocabulary.stem(word, language));
  }
}

/** Returns a hash as a 32-bit integer. */
function hashOf(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash;
}

/** Returns the terms of the day on which a message was said. */
function datesOf(memory: Memory): string[] {
  return isMessage(memory) ? dateTerms(memory.sources[0]!.at) : [];
}

/** Returns the time of a memory's last source, in ms since 1970. */
export function lastSaid({ sources, updatedAt }: Memory): number {
  const times = sources.map(({ at }) => Date.parse(at)).filter((time) => !Number.isNaN(time));
  return times.length > 0 ? Math.max(...times) : Date.parse(updatedAt);
}
