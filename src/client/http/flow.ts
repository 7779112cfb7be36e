import { post, STREAM_ID_HEADER } from './post.ts';
import { reachable } from './reachable.ts';
import { readBody, readStream } from './read-turn.ts';
import { ReplayStream } from './replay-stream.ts';

/** Options of {@link runFlow}. */
export interface RunFlowOptions<Init = unknown> {
  /** Where the flow is served. */
  url: string;
  /** What the flow is called with. */
  input?: unknown;
  /** What an action that takes an `init` is set up with. */
  init?: Init;
  /** Headers of the request. */
  headers?: Record<string, string>;
  /** Ends the call. */
  abortSignal?: AbortSignal;
}

/** Options of {@link streamFlow}. */
export interface StreamFlowOptions<Init = unknown> extends RunFlowOptions<Init> {
  /** Reads the stream of this id, which the server keeps, in place of running the flow. */
  streamId?: string;
}

/** A flow that is under way. */
export interface FlowStream<O = unknown, S = unknown> {
  /** What the flow answers. */
  readonly output: Promise<O>;
  /** The chunks as they come. They can be read late, and more than once. */
  readonly stream: AsyncIterable<S>;
  /** The id under which the server keeps the stream; `null` where it keeps none. */
  readonly streamId: Promise<string | null>;
}

/**
 * Calls a flow, or any action, that is served over HTTP, by Genkit's `expressHandler` for instance.
 *
 * @throws AgentError with the status of what failed.
 * @example
 * const menu = await runFlow({ url: 'https://example.com/menu', input: 'pizza' });
 */
export async function runFlow<O = unknown, Init = unknown>(options: RunFlowOptions<Init>): Promise<O> {
  const { url, input, init, headers, abortSignal } = options;
  const response = await post({ url, body: { data: input, init }, headers, abortSignal });
  return (await reachable(() => readBody(response))).result as O;
}

/**
 * As {@link runFlow}, with the chunks as they come. What goes wrong is thrown by `output` and by `stream`.
 *
 * @example
 * const { stream, output } = streamFlow({ url: 'https://example.com/menu', input: 'pizza' });
 * for await (const chunk of stream) console.log(chunk);
 * console.log(await output);
 */
export function streamFlow<O = unknown, S = unknown, Init = unknown>(
  options: StreamFlowOptions<Init>,
): FlowStream<O, S> {
  const { url, input, init, streamId, abortSignal } = options;
  const headers = { ...options.headers, ...(streamId && { [STREAM_ID_HEADER]: streamId }) };
  const answer = post({ url, body: { data: input, init }, stream: true, headers, abortSignal });
  const stream = new ReplayStream<S>();
  const output = answer.then((response) =>
    reachable(() => readStream(response, (message) => stream.push(message as S))),
  );
  output.then(
    () => stream.close(),
    (error: unknown) => stream.fail(error),
  );
  const answeredId = answer.then((response) => response.headers.get(STREAM_ID_HEADER));
  answeredId.catch(() => {});
  return { output: output as Promise<O>, stream, streamId: answeredId };
}
