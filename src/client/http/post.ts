import { checkNames } from '../check.ts';
import { invalid } from '../errors.ts';
import { reachable } from './reachable.ts';

/** Genkit's header for the id of a stream, in requests and responses. */
export const STREAM_ID_HEADER = 'x-genkit-stream-id';

/** A request of the client. */
export interface PostRequest {
  url: string;
  body: { data?: unknown; init?: unknown };
  /** Requests a stream instead of one JSON document. */
  stream?: boolean;
  headers?: Record<string, string>;
  abortSignal?: AbortSignal;
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
}

const EXPECTED = "an object: { url: 'https://example.com/api' }";

/** The options that `remoteAgent` and the calls of flows share. */
interface RequestOptions {
  url: string | URL;
  headers?: unknown;
  fetch?: unknown;
}

/**
 * Checks the options of a request, and writes their URL as a text.
 *
 * @throws AgentError `INVALID_ARGUMENT`
 */
export function readRequest<T extends RequestOptions>(owner: string, options: T, names: object): T & { url: string } {
  checkNames(owner, options ?? null, names, EXPECTED);
  const { headers, fetch: send } = options;
  if (send !== undefined && typeof send !== 'function') {
    throw invalid(`${owner} takes a function as 'fetch'.`);
  }
  const isTokens = typeof headers === 'function' && 'fetch' in names;
  // The members of a Headers object or a Map would be lost.
  const isRecord = typeof headers === 'object' && headers !== null && !(Symbol.iterator in headers);
  if (headers !== undefined && !isTokens && !isRecord) {
    throw invalid(`${owner} takes a plain object as 'headers'.`);
  }
  return { ...options, url: readUrl(owner, 'url', options.url, send) };
}

/**
 * Returns an address as a text.
 *
 * @param send The caller's own `fetch`, if any.
 * @throws AgentError `INVALID_ARGUMENT`
 */
export function readUrl(owner: string, name: string, given: unknown, send: unknown): string {
  const url = given instanceof URL ? given.href : given;
  if (typeof url !== 'string' || url.trim() === '') {
    throw invalid(`${owner} takes ${EXPECTED}: '${name}' must be a text or a URL.`);
  }
  // A caller's own fetch may know other schemes.
  if (!send && /^(?!https?:)[a-z][\w+.-]*:/i.test(url.trim())) {
    throw invalid(`${owner} can't use '${url}' as '${name}': it must begin with http: or https:.`);
  }
  return url;
}

/**
 * Sends a request, and returns the response of any status as soon as its head arrives.
 *
 * @throws AgentError when the signal aborts, and `INVALID_ARGUMENT` for a relative address outside of a browser; ConnectionLostError when
 *   the server can't be reached.
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
 * Refuses a relative address outside of a browser. Done at the call, because a module for the page may also be loaded on the server.
 */
function assertComplete(url: string): void {
  if (!URL.canParse(url, globalThis.location?.href)) {
    throw invalid(`The address '${url}' can't be used: outside of a browser it must be absolute.`);
  }
}
