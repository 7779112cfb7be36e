import { useSyncExternalStore } from 'react';

/** `lost`: the server does not answer. `ended`: it was started again, so the page's cookie is not valid any more. */
export type Connection = 'open' | 'lost' | 'ended';

let connection: Connection = 'open';
const listeners = new Set<() => void>();

export function setConnection(next: Connection): void {
  connection = next;
  for (const notify of listeners) notify();
}

/** The state of the connection after the last request or live event. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => connection,
  );
}
