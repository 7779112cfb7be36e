import { useEffect, useState } from 'react';
import type { ServerHello } from '../../../server/api-types.ts';
import { listenToServer } from '../logic/server-events.ts';

export interface ServerStatus {
  /** `undefined` until it is known. */
  online?: boolean;
  /** The number of connections so far. A change reads all data from the server again. */
  connection: number;
  hello?: ServerHello;
  /** The number of changes of each conversation since the page was opened. */
  changes: Readonly<Record<string, number>>;
}

/** Whether the server is connected, and the changes on it. */
export function useServer(): ServerStatus {
  const [status, setStatus] = useState<ServerStatus>({ connection: 0, changes: {} });
  useEffect(
    () =>
      listenToServer({
        onEvent: (event) =>
          setStatus((before) => {
            if (event.type === 'hello') {
              return { ...before, online: true, connection: before.connection + 1, hello: event };
            }
            const { sessionId } = event;
            return { ...before, changes: { ...before.changes, [sessionId]: (before.changes[sessionId] ?? 0) + 1 } };
          }),
        onLost: () => setStatus((before) => ({ ...before, online: false })),
      }),
    [],
  );
  return status;
}
