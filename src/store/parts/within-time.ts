import { GenkitError } from 'genkit';

/** A model, a store or a function of the application did not answer in time (status `DEADLINE_EXCEEDED`). */
export class NoAnswerError extends GenkitError {
  constructor(callee: string, timeoutMs: number) {
    super({ status: 'DEADLINE_EXCEEDED', message: `${callee} did not answer within ${timeoutMs} ms.` });
  }
}

/** Rejects with {@link NoAnswerError} at the timeout, or when `signal` aborts. The callee may continue. */
export async function withinTime<T>(
  callee: string,
  timeoutMs: number,
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
  const timer = setTimeout(() => end.abort(new NoAnswerError(callee, timeoutMs)), timeoutMs);
  try {
    return await Promise.race([call(end.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
