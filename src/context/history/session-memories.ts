import type { SessionFacts } from '../../session/turn-memory.ts';
import { checkOptions, isWhole } from '../../store/check-options.ts';
import type { HistoryStrategy, Summary } from '../types.ts';
import { cutToBudget, stepFor } from './cut-to-budget.ts';

/** Options of {@link sessionMemories}. */
export interface SessionMemoriesOptions {
  /** Turns before the current one that are sent unchanged. They are left out only if they do not fit the window alone. Default: 2. */
  keepTurns?: number;
}

/** A registered symbol, so that both module formats know each other's strategies. */
const KEPT_TURNS: unique symbol = Symbol.for('genkitx-agents.session-memories') as never;

/**
 * Sends the facts that were learned from this session in place of the messages that they were learned from. Messages that were not learned
 * from yet are sent unchanged. Needs an agent with the option `memory`.
 *
 * The facts take at most a quarter of the window's `maxTokens`, or `sections.summary.maxTokens`, and, with the
 * default ranks, never the place of the turns that `keepTurns` names. With more facts the oldest are left out; the context report counts them.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type.
 * @example
 * const window = contextWindow({ history: [sessionMemories({ keepTurns: 3 })] });
 * const support = defineAgent(ai, { name: 'support', model, store, context: window });
 */
export function sessionMemories(options: SessionMemoriesOptions = {}): HistoryStrategy {
  checkOptions('sessionMemories', options, { keepTurns: isWhole(0) });
  const { keepTurns = 2 } = options;
  const strategy: HistoryStrategy = (history, { sessionMemories: facts }) => {
    if (!facts || history.summary) return history;
    return { items: history.items.filter(({ position }) => position >= facts.to), summary: facts };
  };
  return Object.assign(strategy, { [KEPT_TURNS]: keepTurns });
}

/** The `keepTurns` of {@link sessionMemories} among the strategies; `undefined` without it. */
export function keptTurnsOf(strategies: readonly HistoryStrategy[]): number | undefined {
  return strategies
    .map((strategy) => (strategy as { [KEPT_TURNS]?: number })[KEPT_TURNS])
    .find((kept) => kept !== undefined);
}

/** The newest facts that take at most `budget` tokens; `undefined` if none fits. */
export function newestFacts(
  { texts, to, sha256 }: SessionFacts,
  budget: number,
  countText: (text: string) => number,
): { readonly newest: Summary | undefined; readonly omitted: number } {
  const lines = texts.map((text) => `- ${text}\n`);
  const omitted = cutToBudget(lines.map(countText), budget, stepFor(budget));
  const text = lines.slice(omitted).join('').trimEnd();
  return { newest: text === '' ? undefined : { text, to, sha256, tokens: countText(text) }, omitted };
}
