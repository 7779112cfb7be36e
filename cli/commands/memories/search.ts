import type { Command } from 'commander';
import { Problem, WrongUse } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { parseCount } from '../numbers.ts';
import { printItems, storeCommand } from '../with-store.ts';
import { mustScope, scoped, withMemories, type ScopeFlags } from './scope.ts';

/** Time limit of a search, in ms. Long, because a new process has to read the index first. */
const SEARCH_MS = 60_000;
/** The most memories that a search returns. */
const MOST_FOUND = 50;

/** `memories search` */
export function addSearch(parent: Command, io: Io): void {
  const description = 'the memories of a scope that match a text, with the parts of their scores';
  scoped(storeCommand(parent, 'search <query>', description))
    .option('-n, --limit <count>', `the most memories to show, up to ${MOST_FOUND}`, parseCount, 10)
    .action(async (query: string, { limit: k, ...flags }: ScopeFlags & { readonly limit: number }) => {
      if (query.trim() === '') throw new WrongUse('The query is blank. Pass the words to search for.');
      if (k > MOST_FOUND) throw new WrongUse(`--limit of a search is a number from 1 to ${MOST_FOUND}.`);
      await withMemories(io, flags, async (open) => {
        const scope = await mustScope(flags, open);
        const { memories, report } = await open.manager.search({ scope, query, k, deadlineMs: SEARCH_MS });
        if (report.errors.length > 0) throw new Problem(`The search failed. ${report.errors.join(' ')}`);
        if (report.deadlinePassed) throw new Problem(`The search took longer than ${SEARCH_MS / 1000} s.`);
        const part = (value: number | undefined): string => value?.toFixed(2) ?? '';
        await printItems(io, flags, memories, 'No memories.', [
          { name: 'score', of: ({ score }) => part(score) },
          { name: 'relevance', of: ({ parts }) => part(parts.relevance) },
          { name: 'recency', of: ({ parts }) => part(parts.recency) },
          { name: 'importance', of: ({ parts }) => part(parts.importance) },
          { name: 'confidence', of: ({ parts }) => part(parts.confidence) },
          { name: 'id', of: ({ memory }) => memory.id },
          { name: 'text', of: ({ memory }) => memory.text },
        ]);
      });
    });
}
