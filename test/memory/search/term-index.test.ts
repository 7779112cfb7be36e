import type { Memory } from 'genkitx-agents/memory';
import { describe, expect, it } from 'vitest';
import { TermIndex } from '../../../src/memory/search/lexical/term-index.ts';
import { Random } from '../../support/random.ts';
import { draft } from './support.ts';

const WORDS = Array.from({ length: 40 }, (_, i) => `word${i}`);
const DAYS = ['2025', '2026', 'month5', 'day5-8', 'word1'];

describe('the score of a memory', () => {
  it.each([1, 2, 3, 4, 5])('is that of MiniSearch, after additions, removals and replacements (seed %i)', (seed) => {
    const random = new Random(seed);
    const some = (from: readonly string[], most: number) =>
      Array.from({ length: random.below(most + 1) }, () => random.pick(from));
    const terms = new Map<Memory, { text: string[]; date: string[] }>();
    const index = new TermIndex((memory, field) => terms.get(memory)![field]);
    const ids = new Map<number, string>();
    const numbers = new Map<string, number>();
    for (let i = 0; i < 400; i++) {
      const id = `m${random.below(150)}`;
      const number = numbers.get(id);
      if (number !== undefined) {
        index.drop(number);
        ids.delete(number);
        numbers.delete(id);
      }
      if (random.below(4) === 0) continue;
      const memory = draft(id, '') as unknown as Memory;
      terms.set(memory, { text: some(WORDS, 12), date: some(DAYS, 3) });
      numbers.set(id, index.put(memory));
      ids.set(numbers.get(id)!, id);
    }
    const queries = Array.from({ length: 100 }, () => new Set(some([...WORDS, ...DAYS, 'unknown'], 8)));
    const all = queries.map((query) => {
      const { found, scores, mostTerms } = index.match(query);
      return { query, mostTerms, scores: new Map(found.map((number) => [ids.get(number)!, scores[number]!])) };
    });
    for (const { query, mostTerms, scores } of all) {
      const options = { bm25: { k: 0.9, b: 0.4, d: 0.5 } };
      const theirs = index.search([...query].join(' '), options);
      expect([...scores.keys()].toSorted()).toEqual(theirs.map(({ id }) => id as string).toSorted());
      for (const { id, score, queryTerms } of theirs) {
        expect(scores.get(id as string)).toBeCloseTo(score / queryTerms.length, 9);
      }
      expect(mostTerms).toBe(Math.max(0, ...theirs.map(({ queryTerms }) => queryTerms.length)));
    }
    expect(all.reduce((sum, { scores }) => sum + scores.size, 0)).toBeGreaterThan(1_000);
  });

  it('is of the eight rarest terms of a longer query', () => {
    const index = new TermIndex((memory, field) => (field === 'text' ? memory.text.split(' ') : []));
    // word0 is in one memory, word1 in two, and so on.
    for (let i = 0; i < 12; i++) index.put(draft(`m${i}`, WORDS.slice(i, 12).join(' ')) as unknown as Memory);
    const all = index.match(new Set(WORDS.slice(0, 12)));
    expect(all.found.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(all.mostTerms).toBe(8);
  });

  it('leaves nothing of a removed memory behind, which a vacuum would have to remove later', () => {
    const index = new TermIndex((memory, field) => (field === 'text' ? memory.text.split(' ') : ['2026']));
    for (let i = 0; i < 500; i++) index.drop(index.put(draft('a', `only${i} word1`) as unknown as Memory));
    expect([index.documentCount, index.termCount, index.dirtCount, index.isVacuuming]).toEqual([0, 0, 0, false]);
    expect(index.match(new Set(['word1', 'only7'])).found).toEqual([]);
  });
});
