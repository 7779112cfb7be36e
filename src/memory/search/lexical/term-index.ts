import MiniSearch from 'minisearch';
import type { Memory } from '../../../store/memory/contract.ts';

/** `d` is MiniSearch's own default. */
const BM25 = { k: 0.9, b: 0.4, d: 0.5 };
/** The fields of a memory, with their weights. */
const WEIGHTS = { text: 1, date: 0.5 } as const;
/** Of a longer query this many terms count, the rarest ones. The others say little, and take most of the time of a search. */
export const MAX_TERMS = 8;
/** A term in more memories than this is common. */
const COMMON = 1_000;

type Field = keyof typeof WEIGHTS;
const FIELDS = Object.entries(WEIGHTS) as [Field, number][];

/** The memories with terms of a query, by their numbers. */
export interface TermMatches {
  /** In no order. */
  readonly found: number[];
  /** By number, the score of those that were found. It counts until the next search. */
  readonly scores: readonly number[];
  /** The most of the terms that one of them has. */
  readonly mostTerms: number;
}

/**
 * An index of MiniSearch with a search that adds up the scores in arrays. MiniSearch's own search makes objects for each match, which
 * takes several times as long.
 */
export class TermIndex extends MiniSearch<Memory> {
  // The figures of the running search, by number. A search never waits, so only one runs at a time.
  readonly #foundBy: number[] = [];
  readonly #matchedTerms: number[] = [];
  readonly #lastTerm: number[] = [];
  readonly #scores: number[] = [];
  /** By number, the memory as it was indexed. */
  readonly #indexed: (Memory | undefined)[] = [];
  /** By field and number, how many terms the memory has there. */
  readonly #lengths: number[][] = FIELDS.map(() => []);
  #search = 0;

  /** @param termsOf The terms of a memory. They contain no space. */
  constructor(termsOf: (memory: Memory, field: Field) => readonly string[]) {
    super({
      fields: FIELDS.map(([field]) => field),
      extractField: (memory, field) => (field === 'id' ? memory.id : termsOf(memory, field as Field).join(' ')),
      tokenize: (terms) => terms.split(' ').filter((term) => term !== ''),
      processTerm: (term) => term,
    });
  }

  /** Adds a memory whose id is not in the index. Returns its number: 0 for the first, then one more for each. */
  put(memory: Memory): number {
    this.add(memory);
    const number = this._idToShortId.get(memory.id)!;
    this.#indexed[number] = memory;
    const lengths = this._fieldLength.get(number)!;
    this.#lengths.forEach((all, field) => (all[number] = lengths[field] ?? 0));
    for (const figures of [this.#foundBy, this.#matchedTerms, this.#lastTerm, this.#scores]) figures[number] = 0;
    return number;
  }

  /** Removes every term at once. `discard` of MiniSearch leaves them to a vacuum, which fails when a memory is added while it runs. */
  drop(number: number): void {
    this.remove(this.#indexed[number]!);
    this.#indexed[number] = undefined;
  }

  /**
   * The memories with any of these distinct terms. A score is MiniSearch's sum for the terms, times the root of the number of matched terms.
   * Common terms count only for memories that also have a rarer term: alone they match too much of a large scope.
   */
  match(terms: readonly string[]): TermMatches {
    this.#search++;
    const found: number[] = [];
    const known = terms.flatMap((term) => {
      const postings = this._index.get(term);
      if (!postings) return [];
      let count = 0;
      for (const { size } of postings.values()) count += size;
      return { postings, count };
    });
    known.sort((a, b) => a.count - b.count);
    known.slice(0, MAX_TERMS).forEach(({ postings, count }, rank) => {
      const mayAdd = rank === 0 || count <= COMMON;
      FIELDS.forEach(([, weight], field) => {
        const frequencies = postings.get(field);
        if (frequencies) this.#score(frequencies, { field, weight, rank, found, mayAdd });
      });
    });
    const [scores, matched] = [this.#scores, this.#matchedTerms];
    let mostTerms = 0;
    for (const number of found) {
      mostTerms = Math.max(mostTerms, matched[number]!);
      scores[number]! *= Math.sqrt(matched[number]!);
    }
    return { found, scores, mostTerms };
  }

  /** Adds the score of a term in a field to the memories that have it: with `mayAdd` to all of them, else to those that were found before. */
  #score(
    frequencies: ReadonlyMap<number, number>,
    term: { field: number; weight: number; rank: number; found: number[]; mayAdd: boolean },
  ): void {
    const { field, weight, rank, found, mayAdd } = term;
    const { k, b, d } = BM25;
    const [search, foundBy, scores] = [this.#search, this.#foundBy, this.#scores];
    const [matched, lastTerm, lengths] = [this.#matchedTerms, this.#lastTerm, this.#lengths[field]!];
    const count = frequencies.size;
    const rarity = weight * Math.log(1 + (this._documentCount - count + 0.5) / (count + 0.5));
    const average = this._avgFieldLength[field]!;
    frequencies.forEach((frequency, number) => {
      if (foundBy[number] !== search) {
        if (!mayAdd) return;
        foundBy[number] = search;
        scores[number] = 0;
        matched[number] = 0;
        lastTerm[number] = -1;
        found.push(number);
      }
      scores[number]! +=
        rarity * (d + (frequency * (k + 1)) / (frequency + k * (1 - b + (b * lengths[number]!) / average)));
      if (lastTerm[number] !== rank) matched[number]!++;
      lastTerm[number] = rank;
    });
  }
}
