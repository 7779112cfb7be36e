import type { SessionsQuery, SnapshotStatus } from '../../../../src/inspector/api.ts';

export const AGES: readonly [value: string, label: string, ms: number][] = [
  ['1h', 'last hour', 3_600_000],
  ['1d', 'last day', 86_400_000],
  ['7d', 'last week', 604_800_000],
  ['30d', 'last 30 days', 2_592_000_000],
];

/** About half a large screen, so that the first view appears soon. */
const PAGE = 50;

/** The query for the conditions in the address. */
export function queryOf(query: Readonly<Record<string, string>>): SessionsQuery {
  const { tenant, search, status, agent, age, tokens } = query;
  const ms = AGES.find(([value]) => value === age)?.[2];
  return {
    limit: PAGE,
    tenant,
    search,
    agent,
    status: status as SnapshotStatus | undefined,
    // Rounded to the minute, so that the same conditions make the same request for a while.
    since: ms === undefined ? undefined : new Date(Math.floor((Date.now() - ms) / 60_000) * 60_000).toISOString(),
    minTokens: Number(tokens) || undefined,
  };
}

export function hasConditions({ search, agent, status, since, minTokens }: SessionsQuery): boolean {
  return [search, agent, status, since, minTokens].some(Boolean);
}
