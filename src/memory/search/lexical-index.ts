import MiniSearch, { type SearchResult } from 'minisearch';
import type { Memory } from '../../store/memory/contract.ts';
import { insertBest } from '../../store/parts/insert-best.ts';
import { dateTerms, DateWords } from './dates.ts';
import { DialogueMap, isMessage, type IndexedMemory } from './dialogue.ts';
import type { Stems } from './languages.ts';
import { wordsOf } from './words.ts';

/** `d` is MiniSearch's own default. */
const BM25 = { k: 0.9, b: 0.4, d: 0.5 };
/** The weight of a message's date, compared with that of its words. */
const DATE_BOOST = 0.5;
/** The most terms of a query. Of a longer one the first count. */
const MAX_TERMS = 48;
/** A term in more memories than this is common. */
const COMMON = 1_000;
/** The best hits, at most this many, share their score with their neighbours. The others are left out. */
const MAX_SPREADING = 500;

/** A memory that has terms of a query, or is the neighbour of such a message. */
export interface LexicalHit {
  readonly memory: Memory;
  /** Comparable within a search only. */
  readonly score: number;
}

/** The result of a search by words. */
export interface LexicalHits {
  /** Best first. */
  readonly hits: readonly LexicalHit[];
  /** 0 to 1: the largest share of the query's terms that a memory has. */
  readonly coverage: number;
}

/** The terms of the memories of one scope. */
export class LexicalIndex {
  readonly #stems: Stems;
  readonly #dates: DateWords;
  readonly #memories = new Map<string, IndexedMemory>();
  readonly #dialogue = new DialogueMap();
  /** The languages of the memories, as indexes into `Stems.languages`. */
  readonly #languages = new Set<number>();
  /** In how many memories a term was, including removed and replaced ones: enough to tell common terms from others. */
  readonly #counts = new Map<string, number>();
  readonly #terms: MiniSearch<Memory>;

  constructor(stems: Stems) {
    this.#stems = stems;
    this.#dates = new DateWords(stems.languages, (word) => stems.isStopWordOfAny(word));
    this.#terms = new MiniSearch<Memory>({
      fields: ['text', 'date'],
      extractField: (memory, field) => this.#field(memory, field),
      tokenize: (terms) => terms.split(' ').filter((term) => term !== ''),
      processTerm: (term) => term,
      searchOptions: { boost: { date: DATE_BOOST }, bm25: BM25 },
    });
  }

  get size(): number {
    return this.#memories.size;
  }

  memories(): Memory[] {
    return Array.from(this.#memories.values(), ({ memory }) => memory);
  }

  /** Adds a memory, or replaces the one with its id. */
  put(memory: Memory): void {
    this.remove(memory.id);
    this.#memories.set(memory.id, this.#dialogue.add(memory));
    this.#terms.add(memory);
  }

  /** Replaces a memory whose text is the same: its confidence, importance or sources have changed. */
  refresh(memory: Memory): void {
    const known = this.#memories.get(memory.id);
    if (known) known.memory = memory;
  }

  remove(id: string): void {
    const known = this.#memories.get(id);
    if (!known) return;
    this.#memories.delete(id);
    this.#dialogue.remove(known);
    this.#terms.discard(id);
  }

  get(id: string): Memory | undefined {
    return this.#memories.get(id)?.memory;
  }

  /** The best memories for which `fits` is true, at most `limit`. */
  search(query: string, fits: (memory: Memory) => boolean, limit: number): LexicalHits {
    if (this.#memories.size === 0) return { hits: [], coverage: 0 };
    const terms = this.#queryTerms(query);
    let most = 0;
    const matches = this.#matches(terms).map(({ id, score, queryTerms: { length } }) => {
      const match = this.#memories.get(id as string)!;
      // MiniSearch multiplies the score by the number of matched terms. This reduces that factor to its root.
      match.ownScore = score / Math.sqrt(length);
      most = Math.max(most, length);
      return match;
    });
    matches.sort((a, b) => b.ownScore - a.ownScore);
    const best: IndexedMemory[] = [];
    for (const found of this.#dialogue.spread(matches.slice(0, MAX_SPREADING))) {
      if (fits(found.memory)) insertBest(best, found, limit, ({ score }) => score);
    }
    const hits = best.map(({ memory, score }) => ({ memory, score }));
    return { hits, coverage: terms.length === 0 ? 0 : most / terms.length };
  }

  /** Common terms count only for memories that also have a rare term: alone they would match too much of a large scope. */
  #matches(terms: readonly string[]): SearchResult[] {
    const byRarity = [...terms].sort((a, b) => this.#countOf(a) - this.#countOf(b));
    const isCommon = (term: string, i: number): boolean => i > 0 && this.#countOf(term) > COMMON;
    const common = byRarity.filter(isCommon);
    const found = this.#terms.search(byRarity.filter((term, i) => !isCommon(term, i)).join(' '));
    if (common.length === 0) return found;
    const byId = new Map(found.map((result) => [result.id as string, result]));
    const more = this.#terms.search(common.join(' '), { boostDocument: (id: string) => (byId.has(id) ? 1 : 0) });
    for (const { id, score, queryTerms } of more) {
      const rare = byId.get(id as string)!;
      const count = rare.queryTerms.length + queryTerms.length;
      // The same as one search for all terms.
      const sum = rare.score / rare.queryTerms.length + score / queryTerms.length;
      byId.set(id as string, { ...rare, score: sum * count, queryTerms: [...rare.queryTerms, ...queryTerms] });
    }
    return [...byId.values()];
  }

  #countOf(term: string): number {
    return this.#counts.get(term) ?? 0;
  }

  /** The terms of a query: each word is stemmed in each language of the scope. */
  #queryTerms(query: string): string[] {
    const words = wordsOf(query);
    const content = this.#stems.withoutStopWords(words, this.#stems.languageOf(words));
    const languages = this.#languages.size > 0 ? [...this.#languages] : [0];
    const stems = content.flatMap((word) => languages.map((language) => this.#stems.stem(word, language)));
    return [...new Set([...stems, ...this.#dates.termsOf(words)])].filter((term) => term !== '').slice(0, MAX_TERMS);
  }

  #field(memory: Memory, field: string): string {
    if (field === 'id') return memory.id;
    if (field === 'date') return isMessage(memory) ? dateTerms(memory.sources[0]!.at).join(' ') : '';
    const words = wordsOf(textOf(memory));
    const language = this.#stems.languageOf(words);
    this.#languages.add(language);
    const terms = this.#stems.withoutStopWords(words, language).map((word) => this.#stems.stem(word, language));
    for (const term of new Set(terms)) this.#counts.set(term, this.#countOf(term) + 1);
    return terms.join(' ');
  }
}

/** The text, after the name of its `speaker` if the memory has one. */
function textOf({ text, speaker }: Memory): string {
  return typeof speaker === 'string' && !text.startsWith(speaker) ? `${speaker} ${text}` : text;
}
