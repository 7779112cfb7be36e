/**
 * A step for a budget that differs a little from request to request: at most half of it, at least a quarter, and mostly the same. A step that
 * followed the budget would move the cut each time.
 */
export function stepFor(budget: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, budget / 2))));
}

/**
 * The first turn to keep, so that the kept turns take at most `budget`.
 *
 * The cut falls only where the tokens before it reach a multiple of `step`. It then stays where it is until the history has grown by `step`, and
 * meanwhile each request begins like the one before, which is what providers cache.
 *
 * @param sizes Tokens of each turn, oldest first.
 */
export function cutToBudget(sizes: readonly number[], budget: number, step: number): number {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= budget) return 0;
  const least = Math.ceil((total - budget) / step) * step;
  let before = 0;
  let first = 0;
  while (first < sizes.length && before < least) before += sizes[first++]!;
  const last = sizes.length - 1;
  return first > last && sizes[last]! <= budget ? last : first;
}
