import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown, invalidArgument, quote } from '../errors.ts';
import { checkOptions, isFunction, isObject, isWhole } from '../store/check-options.ts';
import type { SessionSummary, SnapshotStore } from '../store/contract.ts';
import type { IngestWhile } from './pipeline/ingest/ingest.ts';
import type { MemoryScope } from './scopes.ts';

/** Options of `backfill`. */
export interface BackfillOptions {
  /** Where the sessions are. */
  store: SnapshotStore;
  /** The scope that a session is learned into; `undefined`: the session is skipped. `context` is the option of this call. */
  scopeOf: (session: SessionSummary, context: ActionContext | undefined) => MemoryScope | undefined;
  /** `verbatim`: each message becomes a memory. Default: as the manager says. */
  extract?: 'verbatim';
  /** Names the tenant of the session store. Default: none. */
  context?: ActionContext;
  /** Only sessions that were written within this time, in ms. Default: all. */
  withinMs?: number;
  /** The `cursor` of an earlier call, to continue it. Default: from the beginning. */
  cursor?: string;
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
  /** Where a later call continues. */
  cursor?: string;
}

/** Ingests the sessions of a store. */
export async function backfillSessions(ingest: IngestWhile, options: BackfillOptions): Promise<BackfillResult> {
  checkOptions('backfill', options, {
    store: isObject,
    scopeOf: isFunction,
    extract: (value) => (value === 'verbatim' ? undefined : "'verbatim'"),
    context: isObject,
    withinMs: isWhole(1),
    cursor: (value) => (typeof value === 'string' ? undefined : 'a string'),
    onProgress: isFunction,
  });
  if (!options?.store || !options.scopeOf) throw invalidArgument('backfill needs a store and scopeOf.');
  const { store, context, withinMs = Infinity, onProgress } = options;
  const result: BackfillResult = {
    sessions: 0,
    enqueued: 0,
    failed: 0,
    isFull: false,
    ...(options.cursor && { cursor: options.cursor }),
  };
  for (;;) {
    const { cursor } = result;
    const { items, nextCursor } = await store.listSessions({
      ...(context && { context }),
      ...(cursor && { cursor }),
      limit: 100,
    });
    for (const session of items) {
      if (Date.now() - Date.parse(session.updatedAt) > withinMs) return result;
      result.sessions++;
      if (!(await ingestSession(ingest, options, session, result))) return { ...result, isFull: true };
    }
    if (nextCursor === undefined) delete result.cursor;
    else result.cursor = nextCursor;
    onProgress?.({ ...result });
    if (nextCursor === undefined) return result;
  }
}

/** Returns false if the queue is full. */
async function ingestSession(
  ingest: IngestWhile,
  { store, scopeOf, extract, context }: BackfillOptions,
  { sessionId, ...session }: SessionSummary,
  result: BackfillResult,
): Promise<boolean> {
  try {
    const scope = scopeOf({ sessionId, ...session }, context);
    if (!scope) return true;
    const snapshot = await store.getSnapshot({ sessionId, ...(context && { context }) });
    const messages = snapshot?.state?.messages ?? [];
    const source = {
      id: sessionId,
      sessionId,
      ...(snapshot && { snapshotId: snapshot.snapshotId, at: snapshot.createdAt }),
    };
    const isThere = async () =>
      (await store.getSnapshotMetadata({ sessionId, ...(context && { context }) })) !== undefined;
    const options = { scope, source, messages, ...(extract && { extract }) };
    const { status, jobIds } = await ingest(options, isThere);
    if (jobIds.length > 0) result.enqueued++;
    return status !== 'full';
  } catch (error) {
    result.failed++;
    logger.warn(
      `Session ${quote(sessionId)} was not learned from. ${error instanceof Error ? error.message : describeThrown(error)}`,
    );
    return true;
  }
}
