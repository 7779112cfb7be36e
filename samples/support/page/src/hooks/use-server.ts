import { useEffect, useState } from 'react';
import type { ServerHello } from '../../../server/api-types.ts';
import { listenToServer } from '../logic/server-events.ts';

export interface ServerStatus {
  /** `undefined` until it is known. */
  online?: boolean;
  /** Grows with every connection: what was read from the server is read again when it changes. */
  connection: number;
  hello?: ServerHello;
  /** How often each conversation has changed since the page was opened. */
  changes: Readonly<Record<string, number>>;
}

/** Whether the server is there, and what changes on it. */
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
