import type { MessageData } from 'genkit';
import { cutToBudget, stepFor } from '../history/cut-to-budget.ts';
import { keptTurnsOf } from '../history/session-memories.ts';
import { turnsOf } from '../turns.ts';
import type { HistoryItem, HistoryStrategy, MessageRange, OmissionReason, StrategyTools, Summary } from '../types.ts';
import { applyStrategies } from './run-strategies.ts';
import { completed } from './repair.ts';
import { Omissions, type Flexible } from './sections.ts';

/** The earlier turns after the strategies. */
export class HistorySection implements Flexible {
  readonly section = 'history';
  /** The summary that the strategies chose. */
  readonly summary: Summary | undefined;
  readonly #log: readonly MessageData[];
  readonly #tools: StrategyTools;
  /** Turns that are left out only if they do not fit. */
  readonly #keep: number;
  readonly #omissions = new Omissions();
  #items: readonly HistoryItem[];
  #tokens: number;

  /** @param log All earlier messages. */
  constructor(log: readonly MessageData[], strategies: readonly HistoryStrategy[], tools: StrategyTools) {
    const all = Object.freeze(log.map((message, position) => ({ position, message })));
    const history = applyStrategies(strategies, all, tools);
    this.summary = history.summary;
    this.#log = log;
    this.#tools = tools;
    this.#keep = Math.max(1, keptTurnsOf(strategies) ?? 1);
    this.#items = history.items === all && !this.summary ? all : completed(history.items, log, this.summary?.to);
    this.#omissions.add(log.length - this.#items.length - this.#coveredBy(this.#items), 'strategy');
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
    const sizes = turns.map((turn) => turn.reduce((sum, { message }) => sum + this.#tools.countTokens(message), 0));
    this.#items = turns.slice(cutToBudget(sizes, tokens, stepFor(tokens), this.#keep)).flat();
    this.#omissions.add(before - this.#items.length, reason);
    this.#tokens = this.#count();
  }

  report() {
    return this.#omissions.report(this.#tokens, this.#items.length);
  }

  /** Ranges of earlier messages: sent, neither sent nor covered by the summary, sent with changes. */
  ranges(summary: Summary | undefined): { sent: MessageRange[]; dropped: MessageRange[]; changed: MessageRange[] } {
    const sent = rangesOf(this.#items.map(({ position }) => position));
    const changed = rangesOf(
      this.#items.filter(({ position, message }) => message !== this.#log[position]).map(({ position }) => position),
    );
    const dropped: MessageRange[] = [];
    let next = summary?.to ?? 0;
    for (const [from, to] of [...sent, [this.#log.length, this.#log.length] as const]) {
      if (from > next) dropped.push([next, from]);
      next = Math.max(next, to);
    }
    return { sent, dropped, changed };
  }

  #coveredBy(items: readonly HistoryItem[]): number {
    const to = this.summary?.to ?? 0;
    return to - items.filter(({ position }) => position < to).length;
  }

  #count(): number {
    return this.#items.reduce((sum, { message }) => sum + this.#tools.countTokens(message), 0);
  }
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
