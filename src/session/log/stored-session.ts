import type { SessionStoreOptions } from 'genkit/beta';
import { failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { copyJson, type Json } from '../../json/value.ts';
import { readOnlyViews } from '../read-only.ts';
import type { SessionEvent } from './session-event.ts';

/** The content of a session as of some snapshot. Immutable, because later contents share it. */
export interface SessionContent {
  /** The whole state, each key with its prefix. */
  readonly state: { [key: string]: Json };
  readonly events: readonly SessionEvent[];
  readonly lastUpdateTime: number;
  /** The session's latest leaf. */
  readonly leafId: string;
  /** The parent of the next event's snapshot. */
  readonly baseId: string | undefined;
}

/** Identifies a session, and the part of its events to read. */
export interface SessionQuery extends SessionStoreOptions {
  /** The app of the session. */
  appName: string;
  /** The user of that app. */
  userId: string;
  /** The session's id. */
  sessionId: string;
  /** Only this many of the last events. Default: all. */
  numRecentEvents?: number;
  /** Only events at or after this time, in ms since 1970. */
  afterTimestamp?: number;
}

/** The service's data of a session object. */
interface Link {
  readonly service: object;
  readonly query: SessionQuery;
  content: SessionContent;
  /** Resolves after all appends so far: appends to one object run one after the other. */
  tail: Promise<unknown>;
}

/** Module data, so that only the service reads and changes it. */
const links = new WeakMap<StoredSession, Link>();

function mustGetLink(session: StoredSession): Link {
  return links.get(session)!;
}

/**
 * A session as it was read, updated by each `appendEvent`. It is an immutable view, and events that other callers append are not in it.
 * `JSON.stringify` and `toJSON` make a plain copy.
 */
export class StoredSession {
  /** Instances come from a `SessionService`. */
  constructor(service: object, query: SessionQuery, content: SessionContent) {
    links.set(this, { service, query, content, tail: Promise.resolve() });
  }

  /** The session's id, unique in its tenant. */
  get id(): string {
    return mustGetLink(this).query.sessionId;
  }

  /** The app of the session. */
  get appName(): string {
    return mustGetLink(this).query.appName;
  }

  /** The user of that app. */
  get userId(): string {
    return mustGetLink(this).query.userId;
  }

  /** The session's keys with those of its user (`user:`) and its app (`app:`). An attempt to change it throws. */
  get state(): { readonly [key: string]: Json } {
    return viewOfState(mustGetLink(this).content.state);
  }

  /** @throws `FAILED_PRECONDITION`: append an event instead. */
  set state(_: unknown) {
    throw readOnlyState();
  }

  /** The events in the order in which they were appended. */
  get events(): readonly SessionEvent[] {
    return viewOfEvents(mustGetLink(this).content.events);
  }

  /** The time of the last write to the session, in ms since 1970. Each append increases it. */
  get lastUpdateTime(): number {
    return mustGetLink(this).content.lastUpdateTime;
  }

  /** A plain copy of the session. */
  toJSON(): { [key: string]: unknown } {
    const { state, events, lastUpdateTime } = mustGetLink(this).content;
    const { id, appName, userId } = this;
    return { id, appName, userId, state: copyJson(state), events: copyJson(events), lastUpdateTime };
  }

  /** The value that Node prints. */
  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }
}

const viewOfState = readOnlyViews(readOnlyState);

const viewOfEvents = readOnlyViews(() =>
  failedPrecondition("A session's events can't be changed. Add one with appendEvent(session, event)."),
);

function readOnlyState(key = 'key'): Error {
  return failedPrecondition(
    `A session's state can't be changed in place, because the change would not be stored. Append an event instead: ` +
      `appendEvent(session, { author, actions: { stateDelta: { ${quote(key)}: value } } }).`,
  );
}

/**
 * The service's data of one of its session objects.
 *
 * @throws `INVALID_ARGUMENT` for anything else.
 */
export function linkOf(session: StoredSession, service: object): Omit<Link, 'tail' | 'service'> {
  const link = session instanceof StoredSession ? links.get(session) : undefined;
  if (link?.service === service) return link;
  throw invalidArgument('appendEvent needs a session that this SessionService made or read.');
}

/** Updates the session object. */
export function updateSession(session: StoredSession, content: SessionContent): void {
  mustGetLink(session).content = content;
}

/** Runs `work` after all earlier work on this object. */
export function inTurn<T>(session: StoredSession, work: () => Promise<T>): Promise<T> {
  const own = mustGetLink(session);
  const result = own.tail.then(work);
  own.tail = result.catch(() => {});
  return result;
}
