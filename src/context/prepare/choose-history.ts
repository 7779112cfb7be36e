import type { MessageData } from 'genkit';
import { cutToBudget, stepFor } from '../history/cut-to-budget.ts';
import { keptTurnsOf } from '../history/session-memories.ts';
import { isInterrupted } from '../../session/tool-requests.ts';
import { tokensOf, turnsOf } from '../turns.ts';
import type { HistoryItem, HistoryStrategy, MessageRange, OmissionReason, StrategyTools, Summary } from '../types.ts';
import { applyStrategies } from './run-strategies.ts';
import { completed } from './repair.ts';
import { Omissions, type Flexible } from './sections.ts';

/**
 * The messages of turns that wait for the user, each up to the request. No strategy sees them, so none can drop them. The user may have gone
 * on, even for so long that a summary covers them.
 */
export function waitingItems(all: readonly HistoryItem[]): HistoryItem[] {
  return turnsOf(all).flatMap((turn) => {
    const last = turn.findLastIndex(({ message }, i) => isInterrupted(message) && turn[i + 1]?.message.role !== 'tool');
    return turn.slice(0, last + 1);
  });
}

/** The earlier turns after the strategies. */
export class HistorySection implements Flexible {
  readonly section = 'history';
  /** The summary that the strategies chose. */
  readonly summary: Summary | undefined;
  readonly #tools: StrategyTools;
  /** Turns that are left out only if they do not fit. */
  readonly #keep: number;
  readonly #omissions = new Omissions();
  #items: readonly HistoryItem[];
  #tokens: number;

  /**
   * @param log All earlier messages.
   * @param all Those that the strategies get.
   */
  constructor(
    log: readonly MessageData[],
    all: readonly HistoryItem[],
    strategies: readonly HistoryStrategy[],
    tools: StrategyTools,
  ) {
    const history = applyStrategies(strategies, Object.freeze(all), log, tools);
    this.summary = history.summary;
    this.#tools = tools;
    this.#keep = Math.max(1, keptTurnsOf(strategies) ?? 1);
    this.#items = history.items === all && !this.summary ? all : completed(history.items, log, this.summary?.to);
    const uncovered = all.filter(({ position }) => position >= (this.summary?.to ?? 0));
    this.#omissions.add(uncovered.length - this.#items.length, 'strategy');
    this.#tokens = this.#count();
  }

  get items(): readonly HistoryItem[] {
    return this.#items;
  }

  get tokens(): number {
    return this.#tokens;
  }

  shrink(tokens: number, reason: OmissionReason): void {
    const before = this.#items.length;
    const turns = turnsOf(this.#items);
    const sizes = turns.map((turn) => tokensOf(turn, this.#tools.countTokens));
    this.#items = turns.slice(cutToBudget(sizes, tokens, stepFor(tokens), this.#keep)).flat();
    this.#omissions.add(before - this.#items.length, reason);
    this.#tokens = this.#count();
  }

  report() {
    return this.#omissions.report(this.#tokens, this.#items.length);
  }

  #count(): number {
    return tokensOf(this.#items, this.#tools.countTokens);
  }
}

/** Ranges of earlier messages: sent, neither sent nor covered by the summary, sent with changes. */
export function rangesIn(
  log: readonly MessageData[],
  items: readonly HistoryItem[],
  summary: Summary | undefined,
): { sent: MessageRange[]; dropped: MessageRange[]; changed: MessageRange[] } {
  const sent = rangesOf(items.map(({ position }) => position));
  const changed = rangesOf(
    items.filter(({ position, message }) => message !== log[position]).map(({ position }) => position),
  );
  const dropped: MessageRange[] = [];
  let next = summary?.to ?? 0;
  for (const [from, to] of [...sent, [log.length, log.length] as const]) {
    if (from > next) dropped.push([next, from]);
    next = Math.max(next, to);
  }
  return { sent, dropped, changed };
}

function rangesOf(positions: readonly number[]): MessageRange[] {
  const ranges: [number, number][] = [];
  for (const position of positions) {
    const last = ranges.at(-1);
    if (last?.[1] === position) last[1]++;
    else ranges.push([position, position + 1]);
  }
  return ranges;
}
