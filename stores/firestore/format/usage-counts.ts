import type { UsageSum } from '../../../src/store/contract.ts';

/** The sum of the `usage` of a session's snapshots: for each numeric member the sum, and how many snapshots have it. */
export type UsageCounts = { readonly [name: string]: readonly [sum: number, count: number] };

/** Adds a snapshot's usage to the counts, or with a `sign` of -1 subtracts it. */
export function addUsage(counts: UsageCounts, usage: unknown, sign: 1 | -1 = 1): UsageCounts {
  if (typeof usage !== 'object' || usage === null) return counts;
  const after = new Map(Object.entries(counts));
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value !== 'number') continue;
    const [sum, count] = after.get(name) ?? [0, 0];
    if (count + sign === 0) after.delete(name);
    else after.set(name, [sum + sign * value, count + sign]);
  }
  return Object.fromEntries(after);
}

/** The sums; `undefined` when no snapshot has a usage. */
export function usageSum(counts: UsageCounts): UsageSum | undefined {
  const sums = Object.entries(counts).map(([name, [sum]]) => [name, sum] as const);
  return sums.length === 0 ? undefined : Object.fromEntries(sums);
}
