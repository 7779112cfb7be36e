import type { MemorySearchResult } from '../../../../src/inspector/api.ts';

const STEPS = [
  ['lexical', 'search by words'],
  ['semantic', 'search by meaning'],
  ['rewrite', 'rewriting of the question'],
  ['rerank', 'reranking'],
] as const;

const OUTCOMES = { done: 'is complete', late: 'took too long', failed: 'failed' };

/** The report about a search, in sentences. */
export function describeReport(report: MemorySearchResult['report']): string {
  // Steps that did not run for it are `off`.
  if (report.isCached) return 'This is the cached result of an equal search.';
  const sentences = STEPS.map(([step, name]) => {
    const outcome = report[step];
    if (outcome !== 'off') return `The ${name} ${OUTCOMES[outcome]}. `;
    return step === 'semantic' ? 'There is no embedder, so no search by meaning. ' : '';
  });
  return sentences.join('').trim();
}
