/** A common interface of both session services, ours and the one of Google's Agent Development Kit. */

export type State = Record<string, unknown>;

export interface Owner {
  appName: string;
  userId: string;
}

export interface Event {
  id?: string;
  author: string;
  timestamp?: number;
  actions?: { stateDelta?: State };
}

export interface Session {
  readonly id: string;
  readonly state: State;
  readonly events: readonly Event[];
  readonly lastUpdateTime: number;
}

/** Selects the events to read. */
export interface Choice {
  numRecentEvents?: number;
  afterTimestamp?: number;
}

/** A session service. */
export interface Service {
  createSession(options: Owner & { sessionId?: string; state?: State }): Promise<Session>;
  getSession(query: Owner & Choice & { sessionId: string }): Promise<Session | undefined>;
  listSessions(owner: Owner): Promise<{ sessions: { id: string }[] }>;
  deleteSession(query: Owner & { sessionId: string }): Promise<unknown>;
  appendEvent(session: Session, event: Event): Promise<Event>;
  /** Adds one to a key in two sessions of the user at the same time, like the library's tools in a turn. */
  addOneInTwoTurns(owner: Owner, key: `user:${string}`): Promise<void>;
}
