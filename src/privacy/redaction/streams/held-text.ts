import { findAll } from '../../rules/find.ts';
import { joinOverlaps } from '../../rules/overlaps.ts';
import { placeholder } from '../../rules/placeholder.ts';
import type { Numbering, PrivacyRule } from '../../rules/types.ts';
import type { TextSlot } from './stream-items.ts';

/** How far around a value a rule may look, in UTF-16 code units. */
const MARGIN = 64;

interface HeldSlot {
  readonly slot: TextSlot;
  /** Its end in the held text. */
  readonly end: number;
}

/** A finding in the held text. */
interface HeldFinding {
  readonly start: number;
  readonly end: number;
  readonly placeholder: string;
}

/** A text that arrives in pieces. Its end is held back, because a value there may continue in the next piece. */
export class HeldText {
  readonly #rules: readonly PrivacyRule[];
  readonly #numbering: Numbering;
  readonly #holdLength: number;
  /** The end of the released text, without placeholders: rules also look at the text before a value. */
  #before = '';
  #text = '';
  #slots: HeldSlot[] = [];
  #findings: readonly HeldFinding[] = [];
  /** All values that begin before this place are complete. */
  #safeEnd = 0;
  #searchedLength = 0;

  constructor(rules: readonly PrivacyRule[], numbering: Numbering) {
    this.#rules = rules;
    this.#numbering = numbering;
    this.#holdLength = MARGIN + Math.max(0, ...rules.map(({ maxLength }) => maxLength));
  }

  /** Whether enough text came since the last search for another one, so that each character is searched a few times at most. */
  get isDue(): boolean {
    return this.#text.length - this.#searchedLength > this.#holdLength;
  }

  add(slot: TextSlot): void {
    this.#text += slot.text;
    this.#slots.push({ slot, end: this.#text.length });
  }

  /** @param isEnd Whether the text is complete. */
  async search(isEnd: boolean, signal: AbortSignal): Promise<void> {
    const offset = this.#before.length;
    const candidates = joinOverlaps(await findAll(this.#before + this.#text, this.#rules, { signal }));
    this.#findings = candidates
      .filter(({ end }) => end > offset)
      .map(({ kind, start, end, canonical, quote }) => ({
        start: Math.max(0, start - offset),
        end: end - offset,
        placeholder: quote + placeholder(kind, this.#numbering.numberOf(kind, canonical)) + quote,
      }));
    this.#searchedLength = this.#text.length;
    this.#safeEnd = isEnd ? this.#text.length : Math.max(0, this.#text.length - this.#holdLength);
    for (const { start, end } of this.#findings) {
      if (start < this.#safeEnd && end > this.#safeEnd) this.#safeEnd = start;
    }
  }

  /** Replaces a search that failed: the text is released unchanged. */
  skipSearch(): void {
    this.#findings = [];
    this.#searchedLength = this.#text.length;
    this.#safeEnd = this.#text.length;
  }

  /** Whether the first `count` slots may be released: no value crosses the end of the last one. */
  isSafeAfter(count: number): boolean {
    if (count === 0) return true;
    const { end } = this.#slots[count - 1]!;
    return end <= this.#safeEnd && this.#findings.every((finding) => finding.end <= end || finding.start >= end);
  }

  /**
   * Puts placeholders into the first `count` slots, and drops these slots. A placeholder goes where its value ends: a client whose connection
   * breaks within a value skips the slots that it has, and gets the placeholder with the others.
   */
  release(count: number): void {
    if (count === 0) return;
    let start = 0;
    for (const { slot, end } of this.#slots.slice(0, count)) {
      slot.replace(this.#redacted(start, end));
      start = end;
    }
    this.#before = (this.#before + this.#text.slice(0, start)).slice(-this.#holdLength);
    this.#text = this.#text.slice(start);
    this.#searchedLength = this.#text.length;
    this.#slots = this.#slots.slice(count).map(({ slot, end }) => ({ slot, end: end - start }));
    this.#findings = [];
    this.#safeEnd = 0;
  }

  #redacted(start: number, end: number): string {
    let text = '';
    let from = start;
    for (const finding of this.#findings.filter((each) => each.start < end && each.end > start)) {
      text += this.#text.slice(from, Math.max(from, finding.start));
      if (finding.end <= end) text += finding.placeholder;
      from = Math.min(end, finding.end);
    }
    return text + this.#text.slice(from, end);
  }
}
