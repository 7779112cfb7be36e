/** The server's stream of events: whether the server is connected, and which conversations change. */
import type { ServerEvent } from '../../../server/api-types.ts';
import { authHeaders } from './auth.ts';

const RETRY_MS = 1_000;

export interface EventListener {
  onEvent: (event: ServerEvent) => void;
  /** Called if the stream broke, or could not be opened. It is opened again soon. */
  onLost: () => void;
}

/** Keeps the stream open until the returned function is called. Uses `fetch`, because an `EventSource` can't send the token. */
export function listenToServer({ onEvent, onLost }: EventListener): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const listen = async () => {
    while (!signal.aborted) {
      await readEvents(signal, onEvent).catch(() => {});
      if (signal.aborted) return;
      onLost();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
  void listen();
  return () => stop.abort();
}

async function readEvents(signal: AbortSignal, onEvent: (event: ServerEvent) => void): Promise<void> {
  const response = await fetch('api/events', { headers: await authHeaders(), signal });
  if (!response.ok || !response.body) throw new Error(`The server answered ${response.status}.`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) onEvent(JSON.parse(event.replace(/^data: /, '')) as ServerEvent);
  }
}
