import { isUnreadable } from '../../errors.ts';
import type {
  ListSessionsOptions,
  Page,
  PageOptions,
  ScopeId,
  ScopeRecord,
  ScopeStore,
  SessionStoreOptions,
  SessionSummary,
  SnapshotMetadata,
  SnapshotStore,
  Unreadable,
} from '../contract.ts';

/** Collects the unreadable items of a list's pages, each once. */
export class UnreadableItems {
  readonly #items = new Map<string, Unreadable>();

  add(items: readonly Unreadable[] = []): void {
    for (const item of items) this.#items.set(JSON.stringify(item), item);
  }

  has(item: Unreadable): boolean {
    return this.#items.has(JSON.stringify(item));
  }

  /** Returns the result of a read; `undefined` if the data can't be read: then adds the item. */
  read<T>(item: Unreadable, reading: Promise<T>): Promise<T | undefined> {
    return reading.catch((error: unknown) => {
      if (!isUnreadable(error)) throw error;
      this.add([item]);
      return undefined;
    });
  }

  /** Like {@link read}, for the values of a user or an app. */
  async readScope(store: ScopeStore, scope: ScopeId, caller: SessionStoreOptions): Promise<ScopeRecord | undefined> {
    const place = `the values of ${JSON.stringify(scope)}`;
    return (await this.read({ place }, store.readScopes({ ...caller, scopes: [scope] })))?.[0];
  }

  get all(): Unreadable[] {
    return [...this.#items.values()];
  }
}

/**
 * The items of all pages of a list, one after the other.
 *
 * @param unreadable Collects the unreadable items of the pages.
 */
export async function* itemsOf<T, O extends PageOptions>(
  list: (options: O) => Promise<Page<T>>,
  options: O,
  unreadable?: UnreadableItems,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ ...options, ...(cursor !== undefined && { cursor }) });
    unreadable?.add(page.unreadable);
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

/** Like {@link snapshotsOf}, but returns an array. */
export async function listAllSnapshots(
  store: Pick<SnapshotStore, 'listSnapshots'>,
  session: SessionStoreOptions & { sessionId: string },
): Promise<SnapshotMetadata[]> {
  const all: SnapshotMetadata[] = [];
  for await (const snapshot of snapshotsOf(store, session)) all.push(snapshot);
  return all;
}

/**
 * The sessions of a tenant or of one owner, each once, the last written at the end. A session that is written while the list is read comes
 * later. Keeps all summaries in memory.
 */
export async function* sessionsOldestFirst(
  store: SnapshotStore,
  options: ListSessionsOptions,
  unreadable?: UnreadableItems,
): AsyncGenerator<SessionSummary> {
  const seen = new Set<string>();
  // A session that is written while the list is read moves to the beginning of the list, so the list is read again until it has nothing
  // new.
  for (let before = -1; before < seen.size;) {
    before = seen.size;
    const found: SessionSummary[] = [];
    const list = (page: ListSessionsOptions): Promise<Page<SessionSummary>> => store.listSessions(page);
    for await (const session of itemsOf(list, { ...options, limit: 1000 }, unreadable)) {
      if (seen.has(session.sessionId)) continue;
      seen.add(session.sessionId);
      found.push(session);
    }
    yield* found.toReversed();
  }
}
