import type { ActionContext } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { frames, jsonAnswer, streamAnswer, type Answer } from './answer/answer.ts';
import { FrameStream, type Backlog } from './answer/frame-stream.ts';
import type { CallBody } from './request/read-body.ts';
import type { TurnStarts } from './request/turn-starts.ts';
import { Refusal, shuttingDown, tooSlow } from './answer/refusal.ts';
import { STREAM_ID_HEADER, type KeptTurn, type ResumableTurns } from './answer/resumable-turns.ts';
import type { Route } from './request/routes.ts';
import { httpStatusOfError, toSafeError, type SafeError } from './answer/error-for-caller.ts';

/** A request that has been routed, authenticated, read and validated. */
export interface ActionCall {
  route: Route;
  body: CallBody;
  context: ActionContext;
  wantsStream: boolean;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
  timeoutMs: number | undefined;
  backlog: Backlog;
  /** Aborted when the server shuts down. */
  stopSignal: AbortSignal | undefined;
  starts: TurnStarts;
  /** Keeps the streams of turns. Without it a stream ends with its connection. */
  turns: ResumableTurns | undefined;
}

/** How a run ended. A failed turn has both: its output, and the error of that output. */
interface Outcome {
  result?: unknown;
  error?: SafeError;
  httpStatus: number;
  headers?: Record<string, string>;
}

type OnChunk = (chunk: unknown) => void;

/** How long the head of a resumable stream waits for the first chunk, in ms, so that an immediate error can still set the HTTP status. */
const HEAD_WITHIN_MS = 200;

/** How long a turn may take to end after its time limit, in ms, so that a save in progress can complete. */
const END_WITHIN_MS = 1000;

/**
 * Runs the action and makes the answer.
 *
 * In Genkit a failed turn is an output with `finishReason: 'failed'` and the last good state, not an exception. If no chunk was sent
 * before, the answer has the HTTP status of the error, so that proxies, monitors and other clients see the failure. Its body has the output
 * under `result`, which the client of this package reads, and the error under `error`. Genkit's client reads the body of a 200 only, and
 * otherwise throws an error that quotes it. After the first chunk the status is 200, and the outcome is the last frame. The head of a
 * resumable stream does not wait for a late first chunk, because the client needs its id to reconnect.
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
  const caller = { agent: call.route.agent, context: call.context };
  const kept = call.route.kind === 'turn' ? await call.turns?.open(caller, () => stop.abort()) : undefined;
  // A client without the id cannot reconnect.
  let canReconnect = false;
  let hasEnded = false;
  const onGone = () => {
    if (kept && canReconnect) {
      kept.leave();
    } else if (!hasEnded) {
      stop.abort(call.signal.reason);
    }
  };
  const stream = new FrameStream({
    backlog: call.backlog,
    tooSlowFrame: () => (kept && canReconnect ? undefined : frames.error(toSafeError(tooSlow()))),
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
  const outcome = await Promise.race([firstChunk, run, ...(kept ? [headDeadline(run)] : [])]);
  if (outcome?.error && !sendsChunks) {
    stream.cancel();
    return answerAsJson(outcome);
  }
  canReconnect = true;
  return streamAnswer(stream, kept && { [STREAM_ID_HEADER]: kept.id });
}

/** Resolves after {@link HEAD_WITHIN_MS}; never resolves if the run ends before. */
function headDeadline(run: Promise<unknown>): Promise<undefined> {
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

/** Runs the action until it ends or its time limit is reached. Never rejects. */
async function runWithin(
  call: ActionCall,
  { stop, onGone }: { stop: AbortController; onGone: () => void },
  onChunk?: OnChunk,
): Promise<Outcome> {
  const { signal, stopSignal, timeoutMs } = call;
  signal.addEventListener('abort', onGone, { once: true });
  // Stops all turns, including those whose clients could reconnect.
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
    // A run that has answered is not aborted: a detached run continues after its request.
    clearTimeout(timer);
    signal.removeEventListener('abort', onGone);
    stopSignal?.removeEventListener('abort', onStop);
  }
}

/** Whether the turn completed although it was stopped, because its save had begun. */
function isDone({ result, error }: Outcome): boolean {
  return result !== undefined && !error && (result as { finishReason?: unknown }).finishReason !== 'aborted';
}

async function run(call: ActionCall, abortSignal: AbortSignal, onChunk?: OnChunk): Promise<Outcome> {
  const { route, body, context } = call;
  try {
    if (route.kind === 'turn') {
      await call.starts.next();
    }
    if (call.stopSignal?.aborted) {
      throw shuttingDown();
    }
    if (call.signal.aborted) {
      throw new Refusal(499, 'CANCELLED', 'The client disconnected.');
    }
    const init = route.kind === 'turn' ? { init: body.init as AgentInit } : {};
    const { result, telemetry } = await route.action.run(body.data, { context, abortSignal, onChunk, ...init });
    return {
      ...outcomeOf(call, result),
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

/** Results can contain errors too: the output of a failed turn, and its snapshot. */
function outcomeOf({ route, body }: ActionCall, result: unknown): Outcome {
  const { error: found, finishReason } = (result ?? {}) as { error?: unknown; finishReason?: unknown };
  const failed = route.kind === 'turn' && finishReason === 'failed';
  if (!failed && found === undefined) {
    return { result, httpStatus: 200 };
  }
  const error = toSafeError(found, body.text);
  const safe = { ...(result as object), error };
  return failed
    ? { result: safe, error, httpStatus: httpStatusOfError(found, error) }
    : { result: safe, httpStatus: 200 };
}
