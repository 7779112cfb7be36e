import type { ModelArgument } from 'genkit';
import { invalidArgument } from '../../errors.ts';
import {
  checkOptions,
  isActionArgument,
  isFunction,
  isTimerMs,
  isWhole,
  withDefaults,
  type OptionCheck,
} from '../../store/check-options.ts';
import type { History, HistoryStrategy, StrategyTools } from '../types.ts';
import { modelSummarizer, type GeneratesText, type Summarizer } from './summarizer.ts';

/** Options of {@link summarize}. */
export interface SummarizeOptions {
  /** The model that writes the summaries; a small one is enough. Default: the default model of the Genkit instance. */
  model?: ModelArgument;
  /** Writes the summaries in place of a model. Default: `model` does. */
  summarizer?: Summarizer;
  /** Summarize when no summary covers this many turns. Default: 5, unless `everyMessages` or `everyTokens` is given. */
  everyTurns?: number;
  /** Summarize when no summary covers this many messages. Default: messages are not counted. */
  everyMessages?: number;
  /** Summarize when the messages that no summary covers have this many estimated tokens. Default: tokens are not counted. */
  everyTokens?: number;
  /** The newest turns that no summary covers, so that they are sent as they are. Default: 0. */
  keepTurns?: number;
  /** Turns of the previous summary that the summarizer reads again, as context for the new ones. Default: 1. */
  overlapTurns?: number;
  /** Summarize the rest when the session is idle for this long, in ms, while the process runs. Default: 900,000 (15 minutes). */
  idleMs?: number;
  /** The most tokens of a summary; a longer one is cut, and always after 32,000 characters. Default: 1,000. */
  maxTokens?: number;
  /** The most tokens of messages that one call of the summarizer reads; for more it is called again. Default: 32,000. */
  maxInputTokens?: number;
  /** Timeout of a call of the summarizer, in ms. Default: 60,000. */
  timeoutMs?: number;
}

/** The strategy that {@link summarize} returns. */
export interface SummarizeStrategy extends HistoryStrategy {
  /** @internal */
  readonly compaction: Compaction;
}

/** The options with their defaults filled in. `Infinity` for what is not counted. */
export type CompactionPlan = Required<Omit<SummarizeOptions, 'model' | 'summarizer'>> & {
  /** The name of the model, for the records. */
  readonly model: string;
};

/** How a window makes summaries. */
export interface Compaction {
  readonly plan: CompactionPlan;
  readonly summarizer: (ai: GeneratesText) => Summarizer;
}

const DEFAULTS = {
  keepTurns: 0,
  overlapTurns: 1,
  idleMs: 15 * 60_000,
  maxTokens: 1_000,
  maxInputTokens: 32_000,
  timeoutMs: 60_000,
};

const CHECKS: Readonly<Record<keyof SummarizeOptions, OptionCheck>> = {
  model: isActionArgument,
  summarizer: isFunction,
  everyTurns: isWhole(1),
  everyMessages: isWhole(1),
  everyTokens: isWhole(1),
  keepTurns: isWhole(0),
  overlapTurns: isWhole(0),
  idleMs: isTimerMs(1),
  maxTokens: isWhole(1),
  maxInputTokens: isWhole(1),
  timeoutMs: isTimerMs(1),
};

/**
 * Replaces the oldest messages by a summary. The summary is made after the reply, in the background: a turn uses the newest one that is
 * ready and never waits. The summarizer reads the previous summary and the messages after it. The messages stay in the session.
 *
 * While no summary is ready, later strategies keep the request within the budget. After a failure a later turn calls the summarizer again.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const history = [summarize({ everyTurns: 5, model: 'googleai/gemini-2.5-flash-lite' }), lastTurns(10)];
 */
export function summarize(options: SummarizeOptions = {}): SummarizeStrategy {
  checkOptions('summarize', options, CHECKS);
  const { model, summarizer, ...numbers } = options;
  const isCounting = options.everyMessages !== undefined || options.everyTokens !== undefined;
  const triggers = { everyTurns: isCounting ? Infinity : 5, everyMessages: Infinity, everyTokens: Infinity };
  const plan: CompactionPlan = {
    ...withDefaults({ ...triggers, ...DEFAULTS }, numbers),
    model: summarizer ? 'custom' : nameOf(model),
  };
  const compaction: Compaction = { plan, summarizer: (ai) => summarizer ?? modelSummarizer(ai, model) };
  return Object.assign(replaceCovered, { compaction });

  function replaceCovered(history: History, { summary }: StrategyTools): History {
    if (!summary) return history;
    return { items: history.items.filter(({ position }) => position >= summary.to), summary };
  }
}

/**
 * The compaction of the strategy `summarize`.
 *
 * @throws `INVALID_ARGUMENT` when there are several.
 */
export function compactionOf(strategies: readonly HistoryStrategy[]): Compaction | undefined {
  const all = strategies.flatMap((strategy) => (strategy as Partial<SummarizeStrategy>).compaction ?? []);
  if (all.length > 1) throw invalidArgument('contextWindow: history may have one summarize only.');
  return all[0];
}

function nameOf(model: ModelArgument | undefined): string {
  if (typeof model === 'string') return model;
  const { name, __action } = (model ?? {}) as { name?: string; __action?: { name: string } };
  return name ?? __action?.name ?? 'default';
}
