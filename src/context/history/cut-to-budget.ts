/**
 * The largest power of two up to half of the budget, at least 1. The budget differs a little from request to request; a step in proportion
 * to it would move the cut each time.
 */
export function stepFor(budget: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, budget / 2))));
}

/**
 * The first turn to keep, so that the kept turns take at most `budget`.
 *
 * The cut is the first at which the tokens before it reach a certain multiple of `step`. It stays there until the history has grown by
 * about `step`; meanwhile each request begins like the one before, so providers' caches serve it.
 *
 * @param sizes Tokens of each turn, oldest first.
 * @param keep As many of the last turns are left out only if they exceed the budget.
 */
export function cutToBudget(sizes: readonly number[], budget: number, step: number, keep = 1): number {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= budget) return 0;
  const least = Math.ceil((total - budget) / step) * step;
  let before = 0;
  let first = 0;
  while (first < sizes.length && before < least) before += sizes[first++]!;
  let kept = total;
  for (let i = 0; i < first; i++) {
    if (i >= sizes.length - keep && kept <= budget) return i;
    kept -= sizes[i]!;
  }
  return first;
}
