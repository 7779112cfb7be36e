/** A value that a rule found: `text.slice(start, end)`. */
export interface RuleMatch {
  /** The kind of value, in lower case with hyphens: `email`, `credit-card`. The placeholder of `credit-card` is `[CREDIT_CARD_1]`. */
  readonly kind: string;
  /** Index of its first UTF-16 code unit. */
  readonly start: number;
  /** Index after its last UTF-16 code unit. */
  readonly end: number;
  /** One form for all spellings of the value, so that they get the same number. Default: the text of the match. */
  readonly canonical?: string;
}

/** Information for a rule besides the text. */
export interface FindOptions {
  /** The name of the member that holds the text, as in `{ "birthDate": "1985-03-12" }`. */
  readonly label?: string;
  /** Aborted when the result is no longer needed. */
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
  /** The rule's name in findings and errors. */
  readonly name: string;
  /** Length of the longest value that it finds, in UTF-16 code units. Redacted streams are held back by as much. */
  readonly maxLength: number;
  /**
   * Returns the values in `text`, in any order; they may overlap. May be async. If it throws, the redaction fails, so that no unsearched
   * text is written.
   */
  readonly find: (text: string, options: FindOptions) => readonly RuleMatch[] | Promise<readonly RuleMatch[]>;
}

/** A replaced value, without the value itself. */
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

/** A replaced value and its place. */
export interface ValueFinding extends Finding {
  /** JSON Pointer to the text, the number or the member, in the redacted value: it holds no value that was found. */
  readonly path: string;
  /** Whether it was found in the member's name. */
  readonly inName?: boolean;
}

/** Gives the values of a session their numbers: the 2 of `[EMAIL_2]`. */
export interface Numbering {
  /** The number of a value, 1 or higher: always the same for a value, and different for different values of a kind. */
  readonly numberOf: (kind: string, canonical: string) => number;
}

/** Options of `redactText`. */
export interface RedactTextOptions extends FindOptions {
  /** Default: one of its own, which begins at 1. */
  readonly numbering?: Numbering;
}

/** Options of `redactValue`. */
export interface RedactValueOptions extends Omit<RedactTextOptions, 'label'> {
  /** JSON Pointers of values that are not redacted, with all below: `/custom/order/id`. `*` is any one name or index. Default: none. */
  readonly except?: readonly string[];
}

/** A redacted value, and its findings. */
export interface Redacted<T, F extends Finding = Finding> {
  /** The value with placeholders. The same object as before if nothing was found. */
  readonly value: T;
  /** In the order of the text. */
  readonly findings: readonly F[];
}
