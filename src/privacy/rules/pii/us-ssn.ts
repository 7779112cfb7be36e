import { patternRule, textBefore, type Span } from './patterns/pattern-rule.ts';

/** No area is 000, 666 or 900 and above, no group 00, no serial number 0000. */
const NUMBER = /(?<![\w.-]|[#+/])(?!000|666|9)(\d{3})([-. ]?)(?!00)(\d\d)\2(?!0000)(\d{4})(?![\w/]|[-.]\d)/g;
const LABEL = /\b(?:ssn|ssnum|social[ _-]?security|soc\.? ?sec|tin|tax ?payer|seguro social|sozialversicherung)/i;

/** Social security numbers of the USA. Without hyphens only after a word that says so. */
export const usSsn = patternRule('us-ssn', 11, function* (text, label): Generator<Span> {
  for (const { index: start, 0: value, 1: area, 2: separator, 3: group, 4: serial } of text.matchAll(NUMBER)) {
    if (separator !== '-' && !LABEL.test(textBefore(text, start, label, 40))) continue;
    yield { start, end: start + value.length, canonical: `${area}-${group}-${serial}` };
  }
});
