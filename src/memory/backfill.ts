import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { errorMessage, invalidArgument, quote } from '../errors.ts';
import { checkOptions, isFunction, isObject, isOneOf, isString, isWhole } from '../store/check-options.ts';
import type { SessionSummary, SnapshotStore } from '../store/contract.ts';
import type { MemoryStore } from '../store/memory/contract.ts';
import type { LruCache } from '../store/parts/lru-cache.ts';
import type { IngestWhile } from './pipeline/ingest/ingest.ts';
import { lastEndedTurn, sourceOfSession } from './pipeline/ingest/read-session.ts';
import { tenantKeyOf, type MemoryScope } from './scopes.ts';
import type { IngestOptions } from './types.ts';

/** Options of `backfill`. */
export interface BackfillOptions {
  /** The store with the sessions. */
  store: SnapshotStore;
  /**
   * Returns the scope that gets the memories of a session; `undefined` skips the session. `context` is the option of this call. If
   * `scopeOf` throws, the backfill ends with the error.
   */
  scopeOf: (session: SessionSummary, context: ActionContext | undefined) => MemoryScope | undefined;
  /** `verbatim`: each message becomes a memory. Default: the manager's option `extract`. */
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
  /** The number of sessions that were checked. */
  sessions: number;
  /** The number of sessions with new jobs. */
  enqueued: number;
  /** The number of sessions that could not be read. The log contains the errors. */
  failed: number;
  /** Whether the queue was full. Call `backfill` again later to continue. */
  isFull: boolean;
  /** Pass it to a later call to continue there. `undefined`: start again at the beginning if `isFull`, else the backfill is complete. */
  cursor?: string;
}

/** The parts of a manager for a backfill. */
export interface BackfillTools {
  readonly store: Pick<MemoryStore, 'tenant'>;
  /** Throws if the manager can't ingest. */
  readonly check: (options: IngestOptions) => void;
  readonly ingest: IngestWhile;
  /** Sessions to skip, because they have nothing new. Each session that is read is added. Default: all are read. */
  readonly known?: LruCache<true>;
}

/**
 * Ingests the sessions of a store.
 *
 * @throws The error of `check`, of `scopeOf` or from listing the sessions. An error of a single session is logged and counted.
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
    // The sessions are sorted by their last write, newest first, so all sessions after an old one are old.
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
  // The name changes with each change of the session.
  const name = JSON.stringify([tenantKeyOf(memories, scope), sessionId, leafId, updatedAt]);
  if (known?.get(name)) return true;
  check({ scope, extract, source: { id: sessionId }, messages: [] });
  try {
    const leaf = await store.getSnapshot({ sessionId, context });
    const { messages, ...turn } = await lastEndedTurn(store, leaf, { context });
    const source = sourceOfSession({ sessionId, ...turn });
    const isThere = async () => (await store.getSnapshotMetadata({ sessionId, context })) !== undefined;
    const { status, jobIds } = await ingest({ scope, extract, source, messages }, isThere);
    if (jobIds.length > 0) result.enqueued++;
    if (status === 'queued' || status === 'known') known?.set(name, true, 1);
    return status !== 'full';
  } catch (error) {
    result.failed++;
    logger.warn(`Nothing was learned from session ${quote(sessionId)}. ${errorMessage(error)}`);
    return true;
  }
}
