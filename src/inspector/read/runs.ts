import { listAllSnapshots } from '../../store/list/items-of.ts';
import { isLeaseOver } from '../../snapshot/lease.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SessionSummary } from '../../store/contract.ts';
import type { RunLine, RunsPage, RunState } from '../api.ts';
import { storedError } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { mapInGroups } from './map-in-groups.ts';
import { runFacts } from './node.ts';

/** How many sessions one request lists. */
const LIMIT = 1000;

/** Background runs of the sessions that were written last. */
export async function readRuns(source: Source, params: Params): Promise<RunsPage> {
  const cursor = params.text('cursor');
  const page = await source
    .having('list')
    .listSessions({ ...source.caller, limit: LIMIT, ...(cursor !== undefined && { cursor }) });
  const sessions = page.items.filter(mayHaveRun);
  const items = (await mapInGroups(sessions, (session) => runsOf(source, session))).flat();
  const { nextCursor } = page;
  return { items, now: new Date().toISOString(), ...(nextCursor !== undefined && { nextCursor }) };
}

function mayHaveRun({ status, leafCount }: SessionSummary): boolean {
  return leafCount > 1 || (status !== 'completed' && status !== 'aborted');
}

/** The runs of a session, found in its leaf and the running turns before that; in a session with branches, in all snapshots. */
async function runsOf(source: Source, { sessionId, leafId, leafCount }: SessionSummary): Promise<RunLine[]> {
  const snapshots =
    leafCount > 1
      ? await listAllSnapshots(source.having('list'), { ...source.caller, sessionId })
      : await pendingLine(source, leafId);
  const byId = new Map(snapshots.map((snapshot) => [snapshot.snapshotId, snapshot]));
  return snapshots.flatMap((snapshot) => {
    const state = stateOf(snapshot, snapshot.parentId === undefined ? undefined : byId.get(snapshot.parentId));
    const facts = runFacts(snapshot);
    if (!state) return [];
    const { snapshotId, createdAt, error } = snapshot;
    const line = { id: snapshotId, ...facts, state, sessionId, snapshotId, createdAt };
    return [{ ...line, ...(error && state === 'given-up' && { error: storedError(error).message }) }];
  });
}

/** A snapshot, after the running ones for which it waits. */
async function pendingLine(source: Source, leafId: string): Promise<SnapshotMetadata[]> {
  const line: SnapshotMetadata[] = [];
  for (let id: string | undefined = leafId; id !== undefined;) {
    const snapshot: SnapshotMetadata | undefined = await source.readMetadata({ snapshotId: id });
    if (!snapshot || (line.length > 0 && !isRunning(snapshot))) break;
    line.unshift(snapshot);
    id = isRunning(snapshot) ? snapshot.parentId : undefined;
  }
  return line;
}

function stateOf(snapshot: SnapshotMetadata, parent: SnapshotMetadata | undefined): RunState | undefined {
  if (snapshot.status === 'failed') return runFacts(snapshot) ? 'given-up' : undefined;
  if (!isRunning(snapshot)) return undefined;
  if (parent && isRunning(parent)) return 'waiting';
  return isLeaseOver(snapshot) ? 'expired' : 'running';
}

function isRunning({ status }: SnapshotMetadata): boolean {
  return status === 'pending' || status === 'expired';
}
