import { errorMessage, failedPrecondition, invalidArgument } from '../errors.ts';
import { checkOptions, isFunction, isListOf, isObject, isString } from '../store/check-options.ts';
import { memoryScope, targetOf } from './scopes.ts';
import { sameFactKey } from './same-fact.ts';
import { modelAsker, type AskModel } from './pipeline/ask-model.ts';
import { guardOf } from './pipeline/guard/judge-text.ts';
import { learn } from './pipeline/extract/learn.ts';
import { checkMessages } from './pipeline/ingest/check-ingest.ts';
import { redactedInputs } from './pipeline/ingest/ingest.ts';
import { UNREAD } from './pipeline/records/ranges.ts';
import type { Pipeline } from './pipeline/pipeline.ts';
import type { ExtractionScores, FailedCase, GoldenCase } from './types.ts';

const isCases = isListOf(isObject, '{ messages, expected }');
const isTexts = isListOf(isString, 'texts');

/**
 * Extracts memories from each conversation, and compares them with the expected ones.
 *
 * @throws `INVALID_ARGUMENT` for invalid cases; `FAILED_PRECONDITION` if the manager has neither a model nor an extractor; the error of the
 *   first case if no case has a result.
 */
export async function evaluateExtraction(
  pipeline: Pipeline,
  options: {
    readonly cases: readonly GoldenCase[];
    readonly isSame?: (extracted: string, expected: string) => boolean | Promise<boolean>;
  },
): Promise<ExtractionScores> {
  checkEvaluation(options);
  const ask = modelAsker(pipeline);
  if (!ask && pipeline.extract === undefined)
    throw failedPrecondition(
      'evaluate needs a model or an extractor. Pass the option model or extract to memoryManager.',
    );
  const { cases, isSame = (a, b) => sameFactKey(a) === sameFactKey(b) } = options;
  const compared = [];
  const failed: FailedCase[] = [];
  const errors: unknown[] = [];
  let [matches, extracted, expected] = [0, 0, 0];
  for (const [index, golden] of cases.entries()) {
    const texts = await extractedTexts({ ...pipeline, summary: false }, ask, golden).catch((error: unknown) => {
      if (isCancelled(error)) throw error;
      failed.push({ index, error: errorMessage(error) });
      errors.push(error);
      return [];
    });
    const missing = [...golden.expected];
    const unexpected: string[] = [];
    for (const text of texts) {
      const match = await firstIndex(missing, (one) => isSame(text, one));
      if (match === undefined) unexpected.push(text);
      else missing.splice(match, 1);
    }
    matches += texts.length - unexpected.length;
    extracted += texts.length;
    expected += golden.expected.length;
    compared.push({ unexpected, missing });
  }
  if (failed.length === cases.length) throw errors[0];
  // If nothing was extracted, nothing is wrong, so precision is 1. If nothing was expected, nothing is missing, so recall is 1.
  const precision = extracted === 0 ? 1 : matches / extracted;
  const recall = expected === 0 ? 1 : matches / expected;
  const f1 = precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
  return { precision, recall, f1, cases: compared, failed };
}

function isCancelled(thrown: unknown): boolean {
  const { name, status } = (thrown ?? {}) as { name?: unknown; status?: unknown };
  return name === 'AbortError' || status === 'CANCELLED';
}

function checkEvaluation(options: { readonly cases?: readonly GoldenCase[] } | undefined): void {
  checkOptions('evaluate', options, { cases: isCases, isSame: isFunction });
  const { cases } = options ?? {};
  if (!cases?.length) throw invalidArgument('evaluate needs at least one case: { cases: [{ messages, expected }] }.');
  for (const [i, { messages, expected }] of cases.entries()) {
    checkMessages(`evaluate: cases[${i}].messages`, messages);
    const valid = isTexts(expected);
    if (valid !== undefined) throw invalidArgument(`evaluate: cases[${i}].expected must be ${valid}.`);
  }
}

async function extractedTexts(
  pipeline: Pipeline,
  ask: AskModel | undefined,
  { messages }: GoldenCase,
): Promise<string[]> {
  const target = targetOf(memoryScope({ scope: 'user', appName: 'evaluation', userId: 'golden' }));
  const source = { id: 'golden', at: new Date(pipeline.now()).toISOString() };
  const { signal } = new AbortController();
  const guard = guardOf({ scope: target.scope, signal }, 'learn', pipeline);
  const texts: string[] = [];
  for (const input of await redactedInputs(pipeline, { messages }, source, UNREAD)) {
    const { candidates } = await learn(pipeline, { ...target, ask, signal, guard }, input, undefined);
    texts.push(...candidates.map(({ text }) => text));
  }
  return texts;
}

async function firstIndex<T>(
  items: readonly T[],
  fits: (item: T) => boolean | Promise<boolean>,
): Promise<number | undefined> {
  for (const [i, item] of items.entries()) if (await fits(item)) return i;
  return undefined;
}
