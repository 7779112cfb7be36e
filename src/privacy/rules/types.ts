/** A value that a rule found: `text.slice(start, end)`. */
export interface RuleMatch {
  /** What it is, in lower case with hyphens: `email`, `credit-card`. The placeholder of `credit-card` is `[CREDIT_CARD_1]`. */
  readonly kind: string;
  /** Index of its first UTF-16 code unit. */
  readonly start: number;
  /** Index after its last UTF-16 code unit. */
  readonly end: number;
  /** One form for all spellings of the value, so that they get the same number. Default: the text of the match. */
  readonly canonical?: string;
}

/** What a rule may know beside the text. */
export interface FindOptions {
  /** The name of the member that holds the text, as in `{ "birthDate": "1985-03-12" }`. */
  readonly label?: string;
  /** Aborted when the answer is no longer wanted. */
  readonly signal?: AbortSignal;
}

/**
 * Finds values of some kinds in text.
 *
 * @example
 * import type { PrivacyRule } from 'genkitx-agents/privacy';
 * const badges: PrivacyRule = {
 *   name: 'badges',
 *   maxLength: 8,
 *   find: (text) => [...text.matchAll(/\bB-\d{6}\b/g)].map(({ index, 0: value }) => ({
 *     kind: 'badge',
 *     start: index,
 *     end: index + value.length,
 *   })),
 * };
 */
export interface PrivacyRule {
  /** Named by findings and errors. */
  readonly name: string;
  /** UTF-16 code units of the longest value that it finds. A stream is held back by as much. */
  readonly maxLength: number;
  /**
   * The values in `text`, in any order; they may overlap. It may be any async function. A rule that throws fails the redaction, so that
   * nothing is written that it did not see.
   */
  readonly find: (text: string, options: FindOptions) => readonly RuleMatch[] | Promise<readonly RuleMatch[]>;
}

/** A value that was replaced. Never the value itself. */
export interface Finding {
  /** The kind that the rule gave. Of matches that overlap, the kind of the longest. */
  readonly kind: string;
  /** Index of its first UTF-16 code unit in the text as it was. */
  readonly start: number;
  /** Index after its last UTF-16 code unit in the text as it was. */
  readonly end: number;
  /** The name of the rule. */
  readonly rule: string;
}

/** A value that was replaced, and where. */
export interface ValueFinding extends Finding {
  /** JSON Pointer to the text, the number or the member, in the redacted value: it holds no value that was found. */
  readonly path: string;
  /** Whether it was found in the member's name. */
  readonly inName?: boolean;
}

/** Gives the values of a session their numbers: the 2 of `[EMAIL_2]`. */
export interface Numbering {
  /** The number of a value, 1 or higher: the same each time, and another for each value of a kind. */
  readonly numberOf: (kind: string, canonical: string) => number;
}

/** Options of `redactText`. */
export interface RedactTextOptions extends FindOptions {
  /** Default: one of its own, which begins at 1. */
  readonly numbering?: Numbering;
}

/** Options of `redactValue`. */
export interface RedactValueOptions extends Omit<RedactTextOptions, 'label'> {
  /** JSON Pointers of what is left as it is, with all that is below: `/custom/order/id`. A `*` stands for any one name or index. Default: none. */
  readonly except?: readonly string[];
}

/** What was redacted, and what was found. */
export interface Redacted<T, F extends Finding = Finding> {
  /** With placeholders. The same object as before if nothing was found. */
  readonly value: T;
  /** In the order of the text. */
  readonly findings: readonly F[];
}
