import type { LiveEvents, LiveQuery } from '../../../../src/inspector/api.ts';
import { addressOf } from './requests.ts';

type Listeners = { [N in keyof LiveEvents]?: (event: LiveEvents[N]) => void };

/**
 * Hears of changes until the function that it returns is called. The browser connects again by itself: `onOpen` is called each time. A page in the
 * background hears of nothing: a browser has six connections to a server, for all its pages together.
 *
 * @param queryOf What the page knows, when it is seen first and again.
 */
export function listen(queryOf: () => LiveQuery, listeners: Listeners, onOpen?: () => void): () => void {
  let source: EventSource | undefined;
  const look = () => {
    source?.close();
    if (document.visibilityState === 'hidden') return;
    source = new EventSource(addressOf('live', queryOf()));
    if (onOpen) source.addEventListener('open', onOpen);
    for (const [name, tell] of Object.entries(listeners))
      source.addEventListener(name, (event: MessageEvent<string>) =>
        (tell as (data: unknown) => void)(JSON.parse(event.data)),
      );
  };
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    source?.close();
  };
}
