import { GenkitError } from 'genkit';
import { jsonLiterals } from './json-text.ts';
import type { RankedMatch } from './overlaps.ts';
import { spansToSkip } from './placeholder.ts';
import type { FindOptions, PrivacyRule, RuleMatch } from './types.ts';

/** All matches of all rules in `text`; if it is JSON, those in its strings, numbers and names. */
export async function findAll(
  text: string,
  rules: readonly PrivacyRule[],
  options: FindOptions,
): Promise<RankedMatch[]> {
  // Recursive, because JSON may hold JSON text. Each level doubles the escapes, so there are never many levels.
  const literals = jsonLiterals(text);
  if (!literals) return findPlain(text, rules, options);
  const found: RankedMatch[] = [];
  for (const literal of literals) {
    const label = literal.label ?? options.label;
    for (const match of await findAll(literal.text, rules, { ...options, label })) {
      found.push({
        ...match,
        start: literal.originOf(match.start),
        end: literal.originOf(match.end),
        // A number is replaced as a whole by a string, so that the text stays JSON.
        ...(literal.isNumber && { start: literal.originOf(0), end: literal.originOf(literal.text.length) }),
        quote: literal.isNumber ? '"' : JSON.stringify(match.quote).slice(1, -1),
      });
    }
  }
  return found;
}

async function findPlain(text: string, rules: readonly PrivacyRule[], options: FindOptions): Promise<RankedMatch[]> {
  const found: RankedMatch[] = [];
  if (text === '') return found;
  for (const [rank, rule] of rules.entries()) {
    const answer = rule.find(text, options);
    // Awaits promises only: a session has thousands of texts, and a tick for each would be slow.
    for (const match of checkMatches(isPromise(answer) ? await answer : answer, text, rule)) {
      const { kind, start, end, canonical = text.slice(start, end) } = match;
      found.push({ kind, start, end, canonical, rule: rule.name, rank, quote: '' });
    }
  }
  if (found.length === 0) return found;
  const skipped = spansToSkip(text);
  return found.filter(({ start, end }) => !skipped.some((span) => span.start <= start && end <= span.end));
}

export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as Partial<Promise<T>> | undefined)?.then === 'function';
}

/** Returns the answer of a rule. @throws `INTERNAL` when it is not a list of matches in the text. */
export function checkMatches(matches: readonly RuleMatch[], text: string, rule: PrivacyRule): readonly RuleMatch[] {
  if (!Array.isArray(matches)) {
    throw new GenkitError({ status: 'INTERNAL', message: `The privacy rule '${rule.name}' did not return a list.` });
  }
  for (const match of matches as readonly RuleMatch[]) assertMatch(match, text, rule);
  return matches;
}

function assertMatch({ kind, start, end }: RuleMatch, text: string, rule: PrivacyRule): void {
  if (
    typeof kind === 'string' &&
    /[a-z]/i.test(kind) &&
    isIndex(start) &&
    isIndex(end) &&
    start < end &&
    end <= text.length
  )
    return;
  throw new GenkitError({
    status: 'INTERNAL',
    message: `The privacy rule '${rule.name}' returned an invalid match: it needs a kind, and 0 <= start < end <= ${text.length}.`,
  });
}

function isIndex(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
