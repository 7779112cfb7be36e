import { JsonValueError } from '../json/value.ts';
import { isTimeout } from './bounded-store.ts';
import { statusOf } from './runtime-error.ts';

/** Pauses between the attempts, in ms; their number is that of the further attempts. */
const PAUSES_MS = [25, 200];

/** Errors that may be gone the next time. An error that is no `GenkitError` counts as `INTERNAL`. */
const TRANSIENT = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'UNKNOWN']);

/** Whether repeating the same call can help. */
export function isTransient(error: unknown): boolean {
  return !JsonValueError.isInstance(error) && !isTimeout(error) && TRANSIENT.has(statusOf(error));
}

/** What `attempt` answers; tried again, a few times, while it fails with an error that `worthIt`. `tries`: those before. */
export function withRetries<T>(attempt: () => Promise<T>, worthIt: (error: unknown) => boolean, tries = 0): Promise<T> {
  const pauseMs = PAUSES_MS[tries];
  if (pauseMs === undefined) return attempt();
  return attempt().catch(async (error: unknown) => {
    if (!worthIt(error)) throw error;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return withRetries(attempt, worthIt, tries + 1);
  });
}
