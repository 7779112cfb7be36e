import type { FrameStream } from './frame-stream.ts';
import type { SafeError } from './error-for-caller.ts';

/** Forbids caching, and guessing another content type. */
const SECURITY_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** Keeps middleware that compresses (Express's `compression()`) and proxies that buffer (nginx) from delaying the chunks. */
const STREAM_HEADERS = {
  ...SECURITY_HEADERS,
  'cache-control': 'no-store, no-transform',
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
};

/** An answer, independent of the HTTP server. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** A document, or a stream of events. */
  body?: string | FrameStream;
}

/** An answer that is one JSON document. */
export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return {
    status,
    headers: { ...SECURITY_HEADERS, 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  };
}

/** The answer to a request for a stream that does not exist or has another owner; Genkit's servers and clients use the same. */
export function noStreamAnswer(): Answer {
  return { status: 204, headers: SECURITY_HEADERS };
}

/** An answer of server-sent events. */
export function streamAnswer(body: FrameStream, headers: Record<string, string> = {}): Answer {
  return { status: 200, headers: { ...STREAM_HEADERS, ...headers }, body };
}

/** The frames of a stream, in Genkit's wire format. */
export const frames = {
  chunk: (chunk: unknown) => `data: ${JSON.stringify({ message: chunk })}\n\n`,
  result: (result: unknown) => `data: ${JSON.stringify({ result })}\n\n`,
  error: (error: SafeError) => `error: ${JSON.stringify({ error })}\n\n`,
};
