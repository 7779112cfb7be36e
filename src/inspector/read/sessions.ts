import { isLeaseOver } from '../../snapshot/lease.ts';
import { SNAPSHOT_STATUSES } from '../../snapshot/status.ts';
import type { SessionSummary } from '../../store/contract.ts';
import type { InspectorStart, SessionRow, SessionsPage } from '../api.ts';
import { failureOf } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { mapInGroups } from './map-in-groups.ts';
import { tokensOf } from './node.ts';

/** After this many sessions a request with conditions ends. */
const MOST_READ = 5000;
const LIMIT = 1000;

/** Sessions that meet all conditions, the one written last first. */
export async function readSessions(source: Source, params: Params): Promise<SessionsPage> {
  const store = source.having('list');
  const matches = conditionsOf(params);
  const limit = params.whole('limit', 1, 1000) ?? 100;
  const items: SessionRow[] = [];
  let looked = 0;
  let cursor = params.text('cursor');
  do {
    const page = await store.listSessions({ ...source.caller, limit: matches ? LIMIT : limit, cursor });
    looked += page.items.length;
    const rows = await rowsOf(source, page.items);
    items.push(...(matches ? rows.filter(matches) : rows));
    cursor = page.nextCursor;
  } while (cursor !== undefined && items.length < limit && looked < MOST_READ);
  return { items, looked, nextCursor: cursor };
}

/** Sessions in the list. Each one that runs takes one request more, because its summary does not say whether its lease has expired. */
export function rowsOf(source: Source, summaries: readonly SessionSummary[]): Promise<SessionRow[]> {
  return mapInGroups(summaries, async (summary) => {
    const leaf = summary.status === 'pending' && (await source.readMetadata({ snapshotId: summary.leafId }));
    const status = leaf && isLeaseOver(leaf) ? 'expired' : summary.status;
    return { ...summary, tokens: tokensOf(summary.usage), status };
  });
}

/** The first view: the inspector's facts, and the first sessions if the store can list. A page without a tenant opens, and asks for one. */
export async function readStart(source: Source, params: Params, info: InspectorStart['info']): Promise<InspectorStart> {
  const none = { items: [], looked: 0, info };
  if (!source.can.list) return none;
  return readSessions(source, params).then(
    (page) => ({ ...page, info }),
    (error: unknown) => ({ ...none, ...failureOf(error) }),
  );
}

/** All conditions as one; `undefined` without any. */
export function conditionsOf(params: Params): ((row: SessionRow) => boolean) | undefined {
  const words = params.text('search')?.toLowerCase().split(/\s+/).filter(Boolean);
  const status = params.oneOf('status', ...SNAPSHOT_STATUSES);
  const [agent, since, until] = [params.text('agent'), params.time('since'), params.time('until')];
  const least = params.whole('minSnapshots', 0, 1e9);
  const leastTokens = params.whole('minTokens', 0, 1e12);
  const conditions: ((row: SessionRow) => boolean)[] = [];
  if (words?.length) conditions.push((row) => words.every((word) => textOf(row).includes(word)));
  if (status) conditions.push((row) => row.status === status);
  if (agent !== undefined) conditions.push((row) => row.agent === agent);
  if (since !== undefined) conditions.push((row) => Date.parse(row.updatedAt) >= since);
  if (until !== undefined) conditions.push((row) => Date.parse(row.updatedAt) <= until);
  if (least !== undefined) conditions.push((row) => row.snapshotCount >= least);
  if (leastTokens !== undefined) conditions.push((row) => (row.tokens ?? 0) >= leastTokens);
  return conditions.length === 0 ? undefined : (row) => conditions.every((condition) => condition(row));
}

function textOf({ sessionId, title = '', ownerId = '', agent = '' }: SessionRow): string {
  return [sessionId, title, ownerId, agent].join('\n').toLowerCase();
}
