import type { LiveEvents, LiveQuery } from '../../../../src/inspector/api.ts';
import { addressOf } from './requests.ts';

type Listeners = { [N in keyof LiveEvents]?: (event: LiveEvents[N]) => void };

/** Hears of changes until the function that it returns is called. The browser connects again by itself: `onOpen` is called each time. */
export function listen(query: LiveQuery, listeners: Listeners, onOpen?: () => void): () => void {
  const source = new EventSource(addressOf('live', query));
  if (onOpen) source.addEventListener('open', onOpen);
  for (const [name, tell] of Object.entries(listeners))
    source.addEventListener(name, (event: MessageEvent<string>) =>
      (tell as (data: unknown) => void)(JSON.parse(event.data)),
    );
  return () => source.close();
}
