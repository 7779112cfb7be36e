import MiniSearch from 'minisearch';
import type { Memory } from '../../../store/memory/contract.ts';

/** `d` is MiniSearch's own default. */
const BM25 = { k: 0.9, b: 0.4, d: 0.5 };
/** The fields of a memory. */
const FIELDS = ['text', 'date'] as const;
/** The most terms of a query that count, the rarest first. The others add little, and take most of the time of a search. */
export const MAX_TERMS = 8;
/** A term is common if it is in more memories than this. */
const COMMON = 1_000;
/** The most scores that are cached between searches. They take about 4 MB. */
const MAX_KEPT_SCORES = 200_000;

type Field = (typeof FIELDS)[number];

/** The memories with terms of a query, by their numbers. */
export interface TermMatches {
  /** Not sorted. */
  readonly found: number[];
  /** By number, the scores of the found memories. Valid until the next search. */
  readonly scores: readonly number[];
  /** The terms that count. */
  readonly postings: readonly Posting[];
  /** The largest number of terms that a found memory has. */
  readonly mostTerms: number;
}

/** The memories with a term, and the score that each gets for it. */
export interface Posting {
  readonly numbers: readonly number[];
  readonly scores: readonly number[];
}

/**
 * A MiniSearch index with its own search, which adds up the scores in arrays. MiniSearch's search creates objects for each match and takes
 * several times as long.
 */
export class TermIndex extends MiniSearch<Memory> {
  // The state of the running search, by number. A search never awaits, so only one runs at a time.
  /** The last search that found a memory. */
  readonly #foundBy: number[] = [];
  readonly #matchedTerms: number[] = [];
  readonly #scores: number[] = [];
  /** By number, the memory as it was indexed. */
  readonly #indexed: (Memory | undefined)[] = [];
  /** The postings of the terms searched for since the last change of the index. */
  readonly #postings = new Map<string, Posting>();
  /** The number of scores in `#postings`. */
  #keptScores = 0;
  #search = 0;

  /** @param termsOf Returns the terms of a memory. A term with a space counts as two. */
  constructor(termsOf: (memory: Memory, field: Field) => readonly string[]) {
    super({
      fields: [...FIELDS],
      extractField: (memory, field) => (field === 'id' ? memory.id : termsOf(memory, field as Field).join(' ')),
      tokenize: (terms) => terms.split(' ').filter((term) => term !== ''),
      processTerm: (term) => term,
    });
  }

  /** Adds a memory whose id is not in the index. Returns its number, which counts up from 0. */
  put(memory: Memory): number {
    this.#dropPostings();
    this.add(memory);
    const number = this._idToShortId.get(memory.id)!;
    this.#indexed[number] = memory;
    for (const figures of [this.#foundBy, this.#matchedTerms, this.#scores]) figures[number] = 0;
    return number;
  }

  /**
   * Removes a memory and its terms at once. MiniSearch's `discard` leaves the terms to a vacuum, which fails if a memory is added while it
   * runs.
   */
  drop(number: number): void {
    this.#dropPostings();
    this.remove(this.#indexed[number]!);
    this.#indexed[number] = undefined;
  }

  /**
   * Finds the memories with any of these terms. A score is MiniSearch's sum for the terms; for a term with a space ("found find"), the
   * better of its parts counts for each memory. Common terms count only for memories that also have a rarer term, because alone they match
   * too many memories of a large scope.
   */
  match(terms: ReadonlySet<string>): TermMatches {
    const search = ++this.#search;
    const [foundBy, scores, matched] = [this.#foundBy, this.#scores, this.#matchedTerms];
    const found: number[] = [];
    const known: Posting[] = [];
    for (const term of terms) {
      const posting = this.#postingOf(term);
      if (posting) known.push(posting);
    }
    const postings = known.toSorted((a, b) => a.numbers.length - b.numbers.length).slice(0, MAX_TERMS);
    for (const [rank, { numbers, scores: ofTerm }] of postings.entries()) {
      const mayAdd = rank === 0 || numbers.length <= COMMON;
      for (let i = 0; i < numbers.length; i++) {
        const number = numbers[i]!;
        if (foundBy[number] !== search) {
          if (!mayAdd) continue;
          foundBy[number] = search;
          scores[number] = 0;
          matched[number] = 0;
          found.push(number);
        }
        scores[number]! += ofTerm[i]!;
        matched[number]!++;
      }
    }
    let mostTerms = 0;
    for (const number of found) mostTerms = Math.max(mostTerms, matched[number]!);
    return { found, scores, postings, mostTerms };
  }

  /** Returns the posting of a term. It is made from the index on first use. */
  #postingOf(term: string): Posting | undefined {
    const known = this.#postings.get(term);
    if (known) return known;
    const [scores, ...others] = term.split(' ').map((part) => this.#scoresOf(part));
    for (const other of others)
      for (const [number, score] of other) scores!.set(number, Math.max(score, scores!.get(number) ?? 0));
    if (scores!.size === 0) return undefined;
    const posting = { numbers: [...scores!.keys()], scores: [...scores!.values()] };
    if (this.#keptScores + scores!.size > MAX_KEPT_SCORES) this.#dropPostings();
    this.#keptScores += scores!.size;
    this.#postings.set(term, posting);
    return posting;
  }

  /** Returns the scores for a term without a space, by number. */
  #scoresOf(term: string): Map<number, number> {
    const { k, b, d } = BM25;
    const scores = new Map<number, number>();
    for (const [field, frequencies] of this._index.get(term) ?? []) {
      const count = frequencies.size;
      const rarity = Math.log(1 + (this._documentCount - count + 0.5) / (count + 0.5));
      const average = this._avgFieldLength[field]!;
      for (const [number, frequency] of frequencies) {
        const length = this._fieldLength.get(number)![field]!;
        const share = (frequency * (k + 1)) / (frequency + k * (1 - b + (b * length) / average));
        scores.set(number, (scores.get(number) ?? 0) + rarity * (d + share));
      }
    }
    return scores;
  }

  #dropPostings(): void {
    this.#postings.clear();
    this.#keptScores = 0;
  }
}
