import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { errorMessage, invalidArgument, quote } from '../errors.ts';
import { checkOptions, isFunction, isObject, isOneOf, isString, isWhole } from '../store/check-options.ts';
import type { SessionSummary, SnapshotStore } from '../store/contract.ts';
import type { MemoryStore } from '../store/memory/contract.ts';
import type { LruCache } from '../store/parts/lru-cache.ts';
import type { IngestWhile } from './pipeline/ingest/ingest.ts';
import { lastEnded, sourceOfSession } from './pipeline/ingest/read-session.ts';
import { tenantKeyOf, type MemoryScope } from './scopes.ts';
import type { IngestOptions } from './types.ts';

/** Options of `backfill`. */
export interface BackfillOptions {
  /** Where the sessions are. */
  store: SnapshotStore;
  /**
   * The scope that a session is learned into; `undefined`: the session is skipped. `context` is the option of this call. If it throws, the
   * backfill ends with the error.
   */
  scopeOf: (session: SessionSummary, context: ActionContext | undefined) => MemoryScope | undefined;
  /** `verbatim`: each message becomes a memory. Default: as the manager says. */
  extract?: 'verbatim';
  /** Names the tenant of the session store. Default: none. */
  context?: ActionContext;
  /** Only sessions that were written within this time, in ms. Default: all. */
  withinMs?: number;
  /** The `cursor` of an earlier call, to continue it. Default: from the beginning. */
  cursor?: string | undefined;
  /** Called after each page of sessions. */
  onProgress?: (progress: BackfillResult) => void;
}

/** Progress of `backfill`. */
export interface BackfillResult {
  /** Sessions that were looked at. */
  sessions: number;
  /** Sessions with new jobs. */
  enqueued: number;
  /** Sessions that could not be read; the log says why. */
  failed: number;
  /** The queue was full; a later call continues. */
  isFull: boolean;
  /** Where a later call continues. `undefined`: at the beginning if `isFull`, else the backfill is done. */
  cursor?: string;
}

/** The parts of a manager for a backfill. */
export interface BackfillTools {
  readonly store: Pick<MemoryStore, 'tenant'>;
  /** Throws if the manager can't ingest. */
  readonly check: (options: IngestOptions) => void;
  readonly ingest: IngestWhile;
  /** Sessions to skip, because nothing in them is new; those that are read are added. Default: all are read. */
  readonly known?: LruCache<true>;
}

/**
 * Ingests the sessions of a store.
 *
 * @throws The error of `check`, of `scopeOf` or from listing the sessions. What is wrong with one session is logged and counted.
 */
export async function backfillSessions(tools: BackfillTools, options: BackfillOptions): Promise<BackfillResult> {
  checkOptions('backfill', options, {
    store: isObject,
    scopeOf: isFunction,
    extract: isOneOf('verbatim'),
    context: isObject,
    withinMs: isWhole(1),
    cursor: isString,
    onProgress: isFunction,
  });
  if (!options?.store || !options.scopeOf)
    throw invalidArgument('backfill needs a store and scopeOf: backfill({ store, scopeOf }).');
  if (typeof options.store.listSessions !== 'function')
    throw invalidArgument('backfill: store must be a session store that lists its sessions.');
  const { store, context, withinMs = Infinity, onProgress } = options;
  const result: BackfillResult = { sessions: 0, enqueued: 0, failed: 0, isFull: false };
  if (options.cursor) result.cursor = options.cursor;
  for (;;) {
    const { cursor } = result;
    const { items, nextCursor } = await store.listSessions({ context, cursor, limit: 100 });
    const recent = items.filter(({ updatedAt }) => Date.now() - Date.parse(updatedAt) <= withinMs);
    for (const session of recent) {
      result.sessions++;
      if (!(await ingestSession(tools, options, session, result))) return { ...result, isFull: true };
    }
    // The session written last is the first one, so all that follow an old one are old.
    const isLast = nextCursor === undefined || recent.length < items.length;
    if (isLast) delete result.cursor;
    else result.cursor = nextCursor;
    onProgress?.({ ...result });
    if (isLast) return result;
  }
}

/** Returns false if the queue is full. */
async function ingestSession(
  { store: memories, check, ingest, known }: BackfillTools,
  { store, scopeOf, extract, context }: BackfillOptions,
  session: SessionSummary,
  result: BackfillResult,
): Promise<boolean> {
  const { sessionId, leafId, updatedAt } = session;
  const scope = scopeOf(session, context);
  if (scope === undefined) return true;
  // Another name after each change of the session.
  const name = JSON.stringify([tenantKeyOf(memories, scope), sessionId, leafId, updatedAt]);
  if (known?.get(name)) return true;
  check({ scope, extract, source: { id: sessionId }, messages: [] });
  try {
    const snapshot = await lastEnded(store, await store.getSnapshot({ sessionId, context }), { context });
    const messages = snapshot?.state?.messages ?? [];
    const source = sourceOfSession({ sessionId, snapshotId: snapshot?.snapshotId, at: snapshot?.createdAt });
    const isThere = async () => (await store.getSnapshotMetadata({ sessionId, context })) !== undefined;
    const { status, jobIds } = await ingest({ scope, extract, source, messages }, isThere);
    if (jobIds.length > 0) result.enqueued++;
    if (status === 'queued' || status === 'known') known?.set(name, true, 1);
    return status !== 'full';
  } catch (error) {
    result.failed++;
    logger.warn(`Session ${quote(sessionId)} was not learned from. ${errorMessage(error)}`);
    return true;
  }
}
