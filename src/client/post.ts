import { reachable } from './reachable.ts';

/** Genkit's name for the id of a stream, in requests and answers alike. */
export const STREAM_ID_HEADER = 'x-genkit-stream-id';

/** A request of the client. */
export interface PostRequest {
  url: string;
  body: { data?: unknown; init?: unknown };
  /** Asks for a stream in place of one JSON document. */
  stream?: boolean;
  headers?: Record<string, string>;
  abortSignal?: AbortSignal;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

/**
 * Sends a request, and answers as soon as the head of its answer is there, whatever that says.
 *
 * @throws AgentError when the signal aborts; ConnectionLostError when the server can't be reached.
 */
export async function post(request: PostRequest): Promise<Response> {
  const { url, stream, headers, abortSignal, fetch: send = fetch } = request;
  const body = JSON.stringify(request.body);
  return reachable(() =>
    send(url, {
      method: 'POST',
      headers: {
        accept: stream ? 'text/event-stream' : 'application/json',
        'content-type': 'application/json',
        ...headers,
      },
      body,
      signal: abortSignal,
    }),
  );
}
