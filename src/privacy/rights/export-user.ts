import { checkUserCall, isUserMemories, memoryScopesOf, scopesOfUser } from './user-call.ts';
import { keepsScopes, type SessionStoreOptions, type SnapshotStore } from '../../store/contract.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { UserMemories } from '../../store/memory/user-memories.ts';
import { noteAccess } from '../audit/auditing.ts';
import { sessionsOldestFirst, UnreadableItems } from '../../store/list/items-of.ts';
import { assertCapabilities } from '../../store/parts/assert-capabilities.ts';
import { jsonLines, linesOfSession, unreadableLine, type ExportedLine } from '../../store/migrate/session-lines.ts';

/** Options of {@link exportUser}. */
export interface ExportUserOptions extends SessionStoreOptions {
  /** The user's id, as the agents' option `userId` gives it. */
  userId: string;
  /**
   * The memory manager of the agents, to export the memories of the user and of their sessions, too, and texts of these sessions that wait to
   * be learned for all users of an app. Default: no memories.
   */
  memory?: UserMemories;
}

/**
 * Exports all data of a user from a store, in the tenant of `context`, as JSON Lines: the sessions that they own with all snapshots and
 * session records, and the user's records of all apps. Each line is an {@link ExportedLine} and ends in `\n`; the last one has the counts.
 *
 * Read it as a stream: nothing is collected in memory. A session that is written meanwhile is exported as it was at some moment of the
 * export. Data that can't be read is reported in a line of its own.
 *
 * @throws `FAILED_PRECONDITION` for a store that can't list sessions by owner, and the store's errors; the export is then incomplete.
 * @example
 * for await (const line of exportUser(store, { userId: 'ada' })) process.stdout.write(line);
 */
export async function* exportUser(store: SnapshotStore, options: ExportUserOptions): AsyncGenerator<string> {
  checkUserCall('exportUser', options, { memory: isUserMemories });
  assertCapabilities('exportUser', store, ['list', 'details']);
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
  const unreadable = new UnreadableItems();
  for await (const session of sessionsOldestFirst(store, { ownerId: userId, context }, unreadable)) {
    seen.add(session.sessionId);
    yield* linesOfSession(store, session, { context, skipsUnreadable: true });
  }
  const isOwn = (scope: MemoryScopeId) =>
    (scope.scope === 'user' && scope.userId === userId) || (scope.scope === 'session' && seen.has(scope.sessionId));
  const { own, apps } = await memoryScopesOf({ memory, context }, isOwn, unreadable);
  for (const scope of own) yield* memoryLines(memory!.export({ scope }));
  const sources = [...seen];
  for (const scope of apps) yield* memoryLines(memory!.exportWaiting({ scope, sources }));
  if (keepsScopes(store)) {
    for await (const scope of scopesOfUser(store, { userId, context }, unreadable)) {
      const reading = store.readScopes({ context, scopes: [scope] });
      yield await reading.then(([values = {}]) => ({ kind: 'scope' as const, scope, values })).catch(unreadableLine);
    }
  }
  for (const item of unreadable.all) yield { kind: 'unreadable', ...item };
}

async function* memoryLines(lines: AsyncIterable<object>): AsyncGenerator<ExportedLine> {
  try {
    for await (const line of lines) yield { kind: 'memory', line };
  } catch (error) {
    yield unreadableLine(error);
  }
}
