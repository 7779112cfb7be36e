import type { RemoteAgentOptions as GenkitRemoteAgentOptions } from 'genkit/beta/client';
import { createAgentApi } from './agent-api.ts';
import { AgentError, toAgentError } from './errors.ts';
import { readResult, readTurn } from './read-turn.ts';
import { ReplayStream } from './replay-stream.ts';
import type { AgentTransport, TransportRead, TransportTurn } from './transport.ts';
import type {
  AgentAPI,
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
} from './types.ts';

/** Options of {@link remoteAgent}. */
export interface RemoteAgentOptions extends GenkitRemoteAgentOptions {
  /** Where the agent is served: absolute, or in a browser relative to the page. */
  url: string;
  /** Where its snapshots are read; `<url>/getSnapshot` unless told. */
  getSnapshotUrl?: string;
  /** Where its runs are stopped; `<url>/abort` unless told. */
  abortUrl?: string;
  /** Headers of every request, or a function that is asked before each: for tokens that expire. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Who keeps the state; taken from the agent's answers unless told. */
  stateManagement?: 'server' | 'client';
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

interface Call {
  url: string;
  body: { data: unknown; init?: unknown };
  stream?: boolean;
  abortSignal?: AbortSignal;
}

/**
 * A client of an agent that is served over HTTP, by this package or by Genkit's `expressHandler`. For browsers and for Node.
 *
 * @example
 * const support = remoteAgent({ url: 'https://example.com/api/support' });
 * const chat = support.chat();
 * const { text } = await chat.send('Where is my order?');
 */
export function remoteAgent<State = unknown>(options: RemoteAgentOptions): AgentAPI<State> {
  return createAgentApi<State>(new HttpTransport(options));
}

class HttpTransport implements AgentTransport {
  readonly stateManagement: 'server' | 'client' | undefined;
  readonly #options: RemoteAgentOptions;

  constructor(options: RemoteAgentOptions) {
    this.#options = options;
    this.stateManagement = options.stateManagement;
  }

  runTurn(input: AgentInput, init: AgentInit, { abortSignal }: { abortSignal: AbortSignal }): TransportTurn {
    const stream = new ReplayStream<AgentStreamChunk>();
    const output = this.#runTurn(
      { url: this.#options.url, body: { data: input, init }, stream: true, abortSignal },
      stream,
    );
    output.then(
      () => stream.close(),
      (error: unknown) => stream.fail(error),
    );
    return { stream, output };
  }

  async #runTurn(call: Call, stream: ReplayStream<AgentStreamChunk>): Promise<AgentOutput> {
    const response = await this.#post(call);
    return reachable(() => readTurn(response, (chunk) => stream.push(chunk)));
  }

  async getSnapshot(
    lookup: SnapshotLookup,
    { abortSignal, metadataOnly, waitMs }: TransportRead = {},
  ): Promise<SessionSnapshot | undefined> {
    const { url, getSnapshotUrl = `${url}/getSnapshot` } = this.#options;
    try {
      const data = { ...lookup, ...(metadataOnly && { metadataOnly }), ...(waitMs && { waitMs }) };
      const response = await this.#post({ url: getSnapshotUrl, body: { data }, abortSignal });
      return (await reachable(() => readResult(response))) as SessionSnapshot;
    } catch (error) {
      if (saysNoSuchSnapshot(error)) {
        return undefined;
      }
      throw error;
    }
  }

  async abort(
    snapshotId: string,
    { abortSignal }: { abortSignal?: AbortSignal } = {},
  ): Promise<SnapshotStatus | undefined> {
    const { url, abortUrl = `${url}/abort` } = this.#options;
    const response = await this.#post({ url: abortUrl, body: { data: { snapshotId } }, abortSignal });
    const result = await reachable(() => readResult(response));
    return (result as { status?: SnapshotStatus } | undefined)?.status;
  }

  async #post({ url, body, stream, abortSignal }: Call): Promise<Response> {
    const { headers, fetch: send = fetch } = this.#options;
    const own = typeof headers === 'function' ? await headers() : headers;
    const text = JSON.stringify(body);
    return reachable(() =>
      send(url, {
        method: 'POST',
        headers: {
          accept: stream ? 'text/event-stream' : 'application/json',
          'content-type': 'application/json',
          ...own,
        },
        body: text,
        signal: abortSignal,
      }),
    );
  }
}

/** What `fetch` and the body's reader reject with says little, and nothing typed. */
async function reachable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')) {
      throw toAgentError(error);
    }
    if (AgentError.isInstance(error)) {
      throw error;
    }
    throw new AgentError({
      status: 'UNAVAILABLE',
      message: 'The server can not be reached, or the connection broke.',
      cause: error,
    });
  }
}

/** `NOT_FOUND` is also what a URL at which no agent is served answers: that is a mistake, and no answer to the question. */
function saysNoSuchSnapshot(error: unknown): boolean {
  if (!AgentError.isInstance(error) || error.status !== 'NOT_FOUND') {
    return false;
  }
  const { httpStatus, reason } = (error.details ?? {}) as { httpStatus?: unknown; reason?: unknown };
  return httpStatus === undefined && reason !== 'NO_SUCH_PATH';
}
