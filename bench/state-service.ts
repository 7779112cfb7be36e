/** What both services of sessions, ours and that of Google's Agent Development Kit, can do, in our words. */

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

/** Which events are read. */
export interface Choice {
  numRecentEvents?: number;
  afterTimestamp?: number;
}

/** A service of sessions. */
export interface Service {
  createSession(options: Owner & { sessionId?: string; state?: State }): Promise<Session>;
  getSession(query: Owner & Choice & { sessionId: string }): Promise<Session | undefined>;
  listSessions(owner: Owner): Promise<{ sessions: { id: string }[] }>;
  deleteSession(query: Owner & { sessionId: string }): Promise<unknown>;
  appendEvent(session: Session, event: Event): Promise<Event>;
  /** Two sessions of the user at the same time add one to a key, as the library's tools do it in a turn. */
  addOneInTwoTurns(owner: Owner, key: `user:${string}`): Promise<void>;
}
