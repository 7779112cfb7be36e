import type { SafeError } from './safe-error.ts';

/** Answers are for the one who asked: not for caches, and never to be taken for anything but what they say they are. */
const SECURITY_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** What compresses (Express's `compression()`, say) or collects (nginx) on the way would hold back the chunks. */
const STREAM_HEADERS = {
  ...SECURITY_HEADERS,
  'cache-control': 'no-store, no-transform',
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
};

/** An answer that is one JSON document. */
export function jsonAnswer(httpStatus: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status: httpStatus,
    headers: { ...SECURITY_HEADERS, 'content-type': 'application/json; charset=utf-8', ...headers },
  });
}

/** The answer to who asks for the rest of a stream that there is not, or not for them: what Genkit's servers and clients take for that. */
export function noStreamAnswer(): Response {
  return new Response(null, { status: 204, headers: SECURITY_HEADERS });
}

/** The frames of a stream, in Genkit's wire format. */
export const frames = {
  chunk: (chunk: unknown) => `data: ${JSON.stringify({ message: chunk })}\n\n`,
  result: (result: unknown) => `data: ${JSON.stringify({ result })}\n\n`,
  error: (error: SafeError) => `error: ${JSON.stringify({ error })}\n\n`,
};

/** An answer that is being written. */
export interface StreamAnswer {
  write(frame: string): void;
  end(): void;
  response: Response;
}

/** Opens an answer of server-sent events. `onCancel` is called when the client goes away before the end. */
export function streamAnswer(onCancel: () => void, headers: Record<string, string> = {}): StreamAnswer {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (opened) => {
      controller = opened;
    },
    cancel: () => {
      controller = undefined;
      onCancel();
    },
  });
  return {
    write: (frame) => controller?.enqueue(encoder.encode(frame)),
    end: () => {
      controller?.close();
      controller = undefined;
    },
    response: new Response(body, { headers: { ...STREAM_HEADERS, ...headers } }),
  };
}
