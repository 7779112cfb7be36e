/** The in-memory service of Google's Agent Development Kit, for `../state.ts`: called as its own runner calls it, in our words. */
import type { Event, Service, Session } from '../state-service.ts';

/** What is used of it. It is installed for the bench only, so its types can't be looked at when this is checked. */
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

/** Its version, and what makes a new service. */
export async function loadAdk(): Promise<{ version: string; open: () => Service }> {
  const name = '@google/adk';
  const { InMemorySessionService, createEvent, setLogger, version } = (await import(name)) as Adk;
  // Of an append to a session that is gone it logs a warning, and goes on.
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
      // A tool's `state.set()` is a delta of its turn's event: the value that it has made of what its session was read with.
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
