import { LONGEST_TIMER_MS } from '../option-names.ts';
import { AgentError, invalid, withAgentErrors } from './errors.ts';
import type { CallOptions } from './types.ts';

/** @throws AgentError `INVALID_ARGUMENT` for a delay that is too long for a timer. */
export function assertDelay(name: string, ms: number | undefined): void {
  if (ms !== undefined && !(ms <= LONGEST_TIMER_MS)) {
    throw invalid(`${name} must be a number of at most ${LONGEST_TIMER_MS} ms, about 24 days.`);
  }
}

/** Aborts the controller when the signal aborts. The returned function removes the listener. */
export function followSignal(signal: AbortSignal | undefined, controller: AbortController): () => void {
  const onAbort = () => controller.abort(signal?.reason);
  if (signal?.aborted) {
    onAbort();
  }
  signal?.addEventListener('abort', onAbort, { once: true });
  return () => signal?.removeEventListener('abort', onAbort);
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
  const { signal } = controller;
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(toCancellation(signal.reason, what)));
  });
  const unfollow = followSignal(abortSignal, controller);
  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => controller.abort(timedOut(what)), Math.max(0, timeoutMs));
  try {
    return await withAgentErrors(() => (signal.aborted ? aborted : Promise.race([work(signal), aborted])));
  } finally {
    clearTimeout(timer);
    unfollow();
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
  return new AgentError({ status: 'DEADLINE_EXCEEDED', message: `${what} timed out.` });
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
