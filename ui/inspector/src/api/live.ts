import type { LiveEvents, LiveQuery } from '../../../../src/inspector/api.ts';
import { setConnection } from './connection.ts';
import { addressOf, checkConnection } from './requests.ts';

type Listeners = { [N in keyof LiveEvents]?: (event: LiveEvents[N]) => void };

/** The pause before the page connects again, if the browser has given up. */
const PAUSE_MS = 5000;

/**
 * Listens to changes until the returned function is called. Reconnects automatically; `onOpen` is called each time. A page in the
 * background does not listen: a browser has only six connections to a server, for all its pages together.
 *
 * @param queryOf Returns the query of a new connection, with the data that the page has.
 */
export function listen(queryOf: () => LiveQuery, listeners: Listeners, onOpen?: () => void): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
  };
  const connect = () => {
    stop();
    if (document.visibilityState === 'hidden') return;
    const opened = new EventSource(addressOf('live', queryOf()));
    source = opened;
    opened.addEventListener('open', () => {
      setConnection('open');
      onOpen?.();
    });
    opened.addEventListener('error', () => {
      void checkConnection();
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(connect, PAUSE_MS);
    });
    for (const [name, notify] of Object.entries(listeners))
      source.addEventListener(name, (event: MessageEvent<string>) =>
        (notify as (data: unknown) => void)(JSON.parse(event.data)),
      );
  };
  connect();
  document.addEventListener('visibilitychange', connect);
  return () => {
    document.removeEventListener('visibilitychange', connect);
    stop();
  };
}
