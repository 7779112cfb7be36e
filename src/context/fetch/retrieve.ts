import { rerank, retrieve } from '@genkit-ai/ai';
import type { RerankerArgument, RetrieverArgument } from 'genkit';
import { checkOptions, isActionArgument, isTimerMs, isWhole, type OptionCheck } from '../../store/check-options.ts';
import type { ContextItem, ContextQuery, ContextSource } from '../types.ts';

/** Options of {@link fewShot}. */
export interface FewShotOptions {
  /** The most examples. Default: 3; all of a list. */
  k?: number;
  /** The most tokens of the examples. Default: no limit of their own. */
  maxTokens?: number;
  /** How long a turn waits for the retriever, in ms. Default: 2,000. */
  deadlineMs?: number;
}

/** Options of {@link knowledge}. */
export interface KnowledgeOptions {
  /** The most documents. Default: 5. */
  k?: number;
  /** The most tokens of the documents. Default: no limit of their own. */
  maxTokens?: number;
  /** How long a turn waits for the retriever and the reranker together, in ms. Default: 2,000. */
  deadlineMs?: number;
  /** Puts the documents in order, best first. It gets `candidates` documents. Default: the order of the retriever. */
  reranker?: RerankerArgument;
  /** The number of documents for the reranker. Default: 4 times `k`. */
  candidates?: number;
}

const isExampleSource: OptionCheck = (value) => {
  const isFine = isList(value)
    ? value.every((text) => typeof text === 'string')
    : isActionArgument(value) === undefined;
  return isFine ? undefined : 'a retriever, the name of one, or a list of texts';
};

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

const NUMBERS = { k: isWhole(1), maxTokens: isWhole(0), deadlineMs: isTimerMs(1) };

/**
 * Finds examples that fit the user's message: documents whose text is an example, such as a question with its answer. They are placed as
 * data, next to the prompt. If the retriever fails or is late, the turn continues without examples, after `deadlineMs` at most. A list of
 * examples is the same in each turn, so it is placed before the history, where providers cache it.
 *
 * @param examples Any Genkit retriever; a name is looked up on first use. Or a list of examples, the most important one first.
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const examples = fewShot('answeredQuestions', { k: 3, maxTokens: 800 });
 */
export function fewShot(examples: RetrieverArgument | readonly string[], options: FewShotOptions = {}): ContextSource {
  checkOptions('fewShot', { examples: examples ?? null }, { examples: isExampleSource });
  checkOptions('fewShot', options, NUMBERS);
  const { k, maxTokens, deadlineMs = 2_000 } = options;
  if (isList(examples)) {
    const items = examples.slice(0, k).map((text) => ({ text }));
    return { maxTokens, deadlineMs, isFixed: true, fetch: async () => items };
  }
  return { maxTokens, deadlineMs, fetch: async (query) => found(query, examples, k ?? 3) };
}

/**
 * Finds documents that fit the user's message. They are placed as data, next to the prompt. If the retriever or the reranker fails or is
 * late, the turn continues without documents, after `deadlineMs` at most.
 *
 * @param retriever Any Genkit retriever; a name is looked up on first use.
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const documents = knowledge('handbook', { k: 5, maxTokens: 1_500 });
 */
export function knowledge(retriever: RetrieverArgument, options: KnowledgeOptions = {}): ContextSource {
  checkOptions('knowledge', { retriever: retriever ?? null }, { retriever: isActionArgument });
  checkOptions('knowledge', options, { ...NUMBERS, reranker: isActionArgument, candidates: isWhole(1) });
  const { k = 5, maxTokens, deadlineMs = 2_000, reranker, candidates = 4 * k } = options;
  const fetch = async (query: ContextQuery) => {
    if (reranker === undefined) return found(query, retriever, k);
    const documents = (await retrieveFor(query, retriever, candidates)).slice(0, candidates);
    if (documents.length === 0) return [];
    const ranked = await rerank(query.registry, { reranker, query: query.text, documents, options: { k } });
    return textsOf(ranked, k);
  };
  return { maxTokens, deadlineMs, fetch };
}

async function found(query: ContextQuery, retriever: RetrieverArgument, k: number): Promise<ContextItem[]> {
  return textsOf(await retrieveFor(query, retriever, k), k);
}

function retrieveFor({ registry, text }: ContextQuery, retriever: RetrieverArgument, k: number) {
  return retrieve(registry, { retriever, query: text, options: { k } });
}

function textsOf(documents: readonly { readonly text: string }[], k: number): ContextItem[] {
  return documents.slice(0, k).map(({ text }) => ({ text }));
}
