/** A match of a rule in one text. */
export interface RankedMatch {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly rule: string;
  readonly canonical: string;
  /** The place of the rule in the list of rules. */
  readonly rank: number;
  /** Put before and after the placeholder: quotes, where a number in JSON becomes a string. */
  readonly quote: string;
}

/**
 * Joins overlapping matches into one, so that all of them are replaced. The longest match gives the kind; of equally long ones, that of the
 * first rule. The result is sorted by position.
 */
export function joinOverlaps(candidates: readonly RankedMatch[]): RankedMatch[] {
  const joined: RankedMatch[] = [];
  let strongest: RankedMatch | undefined;
  for (const next of candidates.toSorted((a, b) => a.start - b.start || b.end - a.end || a.rank - b.rank)) {
    const last = joined.at(-1);
    if (!last || !strongest || next.start >= last.end) {
      joined.push(next);
      strongest = next;
      continue;
    }
    strongest = stronger(strongest, next);
    joined[joined.length - 1] = { ...strongest, start: last.start, end: Math.max(last.end, next.end) };
  }
  return joined;
}

function stronger(a: RankedMatch, b: RankedMatch): RankedMatch {
  const difference = b.end - b.start - (a.end - a.start);
  return difference > 0 || (difference === 0 && b.rank < a.rank) ? b : a;
}
