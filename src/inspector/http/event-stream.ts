import { setTimeout as pause } from 'node:timers/promises';
import { answer } from './answers.ts';

/** Adds an event to the next chunk of the stream. */
export type SendEvent = (name: string, data: unknown) => void;

/**
 * An answer of server-sent events. Calls `poll` again `pauseMs` after it has ended and the reader has taken its events, until the reader
 * disconnects. So events do not pile up for a slow reader.
 *
 * @param signal Ends the stream.
 */
export function eventStream(
  poll: (send: SendEvent) => Promise<void>,
  { pauseMs, signal }: { pauseMs: number; signal: AbortSignal },
): Response {
  const encoder = new TextEncoder();
  const gone = new AbortController();
  const stop = AbortSignal.any([signal, gone.signal]);
  let isFirst = true;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        if (!isFirst) await pause(pauseMs, undefined, { signal: stop }).catch(() => {});
        isFirst = false;
        const events: string[] = [];
        if (!stop.aborted) await poll((name, data) => events.push(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
        if (gone.signal.aborted) return;
        // Without events, sends a comment, to notice a closed connection.
        controller.enqueue(encoder.encode(events.join('') || ':\n\n'));
        if (stop.aborted) controller.close();
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  );
  return answer(body, {
    type: 'text/event-stream; charset=utf-8',
    headers: { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' },
  });
}
