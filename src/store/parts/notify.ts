import { logError } from '../../errors.ts';

/**
 * Calls a function of the application, and does not wait for its result. If it throws or rejects, the error is logged.
 *
 * @param failure The sentence before the error in the log: what failed, and what continues.
 */
export function notify(call: () => unknown, failure: string): void {
  try {
    logRejection(call(), failure);
  } catch (error) {
    logError(failure, error);
  }
}

/** Logs the error of a promise that is not awaited. Without this, Node ends the process if it rejects. */
export function logRejection(answer: unknown, failure: string): void {
  if (typeof (answer as { then?: unknown } | null | undefined)?.then !== 'function') return;
  Promise.resolve(answer).catch((error: unknown) => logError(failure, error));
}
