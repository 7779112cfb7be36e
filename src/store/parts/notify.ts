import { logError } from '../../errors.ts';

/**
 * Calls a function of the application for whose result nothing waits. If it throws or rejects, the error is logged.
 *
 * @param failure What failed, and what goes on; a sentence before the error.
 */
export function notify(call: () => unknown, failure: string): void {
  try {
    logRejection(call(), failure);
  } catch (error) {
    logError(failure, error);
  }
}

/** Logs the error with which a promise that nothing awaits rejects: Node ends a process with an unhandled rejection. */
export function logRejection(answer: unknown, failure: string): void {
  if (typeof (answer as { then?: unknown } | null | undefined)?.then !== 'function') return;
  Promise.resolve(answer).catch((error: unknown) => logError(failure, error));
}
