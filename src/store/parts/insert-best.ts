/**
 * Adds an item to a list of the best `limit` items, best first, if it is one of them; of equals, the earlier one stays first. For many items
 * and a short list this takes a fraction of the time of a sort.
 */
export function insertBest<T>(best: T[], item: T, limit: number, scoreOf: (item: T) => number): void {
  const score = scoreOf(item);
  const last = best[limit - 1];
  if (last !== undefined && scoreOf(last) >= score) return;
  let at = Math.min(best.length, limit - 1);
  for (; at > 0 && scoreOf(best[at - 1]!) < score; at--) best[at] = best[at - 1]!;
  best[at] = item;
}
