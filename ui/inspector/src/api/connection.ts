import { useSyncExternalStore } from 'react';

/** `lost`: the server does not answer. `ended`: it answers, and the page has no valid cookie, because it was started again. */
export type Connection = 'open' | 'lost' | 'ended';

let connection: Connection = 'open';
const listeners = new Set<() => void>();

export function setConnection(next: Connection): void {
  connection = next;
  for (const notify of listeners) notify();
}

/** What the last request, or the last look of a live view, has shown. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => connection,
  );
}
