import type { SessionStoreOptions } from 'genkit/beta';
import { failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { copyJson, type Json } from '../../json/value.ts';
import { readOnlyViews } from '../read-only.ts';
import type { SessionEvent } from './session-event.ts';

/** What a session is as of some snapshot. Nobody changes any of it: what comes after shares it. */
export interface SessionContent {
  /** All of it, each key with its prefix. */
  readonly state: { [key: string]: Json };
  readonly events: readonly SessionEvent[];
  readonly lastUpdateTime: number;
  /** The session's latest leaf. */
  readonly leafId: string;
  /** The snapshot that the next event comes after. */
  readonly baseId: string | undefined;
}

/** How a session was asked for. */
export interface SessionQuery extends SessionStoreOptions {
  /** The app that it belongs to. */
  appName: string;
  /** The user of that app. */
  userId: string;
  /** Which session. */
  sessionId: string;
  /** Of its events the last so many; all unless told. */
  numRecentEvents?: number;
  /** Events of this time and later, in ms since 1970. */
  afterTimestamp?: number;
}

/** What the service knows of a session object. */
interface Link {
  readonly service: object;
  readonly query: SessionQuery;
  content: SessionContent;
  /** Ends when all appends so far have: those of one object come one after the other. */
  tail: Promise<unknown>;
}

/** The service's own access; not exported from the package. */
let link: (session: StoredSession) => Link;

/**
 * A session as it was when it was read, and as `appendEvent` left it since. It is a view: nothing of it can be changed, and what other callers
 * append is not in it. `JSON.stringify` and `toJSON` make a plain copy.
 */
export class StoredSession {
  readonly #link: Link;

  static {
    link = (session) => session.#link;
  }

  /** Sessions come from a `SessionService`. */
  constructor(service: object, query: SessionQuery, content: SessionContent) {
    this.#link = { service, query, content, tail: Promise.resolve() };
  }

  /** The session's id, which names it in its tenant. */
  get id(): string {
    return this.#link.query.sessionId;
  }

  /** The app that it belongs to. */
  get appName(): string {
    return this.#link.query.appName;
  }

  /** The user of that app. */
  get userId(): string {
    return this.#link.query.userId;
  }

  /** The session's keys, its user's (`user:`) and its app's (`app:`). An attempt to change it throws. */
  get state(): { readonly [key: string]: Json } {
    return viewOfState(this.#link.content.state);
  }

  /** @throws `FAILED_PRECONDITION`: append an event that changes it. */
  set state(_: unknown) {
    throw readOnlyState();
  }

  /** In the order in which they were appended. */
  get events(): readonly SessionEvent[] {
    return viewOfEvents(this.#link.content.events);
  }

  /** When the session was last written, in ms since 1970; each append makes it later. */
  get lastUpdateTime(): number {
    return this.#link.content.lastUpdateTime;
  }

  /** A plain copy of all of it. */
  toJSON(): { [key: string]: unknown } {
    const { state, events, lastUpdateTime } = this.#link.content;
    const { id, appName, userId } = this;
    return { id, appName, userId, state: copyJson(state), events: copyJson(events), lastUpdateTime };
  }

  /** What Node prints. */
  [Symbol.for('nodejs.util.inspect.custom')](): unknown {
    return this.toJSON();
  }
}

const viewOfState = readOnlyViews(readOnlyState);

const viewOfEvents = readOnlyViews(() =>
  failedPrecondition("A session's events can't be changed; add one with appendEvent(session, event)."),
);

function readOnlyState(key = 'key'): Error {
  return failedPrecondition(
    `A session's state can't be changed in place, the change would be nowhere else. Append an event that changes it: ` +
      `appendEvent(session, { author, actions: { stateDelta: { ${quote(key)}: value } } }).`,
  );
}

/**
 * What the service knows of one of its sessions.
 *
 * @throws `INVALID_ARGUMENT` for anything else.
 */
export function linkOf(session: StoredSession, service: object): Omit<Link, 'tail' | 'service'> {
  const isOwn = session instanceof StoredSession && link(session).service === service;
  if (!isOwn) throw invalidArgument('appendEvent needs a session that this SessionService made or read.');
  return link(session);
}

/** What the session is now. */
export function updateSession(session: StoredSession, content: SessionContent): void {
  link(session).content = content;
}

/** Runs `work` when all earlier work on this object has ended. */
export function inTurn<T>(session: StoredSession, work: () => Promise<T>): Promise<T> {
  const own = link(session);
  const result = own.tail.then(work);
  own.tail = result.catch(() => {});
  return result;
}
