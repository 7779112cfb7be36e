import { AgentError, toAgentError } from './errors.ts';
import type { CallOptions } from './types.ts';

/** The longest delay of a timer; a longer one would fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

/** @throws AgentError `INVALID_ARGUMENT` for a delay that is too long for a timer. */
export function assertDelay(name: string, ms: number | undefined): void {
  if (ms === undefined || ms <= MAX_DELAY_MS) {
    return;
  }
  throw new AgentError({
    status: 'INVALID_ARGUMENT',
    message: `${name} must be a number of at most ${MAX_DELAY_MS} ms, about 24 days.`,
  });
}

/** Aborts the controller when the signal aborts. The returned function removes the listener. */
export function followSignal(signal: AbortSignal | undefined, controller: AbortController): () => void {
  if (!signal) {
    return () => {};
  }
  const onAbort = () => controller.abort(signal.reason);
  if (signal.aborted) {
    onAbort();
    return () => {};
  }
  signal.addEventListener('abort', onAbort, { once: true });
  return () => signal.removeEventListener('abort', onAbort);
}

/**
 * Runs `work` with one signal for the caller's signal and time limit, and rejects as soon as it aborts, even if `work` ignores the signal.
 * Leaves no timer and no listener.
 *
 * @param what Names the work in the messages.
 */
export async function withLimits<T>(
  options: CallOptions,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { abortSignal, timeoutMs } = options;
  assertDelay('timeoutMs', timeoutMs);
  const controller = new AbortController();
  const unfollow = followSignal(abortSignal, controller);
  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => controller.abort(timedOut(what)), Math.max(0, timeoutMs));
  try {
    return await untilAborted(controller.signal, work, what);
  } catch (error) {
    throw toAgentError(error);
  } finally {
    clearTimeout(timer);
    unfollow();
  }
}

async function untilAborted<T>(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  what: string,
): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(toCancellation(signal.reason, what));
  });
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    if (signal.aborted) {
      throw toCancellation(signal.reason, what);
    }
    return await Promise.race([work(signal), aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Resolves after `ms`; rejects with the signal's reason when it aborts before. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

function timedOut(what: string): AgentError {
  return new AgentError({ status: 'DEADLINE_EXCEEDED', message: `${what} was not done in time.` });
}

function toCancellation(reason: unknown, what: string): AgentError {
  if (AgentError.isInstance(reason)) {
    return reason;
  }
  if (reason instanceof Error && reason.name === 'TimeoutError') {
    return timedOut(what);
  }
  return new AgentError({ status: 'CANCELLED', message: `${what} was cancelled by its caller.`, cause: reason });
}
