import type { AllNames } from '../check.ts';
import { post, readRequest, STREAM_ID_HEADER } from './post.ts';
import { readBody, readStream } from './read-turn.ts';
import { ReplayStream } from '../chat/replay-stream.ts';

/** Options of {@link runFlow}. */
export interface RunFlowOptions<Init = unknown> {
  /** The flow's URL. */
  url: string | URL;
  /** The flow's input. */
  input?: unknown;
  /** The `init`, for actions that take one. */
  init?: Init;
  /** Headers of the request. */
  headers?: Record<string, string>;
  /** Aborts the call. */
  abortSignal?: AbortSignal;
}

/** Options of {@link streamFlow}. */
export interface StreamFlowOptions<Init = unknown> extends RunFlowOptions<Init> {
  /** Reads the kept stream of this id instead of running the flow. */
  streamId?: string;
}

const RUN_OPTIONS: AllNames<RunFlowOptions> = { url: true, input: true, init: true, headers: true, abortSignal: true };
const STREAM_OPTIONS: AllNames<StreamFlowOptions> = { ...RUN_OPTIONS, streamId: true };

/** A running flow. */
export interface FlowStream<O = unknown, S = unknown> {
  /** The flow's output. */
  readonly output: Promise<O>;
  /** The chunks as they arrive. They can be read late, and more than once. */
  readonly stream: AsyncIterable<S>;
  /** The id of the kept stream; `null` if the server keeps none. */
  readonly streamId: Promise<string | null>;
}

/**
 * Calls a flow, or any action, that is served over HTTP, for example by Genkit's `expressHandler`.
 *
 * @throws AgentError with the status of the failure; `INVALID_ARGUMENT` for an unknown or invalid option.
 * @example
 * const menu = await runFlow({ url: 'https://example.com/menu', input: 'pizza' });
 */
export async function runFlow<O = unknown, Init = unknown>(options: RunFlowOptions<Init>): Promise<O> {
  const { url, input, init, headers, abortSignal } = readRequest('runFlow', options, RUN_OPTIONS);
  const response = await post({ url, body: { data: input, init }, headers, abortSignal });
  return (await readBody(response)).result as O;
}

/**
 * Like {@link runFlow}, with the chunks as they arrive. Errors are thrown by `output` and by `stream`.
 *
 * @throws AgentError `INVALID_ARGUMENT` for an unknown or invalid option.
 * @example
 * const { stream, output } = streamFlow({ url: 'https://example.com/menu', input: 'pizza' });
 * for await (const chunk of stream) console.log(chunk);
 * console.log(await output);
 */
export function streamFlow<O = unknown, S = unknown, Init = unknown>(
  options: StreamFlowOptions<Init>,
): FlowStream<O, S> {
  const { url, input, init, streamId, abortSignal } = readRequest('streamFlow', options, STREAM_OPTIONS);
  const headers = { ...options.headers, ...(streamId && { [STREAM_ID_HEADER]: streamId }) };
  const answer = post({ url, body: { data: input, init }, stream: true, headers, abortSignal });
  const stream = new ReplayStream<S>();
  const output = answer.then((response) => readStream(response, (message) => stream.push(message as S)));
  stream.endWith(output);
  const answeredId = answer.then((response) => response.headers.get(STREAM_ID_HEADER));
  answeredId.catch(() => {});
  return { output: output as Promise<O>, stream, streamId: answeredId };
}
