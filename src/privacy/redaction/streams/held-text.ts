import { findAll } from '../../rules/find.ts';
import { joinOverlaps } from '../../rules/overlaps.ts';
import { placeholder } from '../../rules/placeholder.ts';
import type { Numbering, PrivacyRule } from '../../rules/types.ts';
import type { TextSlot } from './stream-items.ts';

/** What a rule may look at around a value, in UTF-16 code units. */
const MARGIN = 64;

interface HeldSlot {
  readonly slot: TextSlot;
  /** Where it ends in the text that is held. */
  readonly end: number;
}

/** A value in the text that is held. */
interface HeldFinding {
  readonly start: number;
  readonly end: number;
  readonly placeholder: string;
}

/** A text that comes in pieces. Its end is held, because a value that begins there may go on in the next piece. */
export class HeldText {
  readonly #rules: readonly PrivacyRule[];
  readonly #numbering: Numbering;
  readonly #holdLength: number;
  /** The end of what was released, as it came: rules look at what stands before a value. */
  #before = '';
  #text = '';
  #slots: HeldSlot[] = [];
  #findings: readonly HeldFinding[] = [];
  /** No value that may go on begins before this place. */
  #safeEnd = 0;
  #searchedLength = 0;

  constructor(rules: readonly PrivacyRule[], numbering: Numbering) {
    this.#rules = rules;
    this.#numbering = numbering;
    this.#holdLength = MARGIN + Math.max(0, ...rules.map(({ maxLength }) => maxLength));
  }

  /** Whether so much came since the last search that another one is worth it: each character is searched a few times at most. */
  get isDue(): boolean {
    return this.#text.length - this.#searchedLength > this.#holdLength;
  }

  add(slot: TextSlot): void {
    this.#text += slot.text;
    this.#slots.push({ slot, end: this.#text.length });
  }

  /** @param isEnd Nothing comes after the text. */
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

  /** Instead of a search that failed: the text is released as it is. */
  skipSearch(): void {
    this.#findings = [];
    this.#searchedLength = this.#text.length;
    this.#safeEnd = this.#text.length;
  }

  /** Whether so many slots may be released: no value lies across the end of the last one. */
  isSafeAfter(count: number): boolean {
    if (count === 0) return true;
    const { end } = this.#slots[count - 1]!;
    return end <= this.#safeEnd && this.#findings.every((finding) => finding.end <= end || finding.start >= end);
  }

  /** Puts placeholders into so many slots, and forgets them. A placeholder stands where its value begins. */
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
      if (finding.start >= start) text += finding.placeholder;
      from = Math.min(end, finding.end);
    }
    return text + this.#text.slice(from, end);
  }
}
