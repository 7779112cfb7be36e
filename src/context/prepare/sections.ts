import { fitting } from '../../session/log/estimate-tokens.ts';
import type { ContextItem, FlexibleSection, OmissionReason, SectionOptions, SectionReport } from '../types.ts';

/** A section that can shrink. */
export interface Flexible {
  readonly section: FlexibleSection;
  readonly tokens: number;
  /** Leaves out items until the section takes at most this many tokens. */
  shrink(tokens: number, reason: OmissionReason): void;
  /** `undefined` if the section has no items and nothing was left out. */
  report(): SectionReport | undefined;
}

const DEFAULT_RANKS: Readonly<Record<FlexibleSection, number>> = {
  examples: 1,
  artifacts: 2,
  knowledge: 3,
  memory: 4,
  history: 5,
  summary: 6,
};

export type SectionLimits = Partial<Record<FlexibleSection, SectionOptions>>;

/**
 * Shrinks each section to its own budget, then gives each its room, the highest rank first, so that all of them together take at most
 * `room` tokens. What a section can't use, as its items do not fit, is there for the others.
 */
export function fit(sections: readonly Flexible[], limits: SectionLimits, room: number): void {
  // A section may have several blocks, which share its budget.
  const taken: Partial<Record<FlexibleSection, number>> = {};
  for (const section of sections) {
    const { maxTokens = Infinity } = limits[section.section] ?? {};
    const room = Math.max(0, maxTokens - (taken[section.section] ?? 0));
    if (section.tokens > room) section.shrink(room, 'section');
    taken[section.section] = (taken[section.section] ?? 0) + section.tokens;
  }
  const rankOf = ({ section }: Flexible) => limits[section]?.rank ?? DEFAULT_RANKS[section];
  let left = room;
  // Of equal ranks the last one comes first: the history is the last.
  for (const section of sections.toReversed().sort((a, b) => rankOf(b) - rankOf(a))) {
    if (section.tokens > left) section.shrink(left, 'window');
    left -= section.tokens;
  }
}

/** Adds the reports of two blocks of a section. */
export function joined(a: SectionReport | undefined, b: SectionReport): SectionReport {
  if (!a) return b;
  const omitted = (a.omitted ?? 0) + (b.omitted ?? 0);
  const reasons = [...new Set([...(a.reasons ?? []), ...(b.reasons ?? [])])];
  return {
    tokens: a.tokens + b.tokens,
    items: a.items + b.items,
    ...(omitted > 0 && { omitted }),
    ...(reasons.length > 0 && { reasons }),
  };
}

/** How many items a section left out, and why. */
export class Omissions {
  readonly #reasons: Set<OmissionReason>;
  #count: number;

  constructor(count = 0, reasons: readonly OmissionReason[] = []) {
    this.#count = count;
    this.#reasons = new Set(reasons);
  }

  /** A copy for one request, in which more may be left out. */
  copy(): Omissions {
    return new Omissions(this.#count, [...this.#reasons]);
  }

  add(count: number, reason: OmissionReason): void {
    if (count <= 0) return;
    this.#count += count;
    this.#reasons.add(reason);
  }

  report(tokens: number, items: number): SectionReport | undefined {
    if (items === 0 && this.#reasons.size === 0) return undefined;
    if (this.#reasons.size === 0) return { tokens, items };
    return { tokens, items, ...(this.#count > 0 && { omitted: this.#count }), reasons: [...this.#reasons] };
  }
}

/** A section that is a list of texts, best first. */
export class ListSection implements Flexible {
  readonly section: FlexibleSection;
  #sized: readonly { readonly item: ContextItem; readonly tokens: number }[];
  /** Tokens of the words around the texts. */
  readonly #frame: number;
  readonly #omissions: Omissions;

  constructor(options: {
    section: FlexibleSection;
    items: readonly ContextItem[];
    countText: (text: string) => number;
    frame: number;
    omissions?: Omissions;
  }) {
    this.section = options.section;
    this.#sized = options.items.map((item) => ({ item, tokens: options.countText(item.text) }));
    this.#frame = options.frame;
    this.#omissions = options.omissions ?? new Omissions();
  }

  get tokens(): number {
    return this.#sized.reduce((sum, { tokens }) => sum + tokens, this.#sized.length > 0 ? this.#frame : 0);
  }

  get texts(): readonly string[] {
    return this.items.map(({ text }) => text);
  }

  get items(): readonly ContextItem[] {
    return this.#sized.map(({ item }) => item);
  }

  shrink(maxTokens: number, reason: OmissionReason): void {
    const kept = fitting(this.#sized, ({ tokens }) => tokens, maxTokens - this.#frame);
    this.#omissions.add(this.#sized.length - kept.length, reason);
    this.#sized = kept;
  }

  report(): SectionReport | undefined {
    return this.#omissions.report(this.tokens, this.#sized.length);
  }
}
