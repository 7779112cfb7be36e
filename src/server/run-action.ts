import type { ActionContext } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { frames, jsonAnswer, streamAnswer, type Answer } from './answer/answer.ts';
import { FrameStream, type Backlog } from './answer/frame-stream.ts';
import type { CallBody } from './request/read-body.ts';
import { Refusal, shuttingDown, tooSlow } from './answer/refusal.ts';
import { STREAM_ID_HEADER, type KeptTurn, type ResumableTurns } from './answer/resumable-turns.ts';
import type { Route } from './request/routes.ts';
import { httpStatusOfError, toSafeError, type SafeError } from './answer/safe-error.ts';

/** A request that may be run: known, read, authenticated, valid. */
export interface ActionCall {
  route: Route;
  body: CallBody;
  context: ActionContext;
  wantsStream: boolean;
  /** Aborts when the client goes away. */
  signal: AbortSignal;
  timeoutMs: number | undefined;
  backlog: Backlog;
  /** Aborts when the server is shut down. */
  stopSignal: AbortSignal | undefined;
  /** Keeps the streams of turns; without, they end with their connections. */
  turns: ResumableTurns | undefined;
}

/** How a run ended. A turn that failed has both: its output, and the error that is in it. */
interface Outcome {
  result?: unknown;
  error?: SafeError;
  httpStatus: number;
  headers?: Record<string, string>;
}

type OnChunk = (chunk: unknown) => void;

/** How long the head of a resumable stream waits for the first chunk, in ms: what is refused at once can so still be told by its HTTP status. */
const HEAD_WITHIN_MS = 200;

/** How long a turn that is stopped because its time is up may take to end, in ms: one that is just being saved is not lost. */
const END_WITHIN_MS = 1000;

/**
 * Runs the action and answers.
 *
 * A turn that fails is an outcome and not an exception in Genkit: its output says `finishReason: 'failed'`, and holds the last good state. Over HTTP
 * its status is that of the error, as long as no chunk was sent, so that proxies, monitors and plain clients see a failure as one. The body
 * then has the output under `result`, which our client reads, and the error under `error`. Genkit's client reads no body but that of a 200
 * and throws an error that quotes it. Once chunks are under way the status is out, and the outcome is the last frame. The head of a resumable
 * stream goes out before the first chunk, if that is long in coming: without the id in it nobody could come back.
 */
export async function runAction(call: ActionCall): Promise<Answer> {
  if (call.wantsStream) {
    return answerAsStream(call);
  }
  const stop = new AbortController();
  return answerAsJson(await runWithin(call, { stop, onGone: () => stop.abort(call.signal.reason) }));
}

async function answerAsStream(call: ActionCall): Promise<Answer> {
  const stop = new AbortController();
  const kept = call.route.kind === 'turn' ? await call.turns?.open(askerOf(call), () => stop.abort()) : undefined;
  // Who was not told the id can not come back.
  let comesBack = false;
  let hasEnded = false;
  const onGone = () => {
    if (kept && comesBack) {
      kept.leave();
    } else if (!hasEnded) {
      stop.abort(call.signal.reason);
    }
  };
  const stream = new FrameStream({
    backlog: call.backlog,
    tooSlowFrame: () => (kept && comesBack ? undefined : frames.error(toSafeError(tooSlow()))),
    onGone,
  });
  let sendsChunks = false;
  let onFirstChunk = () => {};
  const firstChunk = new Promise<undefined>((resolve) => {
    onFirstChunk = () => resolve(undefined);
  });
  const run = runWithin(call, { stop, onGone }, (chunk) => {
    const frame = frames.chunk(chunk);
    stream.write(frame);
    kept?.write(frame);
    sendsChunks = true;
    onFirstChunk();
  }).finally(() => {
    hasEnded = true;
  });
  void run.then((ended) => finish(ended, stream, kept));
  const outcome = await Promise.race([firstChunk, run, ...(kept ? [soon(run)] : [])]);
  if (outcome?.error && !sendsChunks) {
    return answerAsJson(outcome);
  }
  comesBack = true;
  return streamAnswer(stream, kept && { [STREAM_ID_HEADER]: kept.id });
}

function askerOf({ route, context }: ActionCall): Parameters<ResumableTurns['open']>[0] {
  return { agent: route.agent, context };
}

/** Resolves after {@link HEAD_WITHIN_MS}; never, when the run ends before. */
function soon(run: Promise<unknown>): Promise<undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), HEAD_WITHIN_MS);
    void run.then(() => clearTimeout(timer));
  });
}

function answerAsJson({ result, error, httpStatus, headers }: Outcome): Answer {
  return jsonAnswer(httpStatus, { result, error }, headers);
}

function finish(outcome: Outcome, stream: FrameStream, kept: KeptTurn | undefined): void {
  const frame = lastFrame(outcome);
  stream.end(frame);
  kept?.end(frame);
}

function lastFrame({ result, error }: Outcome): string {
  try {
    return result === undefined && error ? frames.error(error) : frames.result(result);
  } catch (notJson) {
    return frames.error(toSafeError(notJson));
  }
}

/** Runs the action until it ends, or the time is up. Does not reject. */
async function runWithin(
  call: ActionCall,
  { stop, onGone }: { stop: AbortController; onGone: () => void },
  onChunk?: OnChunk,
): Promise<Outcome> {
  const { signal, stopSignal, timeoutMs } = call;
  signal.addEventListener('abort', onGone, { once: true });
  // Whatever the client wants: also a turn that it could come back to.
  const onStop = () => stop.abort(stopSignal?.reason);
  stopSignal?.addEventListener('abort', onStop, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let refusal: Refusal | undefined;
  const late = new Promise<Outcome>((resolve) => {
    const onTime = () => {
      const tooLate = new Refusal(504, 'DEADLINE_EXCEEDED', `The agent did not finish within ${timeoutMs} ms.`);
      refusal = tooLate;
      stop.abort(tooLate);
      timer = setTimeout(() => resolve(failure(call, tooLate)), END_WITHIN_MS);
    };
    timer = timeoutMs === undefined ? undefined : setTimeout(onTime, timeoutMs);
  });
  try {
    const outcome = await Promise.race([run(call, stop.signal, onChunk), late]);
    return refusal && !isDone(outcome) ? failure(call, refusal) : outcome;
  } finally {
    // What ended is not to be aborted any more: a detached run goes on after its request.
    clearTimeout(timer);
    signal.removeEventListener('abort', onGone);
    stopSignal?.removeEventListener('abort', onStop);
  }
}

/** Whether the turn was completed, although it was stopped: it was being saved by then. */
function isDone({ result, error }: Outcome): boolean {
  return result !== undefined && !error && (result as { finishReason?: unknown }).finishReason !== 'aborted';
}

async function run(call: ActionCall, abortSignal: AbortSignal, onChunk?: OnChunk): Promise<Outcome> {
  const { route, body, context } = call;
  try {
    if (call.stopSignal?.aborted) {
      throw shuttingDown();
    }
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
