import type {
  ListSessionsOptions,
  Page,
  PageOptions,
  SessionStoreOptions,
  SessionSummary,
  SnapshotMetadata,
  SnapshotStore,
} from '../contract.ts';

/** The items of all pages of a list, one after the other. */
export async function* itemsOf<T, O extends PageOptions>(
  list: (options: O) => Promise<Page<T>>,
  options: O,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ ...options, ...(cursor !== undefined && { cursor }) });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** The metadata of a session's snapshots, in the order in which they were first saved. */
export function snapshotsOf(
  store: Pick<SnapshotStore, 'listSnapshots'>,
  session: SessionStoreOptions & { sessionId: string },
): AsyncGenerator<SnapshotMetadata> {
  return itemsOf((page: PageOptions & { sessionId: string }) => store.listSnapshots(page), { ...session, limit: 1000 });
}

/** As {@link snapshotsOf}, in one list. */
export async function listAllSnapshots(
  store: Pick<SnapshotStore, 'listSnapshots'>,
  session: SessionStoreOptions & { sessionId: string },
): Promise<SnapshotMetadata[]> {
  const all: SnapshotMetadata[] = [];
  for await (const snapshot of snapshotsOf(store, session)) all.push(snapshot);
  return all;
}

/**
 * The sessions of a tenant, or of one owner, each once, the one written last at the end. Sessions that are written during the list come
 * later. Holds all summaries in memory.
 */
export async function* sessionsOldestFirst(
  store: SnapshotStore,
  options: ListSessionsOptions,
): AsyncGenerator<SessionSummary> {
  const seen = new Set<string>();
  // A session that is written while the list is read moves to its beginning, so the list is read until it has nothing new.
  for (let before = -1; before < seen.size;) {
    before = seen.size;
    const found: SessionSummary[] = [];
    for await (const session of itemsOf((page: ListSessionsOptions) => store.listSessions(page), {
      ...options,
      limit: 1000,
    })) {
      if (seen.has(session.sessionId)) continue;
      seen.add(session.sessionId);
      found.push(session);
    }
    yield* found.toReversed();
  }
}
