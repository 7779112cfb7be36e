import type { MessageData, SessionSnapshot, SessionStoreOptions } from 'genkit/beta';
import { failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { copyJson } from '../../json/value.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import {
  keepsScopes,
  type ScopeId,
  type ScopeRecord,
  type SessionSummary,
  type SnapshotStore,
} from '../../store/contract.ts';
import { listAllSnapshots } from '../../store/list/items-of.ts';
import { lastCompleted } from './last-completed.ts';
import type { SessionEvent } from './session-event.ts';
import { eventsBackwards, lineOf, logOf, timeOf, type ReadAncestor } from './session-log.ts';
import type { SessionOwner } from '../owner.ts';
import { mergedState } from '../state/state-draft.ts';
import type { SessionContent, SessionQuery } from './stored-session.ts';

type Context = SessionStoreOptions['context'];

/** A session's latest leaf, and the snapshot that the session continues from: the last completed one up to the leaf. */
export interface SessionEnd {
  readonly leaf: SessionSnapshot;
  readonly base?: SessionSnapshot;
}

/** Reads sessions of one store as logs of events. */
export class SessionReader {
  readonly #store: SnapshotStore;

  constructor(store: SnapshotStore) {
    this.#store = store;
  }

  /** The session's content; `undefined` when the user has no session of that id. */
  async read(query: SessionQuery): Promise<SessionContent | undefined> {
    assertQuery(query);
    const end = await this.find(query);
    return end && this.contentOf(query, end, await this.#events(query, end));
  }

  /** The session's end; `undefined` when the user has no session of that id. */
  async find({ sessionId, context, ...owner }: SessionQuery): Promise<SessionEnd | undefined> {
    assertId(sessionId, 'sessionId');
    const leaf = await this.#store.getSnapshot({ sessionId, context, frozen: true });
    if (!leaf || !(await this.isOwn(owner, { leaf, sessionId, context }))) return undefined;
    const base = await lastCompleted(leaf, sessionId, (id) => this.#mustGet(id, sessionId, context));
    return { leaf, ...(base && { base }) };
  }

  /** Whether the session has this owner. A snapshot without an owner belongs to the owner of the session's first one. */
  async isOwn(
    owner: SessionOwner,
    { leaf, sessionId, context }: { leaf: SnapshotMetadata; sessionId: string; context: Context },
  ): Promise<boolean> {
    let named = logOf(leaf).owner;
    if (!named) {
      const { items } = await this.#store.listSnapshots({ sessionId, context, limit: 1 });
      named = items[0] && logOf(items[0]).owner;
    }
    return named?.appName === owner.appName && named.userId === owner.userId;
  }

  /** Same as {@link isOwn} for a session in a list; false when it was deleted in the meantime. */
  async isOwnListed(owner: SessionOwner, { sessionId, leafId }: SessionSummary, context: Context): Promise<boolean> {
    const leaf = await this.#store.getSnapshotMetadata({ snapshotId: leafId, context });
    return leaf !== undefined && this.isOwn(owner, { leaf, sessionId, context });
  }

  /** The session with these events and the current records. */
  async contentOf(
    query: SessionQuery,
    { leaf, base }: SessionEnd,
    events: readonly SessionEvent[],
  ): Promise<SessionContent> {
    const [user, app] = await this.recordsOf(query);
    return {
      state: mergedState({ plain: base?.state?.custom, user, app }),
      events,
      lastUpdateTime: timeOf(leaf.updatedAt ?? leaf.createdAt),
      leafId: leaf.snapshotId,
      baseId: base?.snapshotId,
    };
  }

  /** The event that was appended with a snapshot; `undefined` when the snapshot does not exist. */
  async eventOf(snapshotId: string, context: Context): Promise<SessionEvent | undefined> {
    const snapshot = await this.#store.getSnapshot({ snapshotId, context });
    if (!snapshot) return undefined;
    const { value } = await eventsBackwards(only(snapshot), async () => messagesOf(snapshot)).next();
    return value as SessionEvent | undefined;
  }

  /** Whether a snapshot is `lastId` or its ancestor. Searches from the end, because a repeated append is nearly always the last one. */
  async isInLine(snapshotId: string, lastId: string | undefined, context: Context): Promise<boolean> {
    const last =
      lastId === undefined ? undefined : await this.#store.getSnapshotMetadata({ snapshotId: lastId, context });
    if (!last) return false;
    for await (const snapshot of lineOf(last, this.#oneByOne(context))) {
      if (snapshot.snapshotId === snapshotId) return true;
    }
    return false;
  }

  async #events(query: SessionQuery, { base }: SessionEnd): Promise<SessionEvent[]> {
    const { context, sessionId, numRecentEvents = Infinity, afterTimestamp = -Infinity } = query;
    const events: SessionEvent[] = [];
    if (!base || numRecentEvents === 0) return events;
    const read = async (snapshot: SnapshotMetadata): Promise<readonly MessageData[]> => {
      const { snapshotId } = snapshot;
      return messagesOf(snapshotId === base.snapshotId ? base : await this.#mustGet(snapshotId, sessionId, context));
    };
    const ancestor = numRecentEvents === Infinity ? await this.#allOf(sessionId, context) : this.#oneByOne(context);
    for await (const event of eventsBackwards(lineOf(base, ancestor), read)) {
      if (event.timestamp >= afterTimestamp) events.push(event);
      if (events.length === numRecentEvents) break;
    }
    return events.toReversed();
  }

  #oneByOne(context: Context): ReadAncestor {
    return (snapshotId) => this.#store.getSnapshotMetadata({ snapshotId, context });
  }

  /** Lists the session at once, for a caller that needs the whole line. */
  async #allOf(sessionId: string, context: Context): Promise<ReadAncestor> {
    const listed = await listAllSnapshots(this.#store, { sessionId, context });
    const all = new Map(listed.map((snapshot) => [snapshot.snapshotId, snapshot]));
    return (snapshotId) => all.get(snapshotId);
  }

  /** The session's current shared records. */
  async recordsOf({ appName, userId, context }: SessionQuery): Promise<[user: ScopeRecord, app: ScopeRecord]> {
    if (!keepsScopes(this.#store)) return [{}, {}];
    const scopes: ScopeId[] = [
      { scope: 'user', appName, userId },
      { scope: 'app', appName },
    ];
    const [user = {}, app = {}] = await this.#store.readScopes({ context, scopes });
    return [user, app];
  }

  async #mustGet(snapshotId: string, sessionId: string, context: Context): Promise<SessionSnapshot> {
    const snapshot = await this.#store.getSnapshot({ snapshotId, context, frozen: true });
    if (snapshot) return snapshot;
    throw failedPrecondition(
      `Snapshot ${quote(snapshotId)} of session ${quote(sessionId)} no longer exists, so the snapshots before it can't be read.`,
    );
  }
}

function messagesOf(snapshot: SessionSnapshot): readonly MessageData[] {
  return copyJson(snapshot.state?.messages ?? []);
}

async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}

function assertQuery({ numRecentEvents, afterTimestamp }: SessionQuery): void {
  if (numRecentEvents !== undefined && !(Number.isSafeInteger(numRecentEvents) && numRecentEvents >= 0)) {
    throw invalidArgument('numRecentEvents must be a whole number of at least 0.');
  }
  if (afterTimestamp !== undefined && (typeof afterTimestamp !== 'number' || Number.isNaN(afterTimestamp))) {
    throw invalidArgument('afterTimestamp must be a number, ms since 1970.');
  }
}
