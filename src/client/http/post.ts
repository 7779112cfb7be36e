import { invalid } from '../check.ts';
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
 * @throws AgentError when the signal aborts, and `INVALID_ARGUMENT` for a relative address outside of a browser; ConnectionLostError when the server can't be reached.
 */
export async function post(request: PostRequest): Promise<Response> {
  const { url, stream, headers, abortSignal, fetch: send = fetch } = request;
  if (!request.fetch) {
    assertComplete(url);
  }
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

/**
 * A browser knows which page an address is relative to; Node's `fetch` knows none. Looked at when it is needed: a module that is made for the
 * page may be loaded on the server as well.
 */
function assertComplete(url: string): void {
  if (!URL.canParse(url, globalThis.location?.href)) {
    throw invalid(
      `The address '${url}' can't be used: outside of a browser it must be absolute, 'https://example.com/api/support' say.`,
    );
  }
}
