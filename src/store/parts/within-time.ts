import { GenkitError } from 'genkit';

/** A model, a store or a function of the application did not answer in time (status `DEADLINE_EXCEEDED`). */
export class NoAnswerError extends GenkitError {
  constructor(callee: string, timeoutMs: number) {
    super({ status: 'DEADLINE_EXCEEDED', message: `${callee} did not answer within ${timeoutMs} ms.` });
  }
}

/**
 * Rejects with {@link NoAnswerError} at the timeout, or when `signal` aborts. The callee may continue.
 *
 * @param callee Names the callee in the error, or makes another error in place of it.
 * @param timeoutMs `undefined`: no limit.
 */
export async function withinTime<T>(
  callee: string | (() => Error),
  timeoutMs: number | undefined,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const end = new AbortController();
  // Before the call, so that this error comes before one that the callee throws because of the signal.
  const ended = new Promise<never>((_, reject) => {
    end.signal.addEventListener('abort', () => reject(end.signal.reason as Error));
  });
  const abort = () => end.abort(signal?.reason);
  signal?.addEventListener('abort', abort);
  const late = () => end.abort(typeof callee === 'string' ? new NoAnswerError(callee, timeoutMs!) : callee());
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  try {
    return await Promise.race([call(end.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
