import { findAll } from './find.ts';
import { HashNumbering } from './numbering.ts';
import { joinOverlaps } from './overlaps.ts';
import { placeholder } from './placeholder.ts';
import type { Finding, Numbering, PrivacyRule, Redacted, RedactTextOptions } from './types.ts';

/**
 * Replaces the values that the rules find in `text` by placeholders such as `[EMAIL_1]`. JSON stays JSON: its strings, numbers and names
 * are searched one by one. Placeholders and `data:` URLs with base64 are not changed.
 *
 * @throws The error of a rule that throws.
 * @example
 * import { piiRules, redactText } from 'genkitx-agents/privacy';
 * const { value, findings } = await redactText('Mail anna@example.com', piiRules());
 * console.log(value, findings); // Mail [EMAIL_1] [{ kind: 'email', start: 5, end: 21, rule: 'email' }]
 */
export async function redactText(
  text: string,
  rules: readonly PrivacyRule[],
  options: RedactTextOptions = {},
): Promise<Redacted<string>> {
  const { numbering = new HashNumbering(), ...findOptions } = options;
  return redactOne(text, rules, numbering, findOptions);
}

/** {@link redactText}. `wholeOnly` is for a number, which a placeholder replaces as a whole. */
export async function redactOne(
  text: string,
  rules: readonly PrivacyRule[],
  numbering: Numbering,
  options: { label?: string; signal?: AbortSignal; wholeOnly?: boolean },
): Promise<Redacted<string>> {
  const { wholeOnly = false, ...findOptions } = options;
  options.signal?.throwIfAborted();
  const candidates = await findAll(text, rules, findOptions);
  if (candidates.length === 0) return { value: text, findings: [] };
  const whole = candidates.map((candidate) => ({ ...candidate, start: 0, end: text.length }));
  const findings: Finding[] = [];
  let value = '';
  let from = 0;
  for (const { kind, start, end, rule, canonical, quote } of joinOverlaps(wholeOnly ? whole : candidates)) {
    value += text.slice(from, start) + quote + placeholder(kind, numbering.numberOf(kind, canonical)) + quote;
    from = end;
    findings.push({ kind, start, end, rule });
  }
  return { value: value + text.slice(from), findings };
}
