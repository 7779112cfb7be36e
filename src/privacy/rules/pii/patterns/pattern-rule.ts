import type { PrivacyRule } from '../../types.ts';
import { fold } from './fold.ts';

/** A value in folded text. */
export interface Span {
  readonly start: number;
  readonly end: number;
  readonly canonical?: string;
}

/** A rule for one kind. `find` gets text in plain ASCII, see {@link fold}. */
export function patternRule(
  kind: string,
  maxLength: number,
  find: (text: string, label: string | undefined) => Iterable<Span>,
): PrivacyRule {
  return {
    name: kind,
    maxLength,
    find: (text, { label }) => {
      const folded = fold(text);
      return [...find(folded.text, label)].map(({ start, end, canonical }) => ({
        kind,
        start: folded.originOf(start),
        end: folded.originOf(end),
        canonical: canonical ?? folded.text.slice(start, end),
      }));
    },
  };
}

/** The text before `index`, with the label before that: "birthDate: ". Of bounded length. */
export function textBefore(text: string, index: number, label: string | undefined, length: number): string {
  const before = text.slice(Math.max(0, index - length), index);
  return label === undefined || index > length ? before : `${label.slice(-80)}: ${before}`;
}
