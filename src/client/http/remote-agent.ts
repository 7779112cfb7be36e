import { createAgentApi } from '../chat/agent-api.ts';
import { type AllNames } from '../check.ts';
import { AgentError, invalid } from '../errors.ts';
import { reachable } from './reachable.ts';
import { post, readRequest, readUrl, STREAM_ID_HEADER, type PostRequest } from './post.ts';
import { readResult, readTurn } from './read-turn.ts';
import { withLimits } from '../signals.ts';
import { readPolicy, readResumableTurn, type ReconnectOptions, type ReconnectPolicy } from './reconnect.ts';
import { isAborted, isSnapshot } from './wire-form.ts';
import type { AgentTransport, TransportCall, TransportRead } from '../transport.ts';
import type {
  AgentAPI,
  AgentInit,
  AgentInput,
  AgentOutput,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
} from '../types.ts';

/** Options of {@link remoteAgent}. */
export interface RemoteAgentOptions {
  /** The agent's URL: absolute, or in a browser relative to the page. */
  url: string | URL;
  /** The URL to read snapshots. Default: `<url>/getSnapshot`. */
  getSnapshotUrl?: string;
  /** The URL to abort runs. Default: `<url>/abort`. */
  abortUrl?: string;
  /** Headers of every request, or a function that is called before each, for tokens that expire. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Whether the server or the client keeps the state. Default: detected from the agent's answers. */
  stateManagement?: 'server' | 'client';
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
  /**
   * How to resume a turn's stream when the connection breaks and the server keeps the stream (`streamManager`). `false`: never. Each chunk
   * is yielded once, over any number of connections.
   */
  reconnect?: ReconnectOptions | false;
  /**
   * Longest frame of a stream and longest JSON response, in characters. A longer one ends the call with `RESOURCE_EXHAUSTED`, so that a
   * server cannot fill the client's memory. Default: 67,108,864.
   */
  maxFrameChars?: number;
}

const OPTIONS: AllNames<RemoteAgentOptions> = {
  url: true,
  getSnapshotUrl: true,
  abortUrl: true,
  headers: true,
  stateManagement: true,
  fetch: true,
  reconnect: true,
  maxFrameChars: true,
};

/**
 * Creates a client of an agent that is served over HTTP, by this package or by Genkit's `expressHandler`. Runs in browsers and in Node.
 *
 * @throws AgentError `INVALID_ARGUMENT` for an unknown or invalid option, and without a `url`.
 * @example
 * const support = remoteAgent({ url: 'https://example.com/api/support' });
 * const chat = support.chat();
 * const { text } = await chat.send('Where is my order?');
 *
 * // The types of the custom state and of the output of an agent with an output schema.
 * const clerk = remoteAgent<unknown, { total: number }>({ url: 'https://example.com/api/clerk' });
 * const { data } = await clerk.chat().send('Add 1 and 2');
 */
export function remoteAgent<State = unknown, Output = unknown>(options: RemoteAgentOptions): AgentAPI<State, Output> {
  return createAgentApi<State, Output>(new HttpTransport(readRequest('remoteAgent', options, OPTIONS)));
}

class HttpTransport implements AgentTransport {
  readonly stateManagement: 'server' | 'client' | undefined;
  readonly #options: RemoteAgentOptions & { url: string };
  readonly #getSnapshotUrl: string;
  readonly #abortUrl: string;
  readonly #reconnect: ReconnectPolicy;

  constructor(options: RemoteAgentOptions & { url: string }) {
    const { maxFrameChars = 1 } = options;
    if (!(maxFrameChars > 0)) {
      throw invalid('maxFrameChars must be a number above 0.');
    }
    this.#options = options;
    const { url, getSnapshotUrl = `${url}/getSnapshot`, abortUrl = `${url}/abort`, fetch: send } = options;
    this.#getSnapshotUrl = readUrl('remoteAgent', 'getSnapshotUrl', getSnapshotUrl, send);
    this.#abortUrl = readUrl('remoteAgent', 'abortUrl', abortUrl, send);
    this.#reconnect = readPolicy(options.reconnect);
    this.stateManagement = options.stateManagement;
  }

  async runTurn(input: AgentInput, init: AgentInit, call: TransportCall): Promise<AgentOutput> {
    const { url, maxFrameChars } = this.#options;
    const { abortSignal, onChunk, onStreamId } = call;
    const first = await this.#post({ url, body: { data: input, init }, stream: true, abortSignal });
    const streamId = first.headers.get(STREAM_ID_HEADER);
    if (!streamId) {
      return readTurn(first, onChunk, maxFrameChars);
    }
    onStreamId?.(streamId);
    return this.#readKept(streamId, call, first);
  }

  followTurn(streamId: string, call: TransportCall): Promise<AgentOutput> {
    return this.#readKept(streamId, call);
  }

  /** @param first The response with which the stream began. Default: the stream is requested. */
  async #readKept(streamId: string, call: TransportCall, first?: Response): Promise<AgentOutput> {
    const { url, maxFrameChars } = this.#options;
    const { abortSignal } = call;
    const headers = { [STREAM_ID_HEADER]: streamId };
    // Sent without the input, so that a server without kept streams does not run another turn.
    const again = () => this.#post({ url, body: {}, stream: true, headers, abortSignal }, reachable);
    const onAbort = () => void this.stopTurn(streamId);
    abortSignal.addEventListener('abort', onAbort, { once: true });
    if (abortSignal.aborted) {
      onAbort();
    }
    try {
      return await readResumableTurn({ first, again, call, policy: this.#reconnect, maxFrameChars });
    } finally {
      abortSignal.removeEventListener('abort', onAbort);
    }
  }

  /** A kept turn continues when its connection closes, so the abort is sent to the server. Genkit's server does not support this. */
  async stopTurn(streamId: string): Promise<boolean> {
    try {
      const response = await this.#post({ url: this.#abortUrl, body: { data: { streamId } } });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }

  async getSnapshot(
    lookup: SnapshotLookup,
    { abortSignal, metadataOnly, waitMs }: TransportRead = {},
  ): Promise<SessionSnapshot | undefined> {
    try {
      const data = { ...lookup, metadataOnly: metadataOnly || undefined, waitMs };
      return await this.#request(this.#getSnapshotUrl, data, isSnapshot, abortSignal);
    } catch (error) {
      if (isSnapshotMissing(error)) {
        return undefined;
      }
      throw error;
    }
  }

  async abort(
    snapshotId: string,
    { abortSignal }: { abortSignal?: AbortSignal } = {},
  ): Promise<SnapshotStatus | undefined> {
    const result = await this.#request(this.#abortUrl, { snapshotId }, isAborted, abortSignal);
    return result?.status ?? undefined;
  }

  /** Sends a request whose response is one JSON document. */
  async #request<T>(
    url: string,
    data: object,
    check: (result: unknown) => result is T,
    abortSignal: AbortSignal | undefined,
  ): Promise<T | undefined> {
    const response = await this.#post({ url, body: { data }, abortSignal });
    return readResult(response, check, this.#options.maxFrameChars);
  }

  /** @param guard Converts the errors of the `headers` function. */
  async #post({ headers: more, ...call }: PostRequest, guard: typeof reachable = (work) => work()): Promise<Response> {
    const { headers, fetch } = this.#options;
    // A function that requests a token may never resolve, so the limits of the call apply to it.
    const getHeaders = async () => (typeof headers === 'function' ? headers() : headers);
    const own = await withLimits(call, 'The request', () => guard(getHeaders));
    return post({ ...call, headers: { ...own, ...more }, fetch });
  }
}

/** `NOT_FOUND` from a URL without an agent is an error, not a missing snapshot. */
function isSnapshotMissing(error: unknown): boolean {
  if (!AgentError.isInstance(error) || error.status !== 'NOT_FOUND') {
    return false;
  }
  const { httpStatus, reason } = (error.details ?? {}) as { httpStatus?: unknown; reason?: unknown };
  return httpStatus === undefined && reason !== 'NO_SUCH_PATH';
}
