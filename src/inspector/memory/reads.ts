import { statusOf } from '../../agent/runtime-error.ts';
import { notFound, quote } from '../../errors.ts';
import type { PageOptions } from '../../store/contract.ts';
import type {
  Memory,
  MemoryJob,
  MemoryScopeId,
  MemorySearchResult,
  MemoryView,
  Page,
  QuarantinedText,
  SourceView,
} from '../api.ts';
import { failureOf } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { managerOf, managerScope, mustGetMemory, scopeIn } from './scope.ts';

/** A person can wait longer for a search than a turn. */
const DEADLINE_MS = 10_000;

export async function listScopes(source: Source, params: Params): Promise<Page<MemoryScopeId>> {
  return managerOf(source).store.listScopes({ ...source.caller, ...pageOf(params) });
}

export async function listMemories(source: Source, params: Params): Promise<Page<Memory>> {
  const [kind, topic] = [params.oneOf('kind', 'declarative', 'procedural'), params.text('topic')];
  const { limit: k, cursor } = pageOf(params);
  const { items, nextCursor } = await managerOf(source).store.query(scopeIn(params), {
    ...source.caller,
    k,
    cursor,
    ...asOf(params),
    filter: { includeInvalid: params.isSet('all'), kind, topics: topic === undefined ? undefined : [topic] },
  });
  return { items: items.map(({ memory }) => memory), nextCursor };
}

export async function searchMemories(source: Source, params: Params): Promise<MemorySearchResult> {
  return managerOf(source).search({
    scope: managerScope(source, params),
    query: params.mustText('query'),
    deadlineMs: DEADLINE_MS,
    ...asOf(params),
    k: params.whole('k', 1, 50),
  });
}

export async function showMemory(source: Source, params: Params): Promise<MemoryView> {
  const memory = await mustGetMemory(source, params);
  return { memory, revisions: await managerOf(source).store.revisions(scopeIn(params), memory.id, source.caller) };
}

/** The messages of a source, read from its snapshot, or else from the current state of its session. */
export async function readSource(source: Source, params: Params): Promise<SourceView> {
  const memory = await mustGetMemory(source, params);
  const at = params.whole('source', 0, 100_000) ?? 0;
  const found = memory.sources[at];
  if (!found) throw notFound(`Memory ${quote(memory.id)} has no source ${at}; it has ${memory.sources.length}.`);
  const { snapshotId, sessionId, from, to } = found;
  if (from === undefined || to === undefined || (snapshotId ?? sessionId) === undefined) {
    return { source: found, reason: 'The source has no messages of a session.' };
  }
  let snapshot = snapshotId === undefined ? undefined : await source.read({ snapshotId });
  if (!snapshot && sessionId !== undefined) {
    try {
      snapshot = await source.read({ sessionId });
    } catch (error) {
      // A store with rejectBranchingSessions refuses to read the leaf of a session with branches.
      if (statusOf(error) !== 'FAILED_PRECONDITION') throw error;
      const reason = `The branch of these messages is unknown. ${failureOf(error).error.message}`;
      return { source: found, reason, sessionId };
    }
  }
  const messages = snapshot?.state?.messages?.slice(from, to) ?? [];
  if (!snapshot || messages.length === 0)
    return { source: found, reason: 'Its messages are not in the store any more.' };
  return { source: found, messages, snapshotId: snapshot.snapshotId, sessionId };
}

export async function listQuarantine(source: Source, params: Params): Promise<{ items: QuarantinedText[] }> {
  return { items: await managerOf(source).quarantine.list({ scope: managerScope(source, params) }) };
}

export async function listJobs(source: Source, params: Params): Promise<Page<MemoryJob>> {
  const state = params.oneOf('state', 'waiting', 'running', 'dead');
  const scope = params.json('scope') === undefined ? undefined : scopeIn(params);
  return managerOf(source).store.listJobs({ ...source.caller, ...pageOf(params), state, scope });
}

function pageOf(params: Params): Pick<PageOptions, 'limit' | 'cursor'> {
  return { limit: params.whole('limit', 1, 1000), cursor: params.text('cursor') };
}

function asOf(params: Params): { asOf?: string } {
  const time = params.time('asOf');
  return time === undefined ? {} : { asOf: new Date(time).toISOString() };
}
