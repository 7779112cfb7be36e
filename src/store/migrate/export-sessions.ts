import { notFound, quote } from '../../errors.ts';
import {
  keepsScopes,
  type PageOptions,
  type ScopeStore,
  type SessionStoreOptions,
  type SnapshotStore,
} from '../contract.ts';
import { itemsOf, sessionsOldestFirst, UnreadableItems } from '../list/items-of.ts';
import { assertCapabilities } from '../parts/assert-capabilities.ts';
import { jsonLines, linesOfSession, type ExportedLine } from './session-lines.ts';

/** Options of {@link exportSessions}. */
export interface ExportSessionsOptions extends SessionStoreOptions {
  /** Only these sessions, and no records of users and apps. Default: everything of the tenant. */
  sessionIds?: readonly string[];
}

/**
 * The sessions of a tenant as JSON Lines: whole trees with their ids, session records, and the records of users and apps. Each line is an
 * {@link ExportedLine} and ends in `\n`; the last one has the counts. `importSessions` reads it. Snapshots without a session are not listed, and
 * so not exported. Data that can't be read has a line of kind `unreadable`, and the last line counts these: check its `unreadable`.
 *
 * Read it as a stream: states are not collected in memory. A session that is written meanwhile is exported as of some moment of the export.
 *
 * @throws `NOT_FOUND` for a session of `sessionIds` that does not exist; `FAILED_PRECONDITION` for a store that can't list all its sessions;
 *   the store's errors. The export is then incomplete, and its last line is missing.
 * @example
 * for await (const line of exportSessions(store)) process.stdout.write(line);
 */
export async function* exportSessions(
  store: SnapshotStore,
  options: ExportSessionsOptions = {},
): AsyncGenerator<string> {
  assertCapabilities('exportSessions', store, ['list']);
  yield* jsonLines(linesOf(store, options));
}

async function* linesOf(
  store: SnapshotStore,
  { sessionIds, context }: ExportSessionsOptions,
): AsyncGenerator<ExportedLine> {
  const missing = new Set(sessionIds);
  const unreadable = new UnreadableItems();
  for await (const session of sessionsOldestFirst(store, { context }, unreadable)) {
    if (sessionIds && !missing.delete(session.sessionId)) continue;
    yield* linesOfSession(store, session, { context, skipsUnreadable: true });
  }
  for (const id of missing) throw notFound(`There is no session ${quote(id)} to export.`);
  if (sessionIds) return;
  if (keepsScopes(store)) yield* scopeLines(store, context, unreadable);
  for (const item of unreadable.all) yield { kind: 'unreadable', ...item };
}

async function* scopeLines(
  store: ScopeStore,
  context: SessionStoreOptions['context'],
  unreadable: UnreadableItems,
): AsyncGenerator<ExportedLine> {
  const list = (page: PageOptions) => store.listScopes(page);
  for await (const scope of itemsOf(list, { context, limit: 1000 }, unreadable)) {
    const values = await unreadable.readScope(store, scope, { context });
    if (values) yield { kind: 'scope', scope, values };
  }
}
