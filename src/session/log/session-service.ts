import { GenkitError } from 'genkit';
import type { SessionSnapshot, SessionSnapshotInput, SessionStoreOptions } from 'genkit/beta';
import { addressTo, notFound, quote, SessionConflictError } from '../../errors.ts';
import { copyJson, type Json } from '../../json/value.ts';
import { assertId, reserveSnapshotId } from '../../snapshot/ids.ts';
import {
  capabilitiesOf,
  keepsScopes,
  type DeleteResult,
  type SaveSnapshotOptions,
  type SnapshotStore,
} from '../../store/contract.ts';
import { isAny, checkOptions, isObject, isOneOf } from '../../store/check-options.ts';
import { assertCapabilities } from '../../store/parts/assert-capabilities.ts';
import { assertCurrent, checkOwner, snapshotOf } from './next-snapshot.ts';
import { resolveEvent, snapshotIdOf, type SessionEvent, type SessionEventInput } from './session-event.ts';
import type { SessionOwner } from '../owner.ts';
import { timeOf } from './session-log.ts';
import { SessionReader } from './session-reader.ts';
import { draftState, type StateDraft, type StateParts } from '../state/state-draft.ts';
import { StateRules, type StateLimits } from '../state/state-values.ts';
import {
  inTurn,
  linkOf,
  StoredSession,
  updateSession,
  type SessionContent,
  type SessionQuery,
} from './stored-session.ts';

/** Handling of an append to an outdated session object: refuse it, or read the session again first. */
export type OnStale = 'reject' | 'refresh';

/** Options of {@link SessionService}. */
export interface SessionServiceOptions {
  /** Default: `reject`. */
  onStale?: OnStale;
  /** Size limits for the keys and values of the state. */
  limits?: StateLimits;
}

/** Options of a new session. */
export interface CreateSessionOptions extends SessionStoreOptions {
  /** The app of the session, by any id. */
  appName: string;
  /** The user of that app, by any id. */
  userId: string;
  /** Default: a random UUID. The id is unique in the tenant, across all owners. */
  sessionId?: string;
  /** Initial values of keys: plain ones, `user:`, `app:`; `temp:` keys are dropped. */
  state?: { [key: string]: Json };
}

/** Summary of a session. */
export interface StoredSessionInfo extends SessionOwner {
  /** The session's id. */
  readonly id: string;
  /** In ms since 1970. */
  readonly lastUpdateTime: number;
}

/**
 * Sessions as logs of events over a snapshot store, with the API of Google's Agent Development Kit. An event is stored as a snapshot, its
 * content as a message, its changes as state. So an agent on the same store can continue a session that was created here, and the turns of an
 * agent read as events.
 *
 * A session belongs to a user of an app; other users can't see it. Session ids are unique in the tenant: an id that another user has is refused.
 * So let the service choose ids, or give each user a tenant.
 *
 * @example
 * const sessions = new SessionService(new InMemorySessionStore());
 * const session = await sessions.createSession({ appName: 'shop', userId: 'ada', state: { 'user:theme': 'dark' } });
 * await sessions.appendEvent(session, { author: 'user', content: { role: 'user', content: [{ text: 'Hi' }] } });
 */
export class SessionService {
  readonly #store: SnapshotStore;
  readonly #reader: SessionReader;
  readonly #onStale: OnStale;
  readonly #rules: StateRules;
  /** The store keeps the owners of sessions. */
  readonly #isOwned: boolean;

  /** @throws `FAILED_PRECONDITION` for a store that can't list, delete, or compare the leaf. */
  constructor(store: SnapshotStore, options?: SessionServiceOptions) {
    checkOptions('SessionService', options, { onStale: isOnStale, limits: isObject });
    assertCapabilities('A SessionService', store, ['metadata', 'list', 'delete', 'compareLeaf']);
    this.#store = store;
    this.#isOwned = capabilitiesOf(store).details;
    this.#reader = new SessionReader(store);
    this.#onStale = options?.onStale ?? 'reject';
    this.#rules = new StateRules(options?.limits, {});
  }

  /**
   * Creates a session. The `user:` and `app:` keys of its state apply to all sessions that share them at once.
   *
   * @throws `ALREADY_EXISTS` when the tenant has a session of that id.
   */
  async createSession(options: CreateSessionOptions): Promise<StoredSession> {
    checkOptions('createSession', options, { ...SESSION, state: isAny });
    const { sessionId = globalThis.crypto.randomUUID(), state = {}, context } = options;
    const query: SessionQuery = { ...checkOwner(options), sessionId, context };
    assertId(sessionId, 'sessionId');
    const draft = this.#draft(query, { plain: undefined, user: {}, app: {} }, state);
    const createdAt = new Date().toISOString();
    const snapshotId = reserveSnapshotId();
    const input = snapshotOf(query, { snapshotId, createdAt, draft, end: undefined, event: undefined });
    try {
      const owned = this.#isOwned ? { session: { ownerId: query.userId } } : {};
      await this.#save(snapshotId, input, draft, { context, expectedLeafId: null, ...owned });
    } catch (error) {
      throw SessionConflictError.isInstance(error) ? alreadyExists(sessionId) : error;
    }
    const first: SessionSnapshot = { ...input, snapshotId };
    return new StoredSession(this, query, await this.#reader.contentOf(query, { leaf: first, base: first }, []));
  }

  /** The session; `undefined` when the user has none of that id. */
  async getSession(options: SessionQuery): Promise<StoredSession | undefined> {
    checkOptions('getSession', options, { ...SESSION, numRecentEvents: isAny, afterTimestamp: isAny });
    const { sessionId, numRecentEvents, afterTimestamp, context } = options;
    const query: SessionQuery = { ...checkOwner(options), sessionId, numRecentEvents, afterTimestamp, context };
    const content = await this.#reader.read(query);
    return content && new StoredSession(this, query, content);
  }

  /** The user's sessions, the one written last first. It reads every session of the tenant: with many sessions, give each user a tenant. */
  async listSessions(options: SessionStoreOptions & SessionOwner): Promise<{
    /** All of them. */
    sessions: StoredSessionInfo[];
  }> {
    checkOptions('listSessions', options, OWNER);
    const owner = checkOwner(options);
    const { context } = options;
    const sessions: StoredSessionInfo[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#store.listSessions({ context, ...(cursor !== undefined && { cursor }) });
      const isOwn = await Promise.all(page.items.map((item) => this.#reader.isOwnListed(owner, item, context)));
      const own = page.items.filter((_, i) => isOwn[i]);
      sessions.push(...own.map((item) => ({ ...owner, id: item.sessionId, lastUpdateTime: timeOf(item.updatedAt) })));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return { sessions };
  }

  /** Removes all data of one of the user's sessions; its changes of `user:` and `app:` keys stay. Returns zeros when the session does not exist. */
  async deleteSession(options: SessionStoreOptions & SessionOwner & { sessionId: string }): Promise<DeleteResult> {
    checkOptions('deleteSession', options, SESSION);
    const { sessionId, context } = options;
    const owner = checkOwner(options);
    const leaf = await this.#store.getSnapshotMetadata({ sessionId, context });
    const isOwn = leaf && (await this.#reader.isOwn(owner, { leaf, sessionId, context }));
    return isOwn ? this.#store.deleteSession({ sessionId, context }) : { snapshots: 0, shards: 0 };
  }

  /**
   * Appends an event to a session and applies its `stateDelta`, in one commit. The session object is then updated to the state after it,
   * including other callers' changes to `user:` and `app:` keys. Appends to one object run in the order of the calls.
   *
   * @param options.onStale How to handle a session that has changed since it was read. Default: the service's `onStale`.
   * @returns The stored event: with its id and timestamp, without `temp:` keys. When the session already has an event of that id, that
   *   event.
   * @throws SessionConflictError (`ABORTED`) when the session has changed since it was read; `ABORTED` while an agent's turn is running;
   *   `ALREADY_EXISTS` when its id is that of an event on an abandoned branch; StateError for an invalid key or value;
   *   `NOT_FOUND` when the session was deleted.
   */
  async appendEvent(
    session: StoredSession,
    event: SessionEventInput,
    options?: { onStale?: OnStale },
  ): Promise<SessionEvent> {
    linkOf(session, this);
    checkOptions('appendEvent', options, { onStale: isOnStale });
    const onStale = options?.onStale ?? this.#onStale;
    const resolved = resolveEvent(event, this.#rules);
    return inTurn(session, () => this.#append(session, resolved, onStale));
  }

  async #append(session: StoredSession, event: SessionEvent, onStale: OnStale): Promise<SessionEvent> {
    for (;;) {
      let conflict: SessionConflictError | undefined;
      try {
        const content = await this.#appendTo(session, event);
        if (content) {
          updateSession(session, content);
          return copyJson(event);
        }
      } catch (error) {
        if (!SessionConflictError.isInstance(error)) throw error;
        conflict = error;
      }
      // The conflicting append may be an earlier attempt with the same event.
      const { query } = linkOf(session, this);
      const snapshotId = snapshotIdOf(session.id, event.id);
      const earlier = await this.#reader.eventOf(snapshotId, query.context);
      if (!earlier && conflict && onStale === 'reject') throw outOfDate(conflict);
      const fresh = await this.#reader.read(query);
      if (!fresh) throw sessionNotFound(session.id);
      if (earlier && !(await this.#reader.isInLine(snapshotId, fresh.baseId, query.context))) {
        throw onOtherBranch(session.id, event.id);
      }
      updateSession(session, fresh);
      if (earlier) return copyJson(earlier);
    }
  }

  /** Saves an event. Returns the session's new content; `undefined` when it already has the event. */
  async #appendTo(session: StoredSession, event: SessionEvent): Promise<SessionContent | undefined> {
    const { query, content } = linkOf(session, this);
    const [end, [user, app]] = await Promise.all([this.#reader.find(query), this.#reader.recordsOf(query)]);
    if (!end) throw sessionNotFound(session.id);
    assertCurrent(session.id, content, end);
    const draft = this.#draft(query, { plain: end.base?.state?.custom, user, app }, event.actions.stateDelta ?? {});
    const lastUpdateTime = Math.max(Date.now(), content.lastUpdateTime + 1);
    const createdAt = new Date(lastUpdateTime).toISOString();
    const snapshotId = snapshotIdOf(session.id, event.id);
    const input = snapshotOf(query, { snapshotId, createdAt, draft, end, event });
    const options = { context: query.context, expectedLeafId: end.leaf.snapshotId };
    if (!(await this.#save(snapshotId, input, draft, options))) return undefined;
    const events = [...content.events, event];
    return { state: draft.state, events, lastUpdateTime, leafId: snapshotId, baseId: snapshotId };
  }

  #draft(owner: SessionOwner, parts: StateParts, delta: unknown): StateDraft {
    const { appName, userId } = owner;
    const records = keepsScopes(this.#store) ? { appName, userId } : undefined;
    return draftState(parts, delta, { owner: records, limits: this.#rules.limits });
  }

  /** Whether it was saved: false when the snapshot already exists. */
  async #save(
    snapshotId: string,
    input: SessionSnapshotInput,
    { scopes }: StateDraft,
    options: SaveSnapshotOptions,
  ): Promise<boolean> {
    const all = { ...options, ...(scopes.length > 0 && { scopes }) };
    return (await this.#store.saveSnapshot(snapshotId, (current) => (current ? null : input), all)) !== null;
  }
}

const OWNER = { appName: isAny, userId: isAny, context: isAny };
const SESSION = { ...OWNER, sessionId: isAny };

const isOnStale = isOneOf('reject', 'refresh');

function alreadyExists(sessionId: string): GenkitError {
  const message = `Session ${quote(sessionId)} already exists. Omit the sessionId to create a session with a new id.`;
  return addressTo('caller', new GenkitError({ status: 'ALREADY_EXISTS', message }));
}

/** The conflict in terms of the caller's session object. */
function outOfDate({ sessionId, expectedLeafId, actualLeafId }: SessionConflictError): SessionConflictError {
  const advice =
    `The session object is out of date. Read it again with getSession, or call appendEvent ` +
    `with onStale: 'refresh'.`;
  return new SessionConflictError({ sessionId, expectedLeafId, actualLeafId, advice });
}

function onOtherBranch(sessionId: string, eventId: string): GenkitError {
  const message =
    `Session ${quote(sessionId)} already has the event ${quote(eventId)}, on an abandoned branch. ` +
    `Append the event under another id.`;
  return addressTo('caller', new GenkitError({ status: 'ALREADY_EXISTS', message }));
}

function sessionNotFound(sessionId: string): GenkitError {
  return notFound(`Session ${quote(sessionId)} was not found; it may have been deleted.`);
}
