import { listAllSnapshots, UnreadableItems } from '../../store/list/items-of.ts';
import { runStateOf } from '../../snapshot/lease.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { Page, PageOptions, SessionSummary, SnapshotStore } from '../../store/contract.ts';
import type { RunLine, RunsPage } from '../api.ts';
import { storedError } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import { Source } from '../source.ts';
import { mapInGroups } from './map-in-groups.ts';
import { runFacts } from './node.ts';

/** How many sessions one request lists. */
const LIMIT = 1000;

export async function readRuns(source: Source, params: Params): Promise<RunsPage> {
  return { ...(await pageOf(source, params.text('cursor'))), now: new Date().toISOString() };
}

/**
 * Background runs that have not ended, and those that failed. A page has the runs of 1,000 sessions, those of the session written last first,
 * and in `unreadable` the sessions whose runs can't be read.
 *
 * @throws `FAILED_PRECONDITION` when the store has no `capabilities.list`.
 */
export function listRuns(
  store: SnapshotStore,
  { context, cursor }: Pick<PageOptions, 'context' | 'cursor'> = {},
): Promise<Page<RunLine>> {
  return pageOf(new Source({ store, context }), cursor);
}

async function pageOf(source: Source, cursor: string | undefined): Promise<Page<RunLine>> {
  const page = await source.having('list').listSessions({ ...source.caller, limit: LIMIT, cursor });
  const sessions = page.items.filter(mayHaveRun);
  const unreadable = new UnreadableItems();
  unreadable.add(page.unreadable);
  const runs = await mapInGroups(sessions, (session) =>
    unreadable.read({ sessionId: session.sessionId }, runsOf(source, session)),
  );
  const items = runs.flatMap((found) => found ?? []);
  const unread = unreadable.all;
  return { items, nextCursor: page.nextCursor, ...(unread.length > 0 && { unreadable: unread }) };
}

function mayHaveRun({ status, leafCount }: SessionSummary): boolean {
  return leafCount > 1 || (status !== 'completed' && status !== 'aborted');
}

/** The runs of a session, found in its leaf and the running turns before that; in a session with branches, in all snapshots. */
async function runsOf(source: Source, { sessionId, leafId, leafCount }: SessionSummary): Promise<RunLine[]> {
  const snapshots =
    leafCount > 1
      ? await listAllSnapshots(source.having('list'), { ...source.caller, sessionId })
      : await pendingChain(source, leafId);
  const byId = new Map(snapshots.map((snapshot) => [snapshot.snapshotId, snapshot]));
  return snapshots.flatMap((snapshot) => {
    const state = stateOf(snapshot, snapshot.parentId === undefined ? undefined : byId.get(snapshot.parentId));
    if (!state) return [];
    const { snapshotId, createdAt, error } = snapshot;
    const reason = error && state === 'given-up' ? storedError(error).message : undefined;
    return [{ id: snapshotId, ...runFacts(snapshot), state, sessionId, snapshotId, createdAt, error: reason }];
  });
}

/** A snapshot, after the running ones for which it waits. */
async function pendingChain(source: Source, leafId: string): Promise<SnapshotMetadata[]> {
  const chain: SnapshotMetadata[] = [];
  for (let id: string | undefined = leafId; id !== undefined;) {
    const snapshot: SnapshotMetadata | undefined = await source.readMetadata({ snapshotId: id });
    if (!snapshot || (chain.length > 0 && !runStateOf(snapshot))) break;
    chain.unshift(snapshot);
    id = runStateOf(snapshot) ? snapshot.parentId : undefined;
  }
  return chain;
}

function stateOf(snapshot: SnapshotMetadata, parent: SnapshotMetadata | undefined): RunLine['state'] | undefined {
  if (snapshot.status === 'failed') return runFacts(snapshot) ? 'given-up' : undefined;
  const state = runStateOf(snapshot);
  // A turn begins after the one before it in its run.
  return state && parent && runStateOf(parent) ? 'waiting' : state;
}
