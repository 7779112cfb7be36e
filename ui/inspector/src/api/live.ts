import type { LiveEvents, LiveQuery } from '../../../../src/inspector/api.ts';
import { setConnection } from './connection.ts';
import { addressOf, checkConnection } from './requests.ts';

type Listeners = { [N in keyof LiveEvents]?: (event: LiveEvents[N]) => void };

/** Between two tries to connect again, where the browser gave up. */
const PAUSE_MS = 5000;

/**
 * Hears of changes until the function that it returns is called. It connects again by itself: `onOpen` is called each time. A page in the
 * background hears of nothing: a browser has six connections to a server, for all its pages together.
 *
 * @param queryOf What the page knows, when it is seen first and again.
 */
export function listen(queryOf: () => LiveQuery, listeners: Listeners, onOpen?: () => void): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
  };
  const look = () => {
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
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(look, PAUSE_MS);
    });
    for (const [name, tell] of Object.entries(listeners))
      source.addEventListener(name, (event: MessageEvent<string>) =>
        (tell as (data: unknown) => void)(JSON.parse(event.data)),
      );
  };
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    stop();
  };
}
