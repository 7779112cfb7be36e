/** The in-memory service of Google's Agent Development Kit, for `../state.ts`, with our interface. It is called like ADK's own runner calls it. */
import type { Event, Service, Session } from '../state-service.ts';

/** The used part of it. It is installed only for the bench, so the type check can't use its types. */
interface Adk {
  InMemorySessionService: new () => {
    createSession: Service['createSession'];
    getSession(request: object): Promise<Session | undefined>;
    listSessions: Service['listSessions'];
    deleteSession: Service['deleteSession'];
    appendEvent(request: { session: Session; event: Event }): Promise<Event>;
  };
  createEvent: (params: object) => Event;
  setLogger: (logger: null) => void;
  version: string;
}

/** Its version, and a factory of new services. */
export async function loadAdk(): Promise<{ version: string; open: () => Service }> {
  const name = '@google/adk';
  const { InMemorySessionService, createEvent, setLogger, version } = (await import(name)) as Adk;
  // It logs a warning about an append to a deleted session, and continues.
  setLogger(null);
  const open = (): Service => {
    const service = new InMemorySessionService();
    const appendEvent: Service['appendEvent'] = (session, event) =>
      service.appendEvent({ session, event: createEvent(event) });
    return {
      createSession: (options) => service.createSession(options),
      getSession: ({ numRecentEvents, afterTimestamp, ...key }) =>
        service.getSession({ ...key, config: { numRecentEvents, afterTimestamp } }),
      listSessions: (owner) => service.listSessions(owner),
      deleteSession: (key) => service.deleteSession(key),
      appendEvent,
      // A tool's `state.set()` becomes a delta of the turn's event: a new value, computed from the session's state at its read.
      addOneInTwoTurns: async (owner, key) => {
        const sessions = [await service.createSession(owner), await service.createSession(owner)];
        await Promise.all(
          sessions.map((session) => {
            const stateDelta = { [key]: Number(session.state[key] ?? 0) + 1 };
            return appendEvent(session, { author: 'adder', actions: { stateDelta } });
          }),
        );
      },
    };
  };
  return { version, open };
}
