import type { ActionContext } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { frames, jsonAnswer, streamAnswer, type StreamAnswer } from './answer.ts';
import type { CallBody } from './read-body.ts';
import { Refusal } from './refusal.ts';
import type { Route } from './routes.ts';
import { httpStatusOfError, toSafeError, type SafeError } from './safe-error.ts';

/** A request that may be run: known, read, authenticated, valid. */
export interface ActionCall {
  route: Route;
  body: CallBody;
  context: ActionContext;
  wantsStream: boolean;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
  timeoutMs: number | undefined;
}

/** How a run ended. A turn that failed has both: its output, and the error that is in it. */
interface Outcome {
  result?: unknown;
  error?: SafeError;
  httpStatus: number;
  headers?: Record<string, string>;
}

type OnChunk = (chunk: unknown) => void;

/**
 * Runs the action and answers.
 *
 * A turn that fails is an outcome and not an exception in Genkit: its output says `finishReason: 'failed'`, and holds the last good state. Over HTTP
 * its status is that of the error, as long as no chunk was sent, so that proxies, monitors and plain clients see a failure as one. The body
 * then has the output under `result`, which our client reads, and the error under `error`. Genkit's client reads no body but that of a 200
 * and throws an error that quotes it. Once chunks are under way the status is out, and the outcome is the last frame.
 */
export async function runAction(call: ActionCall): Promise<Response> {
  const stop = new AbortController();
  if (!call.wantsStream) {
    return answerAsJson(await runWithin(call, stop));
  }
  const stream = streamAnswer(() => stop.abort());
  let sendsChunks = false;
  let onFirstChunk = () => {};
  const firstChunk = new Promise<undefined>((resolve) => {
    onFirstChunk = () => resolve(undefined);
  });
  const run = runWithin(call, stop, (chunk) => {
    stream.write(frames.chunk(chunk));
    sendsChunks = true;
    onFirstChunk();
  });
  const outcome = await Promise.race([firstChunk, run]);
  if (outcome?.error && !sendsChunks) {
    stream.end();
    return answerAsJson(outcome);
  }
  void run.then((ended) => finish(stream, ended));
  return stream.response;
}

function answerAsJson({ result, error, httpStatus, headers }: Outcome): Response {
  return jsonAnswer(httpStatus, { result, error }, headers);
}

function finish(stream: StreamAnswer, { result, error }: Outcome): void {
  try {
    stream.write(result === undefined && error ? frames.error(error) : frames.result(result));
  } catch (notJson) {
    stream.write(frames.error(toSafeError(notJson)));
  }
  stream.end();
}

/** Runs the action until it ends, the client goes away, or the time is up. Does not reject. */
async function runWithin(call: ActionCall, stop: AbortController, onChunk?: OnChunk): Promise<Outcome> {
  const { signal, timeoutMs } = call;
  const onGone = () => stop.abort(signal.reason);
  signal.addEventListener('abort', onGone, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Outcome>((resolve) => {
    const onTime = () => {
      const refusal = new Refusal(504, 'DEADLINE_EXCEEDED', `The agent did not finish within ${timeoutMs} ms.`);
      stop.abort(refusal);
      resolve(failure(call, refusal));
    };
    timer = timeoutMs === undefined ? undefined : setTimeout(onTime, timeoutMs);
  });
  try {
    return await Promise.race([run(call, stop.signal, onChunk), late]);
  } finally {
    // What ended is not to be aborted any more: a detached run goes on after its request.
    clearTimeout(timer);
    signal.removeEventListener('abort', onGone);
  }
}

async function run(call: ActionCall, abortSignal: AbortSignal, onChunk?: OnChunk): Promise<Outcome> {
  const { route, body, context } = call;
  try {
    if (call.signal.aborted) {
      throw new Refusal(499, 'CANCELLED', 'The client went away.');
    }
    const init = route.kind === 'turn' ? { init: body.init as AgentInit } : {};
    const { result, telemetry } = await route.action.run(body.data, { context, abortSignal, onChunk, ...init });
    return {
      ...judge(call, result),
      headers: { 'x-genkit-trace-id': telemetry.traceId, 'x-genkit-span-id': telemetry.spanId },
    };
  } catch (error) {
    return failure(call, error);
  }
}

function failure({ body }: ActionCall, thrown: unknown): Outcome {
  const error = toSafeError(thrown, body.text);
  return { error, httpStatus: httpStatusOfError(thrown, error) };
}

/** Errors also travel inside results: in the output of a turn that failed, and in the snapshot of one. */
function judge({ route, body }: ActionCall, result: unknown): Outcome {
  const { error: inside, finishReason } = (result ?? {}) as { error?: unknown; finishReason?: unknown };
  const failed = route.kind === 'turn' && finishReason === 'failed';
  if (!failed && inside === undefined) {
    return { result, httpStatus: 200 };
  }
  const error = toSafeError(inside, body.text);
  const shown = { ...(result as object), error };
  return failed
    ? { result: shown, error, httpStatus: httpStatusOfError(inside, error) }
    : { result: shown, httpStatus: 200 };
}
