import { checkUserCall, isUserMemories, memoryScopesOf, needsCapabilities } from './user-call.ts';
import { keepsScopes, type SessionStoreOptions, type SnapshotStore } from '../../store/contract.ts';
import { isErasureRecord } from '../../store/records/erasure.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { UserMemories } from '../../store/memory/user-memories.ts';
import { noteAccess } from '../audit/auditing.ts';
import { itemsOf, sessionsOldestFirst } from '../../store/list/items-of.ts';
import { jsonLines, linesOfSession, type ExportedLine } from '../../store/migrate/session-lines.ts';

/** Options of {@link exportUser}. */
export interface ExportUserOptions extends SessionStoreOptions {
  /** The user's id, as the agents' option `userId` gives it. */
  userId: string;
  /**
   * The memory manager of the agents, to export the memories of the user and of their sessions, too, and what waits to be learned from these
   * sessions for all users of an app. Default: no memories.
   */
  memory?: UserMemories;
}

/**
 * Exports all data of a user from a store, in the tenant of `context`, as JSON Lines: the sessions that they own with all snapshots and
 * session records, and the user's records of all apps. Each line is an {@link ExportedLine} and ends in `\n`; the last one has the counts.
 *
 * Read it as a stream: nothing is collected in memory. A session that is written meanwhile is exported as it was at some moment of the
 * export.
 *
 * @throws `FAILED_PRECONDITION` for a store that can't list sessions by owner, and the store's errors; the export is then incomplete.
 * @example
 * for await (const line of exportUser(store, { userId: 'ada' })) process.stdout.write(line);
 */
export async function* exportUser(store: SnapshotStore, options: ExportUserOptions): AsyncGenerator<string> {
  checkUserCall('exportUser', options, { memory: isUserMemories });
  needsCapabilities('exportUser', store, ['list', 'details']);
  const { userId, context } = options;
  const access = { action: 'export', operation: 'exportUser', userId, ...(context && { context }) } as const;
  let isWhole = false;
  try {
    yield* jsonLines(linesOfUser(store, options));
    isWhole = true;
  } finally {
    noteAccess(store, { ...access, outcome: isWhole ? 'ok' : 'failed' });
  }
}

async function* linesOfUser(
  store: SnapshotStore,
  { userId, context, memory }: ExportUserOptions,
): AsyncGenerator<ExportedLine> {
  const seen = new Set<string>();
  for await (const session of sessionsOldestFirst(store, { ownerId: userId, context })) {
    seen.add(session.sessionId);
    yield* linesOfSession(store, session, { context });
  }
  const isOwn = (scope: MemoryScopeId) =>
    (scope.scope === 'user' && scope.userId === userId) || (scope.scope === 'session' && seen.has(scope.sessionId));
  const { own, apps } = await memoryScopesOf({ memory, context }, isOwn);
  for (const scope of own) {
    for await (const line of memory!.export({ scope })) yield { kind: 'memory', line };
  }
  const sources = [...seen];
  for (const scope of apps) {
    for await (const line of memory!.exportWaiting({ scope, sources })) yield { kind: 'memory', line };
  }
  if (!keepsScopes(store)) return;
  for await (const scope of itemsOf((page) => store.listScopes(page), { context, limit: 1000 })) {
    if (scope.scope !== 'user' || scope.userId !== userId || isErasureRecord(scope)) continue;
    const [values = {}] = await store.readScopes({ context, scopes: [scope] });
    yield { kind: 'scope', scope, values };
  }
}
